"""The options of `recognize`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Literal

from regard.config import Checked, PositiveInt
from regard.errors import OptionError


@dataclass(frozen=True)
class RecognitionOptions(Checked):
    """Options of `recognize`."""

    top: PositiveInt = 5
    """Number of most probable classes to report."""


@dataclass(frozen=True)
class RecognitionTest(Checked):
    """What an image classifier is evaluated on."""

    folder: str = ""
    """Folder with the images."""
    format: Literal["mnist", "cifar10", "folders"] = "folders"
    """mnist: IDX files; cifar10: binary files, their archive, or mosaics; folders: one folder for each class."""

    def check(self) -> None:
        """Rules between the fields."""
        if not self.folder:
            raise OptionError(
                "Give the folder with the test images (folder), and its format if it is mnist or cifar10."
            )
