"""The table of systems: what `train`, `evaluate`, `models`, `load` and the command line find a system by.

A new system is its own folder, whose `__init__.py` defines a FAMILY, its recipes, its docs page and its tests, plus one
line in SYSTEMS. The heavy parts are named by import paths, so that listing models and commands imports no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.config import Checked, nearest_hint
from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.systems.system import System
    from regard.training.experiment import Experiment


@dataclass(frozen=True)
class Family:
    """The parts of one system; those given as import paths, `module:name`, are imported when they are needed."""

    system: str
    """The System class: its config, its assets, its verb."""
    experiment: str
    """The Experiment class: what its recipes say, and how it is trained and tested."""
    evaluate: str
    """The function (model, test_set) -> Report."""
    test_set: type[Checked]
    """What a model is evaluated on: the options that `regard evaluate` takes for this system."""
    compare: str = ""
    """The function (reports) -> rich renderable that compares several models; "" for none."""
    commands: dict[str, str] = field(default_factory=dict)
    """Its own commands, first that of its verb: name -> import path of the function."""
    evidence: str = ""
    """The function (model, input, options, result) -> Evidence, by which `trust` judges attention; "" for none."""
    example: str = ""
    """A command that tries a trained model; {model} stands for its folder."""
    headline: dict[str, str] = field(default_factory=dict)
    """The metrics to show first, in order: name in metrics.json -> how it is written, such as "BLEU {:.1f}"."""
    scales: dict[str, str] = field(default_factory=dict)
    """For those of them that do not explain themselves: what the number means, and where its scale begins and ends."""
    tested: str = ""
    """What they were measured on, with names in metrics.json in braces: "{test_sentences:,} test sentences"."""

    @property
    def verb(self) -> str:
        """What a model of this family does, the first of its commands: translate, caption, ..."""
        return next(iter(self.commands))

    def scores(self, metrics: Mapping[str, Any]) -> str:
        """The scores that say most about a model."""
        return ", ".join(form.format(metrics[name]) for name, form in self.headline.items() if name in metrics)

    def scale(self, metrics: Mapping[str, Any]) -> str:
        """What these scores mean; "" where they explain themselves."""
        return " ".join(meaning for name, meaning in self.scales.items() if name in metrics)

    def test_of(self, metrics: Mapping[str, Any]) -> str:
        """What these scores were measured on; "" where that is not known."""
        try:
            return self.tested.format_map(metrics)
        except KeyError:
            return ""

    def load_system(self) -> "type[System]":
        """Import the System class."""
        found: type[System] = resolve(self.system)
        return found

    def load_experiment(self) -> "type[Experiment[Any]]":
        """Import the Experiment class."""
        found: type[Experiment[Any]] = resolve(self.experiment)
        return found


SYSTEMS: dict[str, str] = {
    "translate": "regard.systems.translate:FAMILY",
    "caption": "regard.systems.caption:FAMILY",
    "recognize": "regard.systems.recognize:FAMILY",
    "glimpse": "regard.systems.glimpse:FAMILY",
    "classify": "regard.systems.classify:FAMILY",
    "tape": "regard.systems.tape:FAMILY",
    "read": "regard.systems.read:FAMILY",
}
"""Every system by its kind, as config.json and the line `system = ...` of a recipe name it."""


def family(kind: str, place: str = "") -> Family:
    """The family of a kind of system; an unknown kind is an OptionError that begins with `place`."""
    if kind not in SYSTEMS:
        hint = nearest_hint(kind, SYSTEMS)
        before = f"{place}: " if place else ""
        raise OptionError(f"{before}system must be one of {', '.join(SYSTEMS)}; got {kind!r:.200}.{hint}")
    found: Family = resolve(SYSTEMS[kind])
    return found


def families() -> dict[str, Family]:
    """All families by their kind."""
    return {kind: family(kind) for kind in SYSTEMS}


def resolve(path: str) -> Any:
    """Import `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
