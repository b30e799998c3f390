"""The systems, and where their parts are: what `load`, `train`, `evaluate`, the commands and the server find them by.

A new system is its own folder and its name in SYSTEMS; the folder, the name and the `kind` of its System are equal. Its
parts are found by convention, a class as the only one of its base class that the file defines; all but the first are
imported when they are asked for:

    __init__.py        SYSTEM, a Declaration                              required
    model.py           a System                                           required
    exported.py        an ExportedSystem: the same verb in ONNX Runtime, without torch
    training.py        an Experiment                                      required
    config.py          Checked classes named ...Options and ...Test       required
                       Arguments named ...Arguments: further ones of its command
    evaluation.py      evaluate(model, test_set, name=)                   required
                       compare(reports): where models are compared in a way of their own
    extra_commands.py  the functions of further commands, as declared
    export.py          export(model, folder, precision) -> Exported: ONNX graphs
    faithfulness.py    evidence(model, input, options, result)
    inspection.py      functions marked with @endpoint: routes of the server
    examples.py        examples(): inputs to try
    page.js            its page in the workbench

What is not marked is optional. Listing systems imports their declarations alone, and no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from regard.config import Checked, nearest_hint
from regard.errors import OptionError
from regard.systems.config import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regard.systems.export import Exported
    from regard.systems.exported import ExportedSystem
    from regard.systems.report import Report
    from regard.systems.system import System
    from regard.training.experiment import Experiment

Part = TypeVar("Part")
SYSTEMS = ("translate", "caption", "recognize", "classify", "read", "tape", "glimpse")
"""Every system of regard by its name, which is its verb: the folder in `regard.systems`, the command, the route, the
line `system = ...` of a recipe and of config.json."""
MODULES = {name: f"{__package__}.{name}" for name in SYSTEMS} | {
    each.name: each.value for each in entry_points(group="regard.systems")
}
"""The package of each system, or the one module that holds all of it. Other packages bring systems by entry points of
the group `regard.systems`; a program adds its own with MODULES["name"] = "package.module"."""


@dataclass(frozen=True)
class Declaration:
    """What a system says about itself without importing its parts."""

    summary: str
    """What it does, in one sentence."""
    default_model: str = ""
    """The shipped model that answers where none is named; "" where a model must be named."""
    inputs: str = "inputs"
    """What the command of its verb takes, in the plural, such as texts."""
    about_inputs: str = "What to answer."
    """What they are, for the help of the command."""
    about: str = ""
    """What the help of the command says below the summary."""
    commands: tuple[str, ...] = ()
    """Further commands than that of its verb: functions of `extra_commands.py`, named with "_" for "-"."""
    example: str = ""
    """A command that tries a trained model; {model} stands for its folder."""
    headline: Mapping[str, str] = field(default_factory=dict)
    """The metrics to show first, in order: name in metrics.json -> how it is written, such as "BLEU {:.1f}"."""
    task: str = ""
    """What hubs of models call what it does, such as translation; "" where they have no name for it."""
    scales: Mapping[str, str] = field(default_factory=dict)
    """For those of them that do not explain themselves: what the number means, and where its scale begins and ends."""
    measured_on: str = ""
    """What they were measured on, with names in metrics.json in braces: "{test_sentences:,} test sentences"."""

    def scores(self, metrics: Mapping[str, Any]) -> str:
        """The scores that say most about a model."""
        return ", ".join(form.format(metrics[name]) for name, form in self.headline.items() if name in metrics)

    def scale(self, metrics: Mapping[str, Any]) -> str:
        """What these scores mean; "" where they explain themselves."""
        return " ".join(meaning for name, meaning in self.scales.items() if name in metrics)

    def test_of(self, metrics: Mapping[str, Any]) -> str:
        """What these scores were measured on; "" where that is not known."""
        try:
            return self.measured_on.format_map(metrics)
        except KeyError:
            return ""


@dataclass(frozen=True)
class Entry:
    """A system: its declaration, and its parts, each imported when it is asked for."""

    name: str
    module: str
    """Its package, or the one module that holds all of it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its name and module, without the parts that have been imported."""
        return _entry, (self.name, self.module)

    @cached_property
    def home(self) -> ModuleType:
        """The package or module itself."""
        return import_module(self.module)

    @property
    def declaration(self) -> Declaration:
        """What it says about itself."""
        return cast(Declaration, self.home.SYSTEM)

    @property
    def page(self) -> Path | None:
        """The module of its page in the workbench, `page.js` in its folder; None where it has none."""
        paths = (Path(folder, "page.js") for folder in getattr(self.home, "__path__", ()))
        return next((path for path in paths if path.is_file()), None)

    def part(self, role: str) -> ModuleType | None:
        """The module of a part, such as "model" or "inspection"; None where the system has none."""
        if not hasattr(self.home, "__path__"):
            return self.home
        path = f"{self.module}.{role}"
        return import_module(path) if find_spec(path) else None

    @cached_property
    def system(self) -> "type[System]":
        """The System class."""
        from regard.systems.system import System

        found = self._only_class("model", System)
        if (kind := getattr(found, "kind", None)) != self.name:
            raise TypeError(f"{found.__name__}.kind must be {self.name!r}, the name of its system; got {kind!r}.")
        return found

    @cached_property
    def exported(self) -> "type[ExportedSystem] | None":
        """The ExportedSystem class; None where models cannot run without torch."""
        from regard.systems.exported import ExportedSystem

        return self._only_class("exported", ExportedSystem) if self.part("exported") else None

    @cached_property
    def experiment(self) -> "type[Experiment[Any]]":
        """The Experiment class."""
        from regard.training.experiment import Experiment

        return self._only_class("training", Experiment)

    @cached_property
    def options(self) -> type[Checked]:
        """The options of its verb."""
        return self._only_class("config", Checked, ending="Options")

    @cached_property
    def arguments(self) -> type[Arguments]:
        """What the command of its verb takes beside these."""
        found = self._classes("config", Arguments, "Arguments")
        return found.pop() if found else Arguments

    @cached_property
    def test_set(self) -> type[Checked]:
        """What a model is evaluated on: the options of `regard evaluate`."""
        return self._only_class("config", Checked, ending="Test")

    @property
    def tables(self) -> dict[str, type[Checked]]:
        """The tables of its recipes."""
        return {"data": self.experiment.Data, "model": self.system.Config, "train": self.experiment.Train}

    @property
    def evaluate(self) -> "Callable[..., Report]":
        """The function (model, test_set, name=) -> Report."""
        return cast("Callable[..., Report]", self._function("evaluation", "evaluate"))

    @property
    def compare(self) -> "Callable[..., Any] | None":
        """The function (reports) -> rich renderable by which several models are compared; None for none."""
        return self._function("evaluation", "compare")

    @property
    def endpoints(self) -> "list[Callable[..., Any]]":
        """The functions of `inspection.py` that are marked as endpoints, for the server."""
        return [each for each in vars(self.part("inspection") or object).values() if hasattr(each, "endpoint")]

    @property
    def examples(self) -> "Callable[[], Sequence[Any]] | None":
        """The function () -> inputs to try, each a dataclass; None where there are none."""
        return self._function("examples", "examples")

    @property
    def export(self) -> "Callable[..., Exported] | None":
        """The function (model, folder, precision) -> Exported that writes its ONNX graphs; None where it has none."""
        return self._function("export", "export")

    @property
    def evidence(self) -> "Callable[..., Any] | None":
        """The function (model, input, options, result) -> Evidence, the measure of faithfulness; None for none."""
        return self._function("faithfulness", "evidence")

    def _function(self, role: str, name: str) -> "Callable[..., Any] | None":
        return getattr(self.part(role), name, None)

    def _only_class(self, role: str, base: type[Part], ending: str = "") -> type[Part]:
        """The only subclass of `base`, of a name with this ending, that a part defines itself."""
        found = self._classes(role, base, ending)
        if len(found) != 1:
            named = ", ".join(sorted(each.__name__ for each in found)) or "none"
            wanted = f"class whose name ends in {ending}" if ending else f"subclass of {base.__name__}"
            raise TypeError(f"The system {self.name!r} needs exactly one {wanted} in its part {role}; found {named}.")
        return found.pop()

    def _classes(self, role: str, base: type[Part], ending: str) -> set[type[Part]]:
        part = self.part(role)
        return {
            each
            for each in ([] if part is None else vars(part).values())
            if isinstance(each, type) and each.__module__ == getattr(part, "__name__", None)
            if issubclass(each, base) and each.__name__.endswith(ending)
        }


@cache
def _entry(name: str, module: str) -> Entry:
    return Entry(name, module)


def entry(name: str, place: str = "") -> Entry:
    """The system of this name; an unknown name is an OptionError that begins with `place`."""
    if name not in MODULES:
        hint, before = nearest_hint(name, MODULES), f"{place}: " if place else ""
        raise OptionError(f"{before}system must be one of {', '.join(MODULES)}; got {name!r:.200}.{hint}")
    return _entry(name, MODULES[name])


def entries() -> list[Entry]:
    """All systems, regard's own first."""
    return [entry(name) for name in MODULES]
