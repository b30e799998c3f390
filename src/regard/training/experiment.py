"""The contract of an experiment: what a recipe says about one system, from reading the data to testing the model."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from regard.config import Checked
from regard.data.batches import BatchLoader
from regard.files import checksum
from regard.training.recipes import Recipe
from regard.training.settings import TrainSettings
from regard.training.task import Task

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Trained(Generic[Model]):
    """The result of training: model, folder, metrics."""

    folder: Path
    """The model's folder."""
    model: Model
    metrics: dict[str, Any]
    signum: int = 0
    """The signal that ended the training early, such as that of Ctrl-C; 0 for none."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended the training early."""
        return bool(self.signum)


class Experiment(Generic[Model]):
    """How one system learns: subclasses define `read_data`, `build`, `task` and `test`, called in this order."""

    Data: ClassVar[type[Checked]]
    """The table [data]."""
    Train: ClassVar[type[TrainSettings]]
    """The table [train]."""
    file_fields: ClassVar[tuple[str, ...]] = ()
    """The fields of [data] that say where the data is; a resumed run may change them where the data is the same."""
    score: ClassVar[str]
    """The validation metric by which the best checkpoint is chosen; higher is better."""

    def __init__(self, recipe: Recipe, folder: Path, *, progress: bool) -> None:
        self.recipe, self.folder, self.progress = recipe, folder, progress
        self.notes: dict[str, Any] = {}
        """What building the model found out, for its metrics; a resumed run finds it here."""

    def checksums(self, splits: Any) -> dict[str, str]:
        """The SHA-256 of the data by its name: of the files that `file_fields` name, unless a subclass knows better.

        They are recorded, and a run is resumed only where they are the same.
        """
        data = self.recipe.data
        named = {name: getattr(data, name) for name in self.file_fields if name != "folder"}
        paths = {name: _on_disk(Path(data.folder), value) for name, value in named.items() if value}
        return {name: checksum(path) for name, path in paths.items() if path is not None}

    @property
    def half_precision_on_gpu(self) -> bool:
        """Whether precision "auto" means bfloat16 on a GPU."""
        return False

    def read_data(self) -> Any:
        """Read the data: what to train on, to validate with and to test with."""
        raise TypeError(f"{type(self).__name__} does not define read_data().")

    def build(self, splits: Any) -> Model:
        """A new model for this data."""
        raise TypeError(f"{type(self).__name__} does not define build(splits).")

    def check_model(self, model: Model, splits: Any) -> None:
        """Raise an error where a trained model to start from does not fit this data."""

    def task(self, model: Model, splits: Any) -> tuple[Task, BatchLoader, BatchLoader]:
        """The steps of training and validation, and the batches of both."""
        raise TypeError(f"{type(self).__name__} does not define task(model, splits).")

    def test(self, model: Model, splits: Any) -> dict[str, Any]:
        """The metrics of the trained model, which is in evaluation mode and on its device."""
        raise TypeError(f"{type(self).__name__} does not define test(model, splits).")


def tensor_checksum(*tensors: Tensor) -> str:
    """The SHA-256 of the shapes and contents of tensors."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(f"{tuple(tensor.shape)} {tensor.dtype}\n".encode())
        total.update(tensor.cpu().contiguous().numpy().data)
    return total.hexdigest()


def _on_disk(folder: Path, name: str) -> Path | None:
    """The file or folder that a field names: as it is, with the ending of a compressed file, or its archive."""
    for path in (folder / name, Path(name)):
        compressed = (path.with_name(path.name + ending) for ending in (".gz", ".xz", ".zip"))
        archives = (outer for outer in path.parents if outer.is_file())
        for candidate in (path, *compressed, *archives):
            if candidate.exists():
                return candidate
    return None
