"""What the configs of all systems share; like them, this imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from regard.config import Checked


@dataclass(frozen=True)
class Options(Checked):
    """Options of every verb: what to report."""

    traces: Literal["main", "all", "none"] = "main"
    """Attention to report: one map of what was attended to; every layer and head, where a model has several; or
    nothing."""

    @property
    def takes_documents(self) -> bool:
        """Whether an input is a whole document, for which a command names a file, and its result one too."""
        return False


@dataclass(frozen=True)
class Arguments(Checked):
    """What the command of a verb takes beside the options of the verb; a system has them in a class of its own."""

    def completed(self, options: Any) -> Any:
        """The options of the verb with what these arguments need of it."""
        return options

    @property
    def reads(self) -> tuple[str, ...]:
        """Files that are inputs."""
        return ()

    @property
    def line_files(self) -> Mapping[str, str]:
        """Files to write with a line for each result, by the options that name them."""
        return {}

    @property
    def writes(self) -> Mapping[str, str]:
        """Files to write beside the result of one input, by the options that name them."""
        return {}


@dataclass(frozen=True)
class ExampleText:
    """A text to try a model with."""

    name: str
    """What it is called."""
    text: str
    language: str = ""
    """The language that a model must read, such as "en"; "" for every model."""
    model: str = ""
    """The one model that it is for; "" for all that read the language."""
