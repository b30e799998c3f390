"""The demonstration: attention as a look-up, with every score, and in every shipped system."""

import os
from pathlib import Path

from rich.console import Console

from regard.errors import OptionError
from regard.extras import require
from regard.training import processes


def run(
    folder: str | os.PathLike[str] = "regard-demo",
    console: Console | None = None,
    *,
    minutes: float = 1.0,
    photograph: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Show attention in the terminal and save figures to `folder`; returns the files written.

    `minutes` is the time for training a small translator. `photograph` is an image to caption; by default, one that
    comes with scikit-image, where that is installed.
    """
    if not 0 < minutes < float("inf"):
        raise OptionError(f"minutes must be a number above 0; got {minutes}.")
    require("The demonstration", "sacrebleu", "matplotlib")
    processes.fabric()
    from regard.demo.attention import show_look_ups, show_scores
    from regard.demo.captioning import find_photograph, show_captions
    from regard.demo.documents import show_documents
    from regard.demo.glimpses import show_glimpses
    from regard.demo.memory import show_tape
    from regard.demo.reading import show_reading
    from regard.demo.translation import show_babel, show_pretrained

    # First, so that a file that cannot be opened is reported before a minute of training.
    image = find_photograph(photograph)
    console = console or Console(highlight=False)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    show_look_ups(console)
    files = show_scores(console, folder)
    files += show_babel(console, folder, minutes=minutes)
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
