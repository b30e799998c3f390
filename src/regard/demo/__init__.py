"""The demonstration: attention as a look-up, every score on one sentence, translation that is measured, captions."""

import os
from pathlib import Path

from rich.console import Console


def run(
    folder: str | os.PathLike[str] = "regard-demo",
    console: Console | None = None,
    *,
    minutes: float = 1.0,
    photograph: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Show it all in the terminal, and save the pictures; gives the files written.

    `minutes` is for training the translator of the generated world. `photograph` is one to caption; without, it is
    one of scikit-image, where that is installed.
    """
    from regard.demo.attention import show_look_ups, show_scores
    from regard.demo.captioning import find_photograph, show_captions
    from regard.demo.translation import show_babel, show_shipped

    # The first: what is wrong with a file should be told before a minute has passed.
    shown = find_photograph(photograph)
    console = console or Console(highlight=False)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    show_look_ups(console)
    files = show_scores(console, folder)
    files += show_babel(console, folder, minutes=minutes)
    files += show_shipped(console, folder)
    files += show_captions(console, folder, shown)
    for file in files:
        console.print(f"Wrote {file}", soft_wrap=True)
    return files
