"""The models that come with regard, and loading by name or folder."""

import difflib
import json
import os
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import ModelError
from regard.systems import captioner, image_classifier
from regard.systems.captioner import Captioner
from regard.systems.folder import system_of
from regard.systems.image_classifier import ImageClassifier
from regard.systems.translator import Translator

System = TypeVar("System", Translator, ImageClassifier, Captioner)
SYSTEMS: dict[str, type[Translator] | type[ImageClassifier] | type[Captioner]] = {
    "translator": Translator,
    image_classifier.SYSTEM: ImageClassifier,
    captioner.SYSTEM: Captioner,
}
"""Which class reads a folder, by the system that its config.json names."""
PRETRAINED = Path(__file__).parent.parent / "pretrained"


@dataclass(frozen=True)
class Shipped:
    """A shipped model: its name, the first line of its card, its measured scores, its size."""

    name: str
    summary: str
    metrics: dict[str, Any]
    mebibytes: float


def shipped_models() -> list[Shipped]:
    """Every model that comes with regard."""
    found = []
    for folder in sorted(PRETRAINED.glob("*/config.json")):
        folder = folder.parent
        card = (folder / "MODEL_CARD.md").read_text(encoding="utf-8").splitlines()
        about = dropwhile(lambda line: not line or line.startswith("#"), card)
        summary = " ".join(takewhile(bool, about))
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        found.append(Shipped(folder.name, summary, metrics, size))
    return found


def load(name: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """A shipped model by its name, or a saved one by its folder: a Translator, an ImageClassifier, a Captioner."""
    folder = _find(name)
    system = system_of(folder)
    if system not in SYSTEMS:
        raise ModelError(f"{folder} is for another system: {system}; this version knows {', '.join(SYSTEMS)}.")
    return SYSTEMS[system].load(folder, device=device)


def load_as(system: type[System], name: str | os.PathLike[str], *, device: str | None = None) -> System:
    """The same, where it must be of one system."""
    return system.load(_find(name), device=device)


def system_named(name: str | os.PathLike[str]) -> str:
    """Of which system a shipped or saved model is."""
    return system_of(_find(name))


def _find(name: str | os.PathLike[str]) -> Path:
    folder = Path(name)
    if folder.is_dir():
        return folder
    if (PRETRAINED / name).is_dir():
        return PRETRAINED / name
    names = [model.name for model in shipped_models()]
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" Shipped models: {', '.join(names) or 'none'}."
    raise ModelError(f"There is no folder and no shipped model named {str(name)!r}.{hint}")
