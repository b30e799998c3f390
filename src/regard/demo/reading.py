"""Machine reading: which noun a pronoun refers to, and how surprising each word of a sentence is."""

from pathlib import Path

from rich.console import Console

import regard
from regard.systems.pretrained import pretrained_models

STORIES, LANGUAGE = "stories-both", "reader-en"
SENTENCE = "The animal didn't cross the street because it was too tired."
OTHER = "The animal didn't cross the street because it was too wide."
BEGINNING = "The children"


def show_reading(console: Console, folder: Path) -> list[Path]:
    """Read two sentences that differ in one word, then one with a language model; returns the figures."""
    console.rule("[bold]Reading a sentence")
    shipped = {model.name for model in pretrained_models()}
    return [
        *(_show_pronouns(console, folder) if STORIES in shipped else _missing(console, STORIES)),
        *(_show_surprisal(console, folder) if LANGUAGE in shipped else _missing(console, LANGUAGE)),
    ]


def _show_pronouns(console: Console, folder: Path) -> list[Path]:
    model = regard.load(STORIES, device="cpu")
    console.print(
        "A self-attention reader of the small generated world stories names the noun that a word refers to. Its "
        "attention was not trained with labels. One word at the end decides what [bold]it[/bold] looks back to:\n"
    )
    files = []
    for number, reading in enumerate(model.read([SENTENCE, OTHER]), 1):
        found = [f"{word} is the {tag}" for word, tag in zip(reading.words, reading.tags, strict=True) if tag != "-"]
        console.print(f"{reading.text} [bold]({', '.join(found)})[/bold]")
        files.append(regard.view(reading).save(folder / f"pronoun-{number}.png", title=reading.text))
    console.print("")
    return files


def _show_surprisal(console: Console, folder: Path) -> list[Path]:
    model = regard.load(LANGUAGE, device="cpu")
    console.print(
        "An LSTMN keeps the states of all words on a tape and attends to them at each new word. Each line shows one "
        "word, the words that it attended to, and how many bits of surprise it was:\n"
    )
    view = regard.view(model.read(SENTENCE))
    console.print(view, "")
    console.print(f"It continues '{BEGINNING}': [bold]{model.generate(BEGINNING).text}[/bold]\n")
    return [view.save(folder / "reading.png", title=f"What each word attended to ({LANGUAGE})")]


def _missing(console: Console, name: str) -> list[Path]:
    console.print(f"The pretrained model {name} is not installed, so nothing is read with it.\n")
    return []
