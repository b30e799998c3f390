"""Image classification: an image in, the names of what it may show out."""

from dataclasses import dataclass
from typing import Literal

from regard.config import Checked, PositiveInt
from regard.errors import OptionError
from regard.systems.families import Family


@dataclass(frozen=True)
class RecognitionOptions(Checked):
    """Options of `recognize`."""

    top: PositiveInt = 5
    """Number of most probable classes to report."""


@dataclass(frozen=True)
class EvaluationSet(Checked):
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


FAMILY = Family(
    system="regard.systems.recognize.model:ImageClassifier",
    experiment="regard.systems.recognize.training:ImageExperiment",
    evaluate="regard.systems.recognize.evaluation:evaluate",
    test_set=EvaluationSet,
    commands={"recognize": "regard.systems.recognize.command:recognize"},
    example="regard recognize --model {model} IMAGE",
    headline={"test_accuracy": "{:.1f} % right"},
    tested="{test_images:,} test images",
)
