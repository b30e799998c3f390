"""The models that come with regard, and loading any model by its name or folder."""

import json
import os
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.arguments import checked
from regard.errors import OptionError
from regard.systems import registry

if TYPE_CHECKING:
    import torch

PRETRAINED = Path(__file__).parent.parent / "pretrained"
"""The folder of the shipped models."""


@dataclass(frozen=True)
class Pretrained:
    """A shipped model: its name, its kind, the first paragraph of its card, its measured scores, its size."""

    name: str
    kind: str
    summary: str
    metrics: dict[str, Any]
    mebibytes: float

    @property
    def headline(self) -> str:
        """The scores that say most about it."""
        return registry.entry(self.kind).declaration.scores(self.metrics)


def pretrained_models() -> list[Pretrained]:
    """Every model that comes with regard, by name; imports no torch."""
    found = []
    for path in sorted(PRETRAINED.glob("*/config.json")):
        folder = path.parent
        kind = json.loads(path.read_text(encoding="utf-8"))["system"]
        summary = card_summary((folder / "MODEL_CARD.md").read_text(encoding="utf-8"))
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        found.append(Pretrained(folder.name, kind, summary, metrics, size))
    return found


def card_summary(card: str) -> str:
    """The first paragraph of a model card."""
    about = dropwhile(lambda line: not line or line.startswith("#"), card.splitlines())
    return " ".join(takewhile(bool, about))


@checked
def load(name: str | os.PathLike[str], *, device: "str | torch.device | None" = None, trust: bool = False) -> Any:
    """Load a shipped model by its name, or a saved one by its folder: a Translator, a Captioner, an ImageClassifier...

    The model is in evaluation mode, on the GPU when there is one unless `device` says otherwise. Type checkers do not
    know its class: `Translator.load(name)` is a Translator for them too, and refuses other models. For `trust`, see
    `System.load`. The folder of an exported model gives the same verb without torch, on the CPU.
    """
    from regard.systems.folder import find_model, kind_of

    folder = find_model(name)
    return load_as(registry.entry(kind_of(folder), str(folder / "config.json")), folder, device=device, trust=trust)


def load_as(
    found: registry.Entry,
    name: str | os.PathLike[str],
    *,
    device: "str | torch.device | None" = None,
    trust: bool = False,
) -> Any:
    """Load a model, exported or not, that must be of a given system."""
    return class_for(found, name).load(name, device=device, trust=trust)


def class_for(found: registry.Entry, name: str | os.PathLike[str]) -> Any:
    """The class that a model of a system is loaded with: its System, or its ExportedSystem for an exported folder."""
    from regard.systems.folder import exported_table, find_model

    if exported_table(find_model(name)) is None:
        return found.system
    if found.exported is None:
        raise OptionError(f"This version of regard cannot run an exported model of the system {found.name!r}.")
    return found.exported
