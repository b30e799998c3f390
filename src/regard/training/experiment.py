"""The contract of an experiment: what a recipe says about one system, from reading the data to testing the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import nn

from regard.config import Checked
from regard.data.batches import BatchLoader
from regard.training.recipes import Recipe
from regard.training.settings import TrainSettings
from regard.training.task import Task

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Trained(Generic[Model]):
    """What a run leaves behind."""

    folder: Path
    """The model's folder."""
    model: Model
    metrics: dict[str, Any]
    interrupted: bool = False
    """Whether Ctrl-C ended the training early."""


class Experiment(Generic[Model]):
    """How one system learns; subclasses define the five methods, and the engine calls them in this order."""

    Data: ClassVar[type[Checked]]
    """The table [data]."""
    Train: ClassVar[type[TrainSettings]]
    """The table [train]."""
    score: ClassVar[str]
    """The validation metric by which the best checkpoint is chosen; higher is better."""

    def __init__(self, recipe: Recipe, folder: Path, *, progress: bool) -> None:
        self.recipe, self.folder, self.progress = recipe, folder, progress

    @property
    def half_precision_on_gpu(self) -> bool:
        """Whether precision "auto" means bfloat16 on a GPU."""
        return False

    def read(self) -> Any:
        """Read the data: what to train on, to validate with and to test with."""
        raise TypeError(f"{type(self).__name__} does not define read().")

    def build(self, splits: Any) -> Model:
        """A new model for this data."""
        raise TypeError(f"{type(self).__name__} does not define build(splits).")

    def check_model(self, model: Model, splits: Any) -> None:
        """Raise an error where a trained model that training goes on from does not fit this data."""

    def task(self, model: Model, splits: Any) -> tuple[Task, BatchLoader, BatchLoader]:
        """The steps of training and validation, and the batches of both."""
        raise TypeError(f"{type(self).__name__} does not define task(model, splits).")

    def test(self, model: Model, splits: Any) -> dict[str, Any]:
        """The metrics of the trained model, which is in evaluation mode and on its device."""
        raise TypeError(f"{type(self).__name__} does not define test(model, splits).")
