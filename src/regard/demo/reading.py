"""Machine reading: how surprising each word of a sentence is, and what it attended to."""

from pathlib import Path

from rich.console import Console

import regard
from regard.systems.pretrained import pretrained_models

MODEL = "reader-en"
SENTENCE = "The animal didn't cross the street because it was too tired."
BEGINNING = "The children"


def show_reading(console: Console, folder: Path) -> list[Path]:
    """Read a sentence with the pretrained language model, and let it continue another; returns the figure."""
    console.rule("[bold]Reading a sentence")
    if MODEL not in {model.name for model in pretrained_models()}:
        console.print(f"The pretrained model {MODEL} is not installed, so nothing is read.\n")
        return []
    model = regard.load(MODEL, device="cpu")
    console.print(
        "An LSTMN keeps the states of all words on a tape and attends to them at each new word. Each line shows one "
        "word, the words that it attended to, and how many bits of surprise it was:\n"
    )
    view = regard.view(model.read(SENTENCE))
    console.print(view, "")
    console.print(f"It continues '{BEGINNING}': [bold]{model.generate(BEGINNING).text}[/bold]\n")
    return [view.save(folder / "reading.png", title=f"What each word attended to ({MODEL})")]
