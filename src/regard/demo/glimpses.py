"""Attention as a sequence of glimpses: where a model looks for a digit."""

from pathlib import Path

from rich.console import Console

import regard
from regard.worlds.digits import DigitImages, DigitWorld, font_glyphs

PIECES, DISTORTION = 4, 0.2
"""How the images are cluttered and distorted."""


def show_glimpses(console: Console, folder: Path) -> list[Path]:
    """Let the pretrained glimpse-digits find a digit, and show its path; returns the figure."""
    console.rule("[bold]Attention as a sequence of glimpses")
    model = regard.load("glimpse-digits", device="cpu")
    world = DigitWorld(image_size=model.config.image_size, pieces=PIECES, distortion=DISTORTION)
    digits = world.fixed(font_glyphs()[2], 30, seed=1)
    chosen = farthest_from_centre(digits)
    found = model.glimpse(digits.images[chosen, 0].numpy())
    count, size = model.config.num_glimpses, model.config.glimpse_size
    console.print(
        f"A digit, somewhere among {PIECES} pieces of other digits. The model never sees the whole image: it takes "
        f"{count} glimpses, sharp only in a window of {size} x {size} pixels, and learned from rewards where to look "
        "next. The numbers are its glimpses, in order; beside the image is what it believes after each.\n"
    )
    console.print(regard.view(found), "")
    label = model.labels[int(digits.labels[chosen])]
    verdict = "right" if found.label == label else f"wrong: it is {label}"
    console.print(f"It says [bold]{found.label}[/bold], which is {verdict}.\n")
    title = f"{count} glimpses find the digit {label}"
    return [regard.view(found).save(folder / "glimpses.png", title=title)]


def farthest_from_centre(digits: DigitImages) -> int:
    """The image whose digit is farthest from the centre, where the first glimpse is."""
    left, top, right, bottom = digits.boxes.unbind(1)
    height, width = digits.images.shape[2:]
    return int(((left + right - width) ** 2 + (top + bottom - height) ** 2).argmax())
