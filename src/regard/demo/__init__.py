"""The demonstration: attention as a look-up, with every score, and in every shipped system."""

import os
from pathlib import Path

from rich.console import Console

from regard.extras import require


def run(
    folder: str | os.PathLike[str] = "regard-demo",
    console: Console | None = None,
    *,
    photograph: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Show attention in the terminal and save figures to `folder`; returns the files written.

    `photograph` is an image to caption; by default, those that come with scikit-image, where that is installed.
    """
    require("The demonstration", "sacrebleu", "matplotlib")
    from regard.demo.attention import show_look_ups, show_scores
    from regard.demo.captioning import find_photograph, show_captions
    from regard.demo.documents import show_documents
    from regard.demo.glimpses import show_glimpses
    from regard.demo.memory import show_tape
    from regard.demo.reading import show_reading
    from regard.demo.translation import show_babel, show_pretrained

    # First, so that a file that cannot be opened is reported at once.
    image = find_photograph(photograph)
    console = console or Console(highlight=False)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    show_look_ups(console)
    files = show_scores(console, folder)
    files += show_babel(console, folder)
    files += show_pretrained(console, folder)
    files += show_reading(console, folder)
    files += show_captions(console, folder, image)
    files += show_documents(console, folder)
    files += show_tape(console, folder)
    files += show_glimpses(console, folder)
    console.rule("[bold]Files")
    for file in files:
        console.print(f"Wrote {file}", soft_wrap=True, markup=False)
    console.rule("[bold]Next")
    console.print("Look inside every model in your browser: [bold]regard serve --open[/bold]  (or: make serve)")
    return files
