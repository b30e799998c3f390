"""What a terminal shows, as text."""

from rich.console import Console, RenderableType


def printed(renderable: RenderableType, width: int = 80, *, colour: bool = False) -> str:
    """What a terminal of this width shows, with codes for colours if it has them."""
    console = Console(width=width, force_terminal=colour or None, color_system="truecolor" if colour else None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()
