"""How an image classifier learns: all images on the device, augmented there, a batch at a time."""

from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader
from regard.encoders.efficientnet import EfficientNetLite
from regard.encoders.image_networks import TimmNet
from regard.errors import DataError, OptionError
from regard.systems.recognize.config import RecognitionData, RecognitionTrain
from regard.systems.recognize.data import ImageSplits, cutout, random_crop, random_flip, read_splits
from regard.systems.recognize.model import ImageClassifier
from regard.systems.system import choose_device
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment, tensor_checksum
from regard.training.task import Task

BATCH_SIZE = 128
"""Images in a batch, where their number is chosen automatically."""
ImageBatch = tuple[UInt8[Tensor, "b c h w"], Int[Tensor, "b"]]


class RecognitionTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "images"
    settings: RecognitionTrain

    def __init__(self, model: ImageClassifier, settings: RecognitionTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model = model

    def loss(self, batch: ImageBatch) -> Tensor:
        """Cross-entropy of the classes of augmented images."""
        images, labels = batch
        logits = self.model.net(self._augmented(self.model.normalised(images))).float()
        loss = functional.cross_entropy(logits, labels, label_smoothing=self.settings.label_smoothing)
        self.log("loss", loss, batch_size=len(labels))
        return loss

    def validate(self, batch: ImageBatch) -> None:
        """Loss and accuracy on the images as they are."""
        images, labels = batch
        logits = self.model(images).float()
        self.log("valid_loss", functional.cross_entropy(logits, labels), batch_size=len(labels))
        right = 100 * (logits.argmax(-1) == labels).float().mean()
        self.log("valid_accuracy", right, batch_size=len(labels))

    def make_optimizer(self) -> torch.optim.Optimizer:
        """AdamW or SGD; only matrices and filters have weight decay."""
        settings, fused = self.settings, self.may_fuse or None
        parameters = list(self.model.parameters())
        groups = [
            {"params": [each for each in parameters if each.ndim > 1], "weight_decay": settings.weight_decay},
            {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},
        ]
        if settings.optimizer == "adam":
            return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=fused)
        nesterov = settings.momentum > 0
        return torch.optim.SGD(
            groups, settings.learning_rate, momentum=settings.momentum, nesterov=nesterov, fused=fused
        )

    def _augmented(self, images: Tensor) -> Tensor:
        images = random_crop(images, self.settings.crop)
        if self.settings.flip:
            images = random_flip(images)
        return cutout(images, self.settings.cutout).contiguous(memory_format=torch.channels_last)


class RecognitionExperiment(Experiment[ImageClassifier]):
    """Labelled images in, a trained classifier out."""

    Data = RecognitionData
    Train = RecognitionTrain
    file_fields = ("folder", "test_folder")
    score = "valid_accuracy"

    @property
    def half_precision_on_gpu(self) -> bool:
        """Convolutional networks train in bfloat16."""
        return True

    def read_data(self) -> ImageSplits:
        """The images of the recipe."""
        return read_splits(self.recipe.data, self.recipe.model, progress=self.progress)

    def checksums(self, splits: ImageSplits) -> dict[str, str]:
        """Of the pixels and classes of each part."""
        parts = {name: part for name, part in vars(splits).items() if part is not None}
        return {name: tensor_checksum(part.images, part.labels) for name, part in parts.items()}

    def build(self, splits: ImageSplits) -> ImageClassifier:
        """A new classifier of the classes that the images show."""
        config = self.recipe.model
        model = ImageClassifier(config, splits.train.classes)
        model.learn_normalisation(splits.train.images)
        if not self.recipe.train.pretrained:
            return model
        match model.net:
            case EfficientNetLite():
                if config.channels != 3:
                    raise OptionError(f"The published parameters are for RGB; got channels {config.channels}.")
                model.net.features = type(model.net).pretrained().features
                model.mean.fill_(127.0)
                model.deviation.fill_(128.0)
            case TimmNet():
                model.net = TimmNet(
                    config.architecture.removeprefix("timm:"),
                    len(splits.train.classes),
                    channels=config.channels,
                    pretrained=True,
                )
            case _:
                raise OptionError(f"There are no published parameters of {config.architecture} to start from.")
        return model.train()

    def check_model(self, model: ImageClassifier, splits: ImageSplits) -> None:
        """The classes must be the same."""
        if list(model.labels) != list(splits.train.classes):
            raise DataError(
                f"The model knows the classes {list(model.labels)}, and the images show {list(splits.train.classes)}."
            )

    def task(self, model: ImageClassifier, splits: ImageSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """Batches of images, gathered on the device."""
        settings, device = self.recipe.train, choose_device()
        # With channels last, convolutions need not change the layout of each map: faster on GPU and CPU alike.
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images = splits.train.to(device)
        train = load_batches(
            lambda size: images.loader(batch_size=size, shuffle=True, seed=settings.seed),
            settings.batch_size,
            usual=BATCH_SIZE,
        )
        valid = splits.valid.to(device).loader(batch_size=max(1000, settings.batch_size), shuffle=False)
        return RecognitionTask(model, settings, total_steps=settings.epochs * len(train)), train, valid

    def test(self, model: ImageClassifier, splits: ImageSplits) -> dict[str, Any]:
        """Accuracy on the test images, by which nothing was chosen."""
        metrics: dict[str, Any] = {"train_images": len(splits.train), "valid_images": len(splits.valid)}
        if splits.test is not None:
            found = model.probabilities(splits.test.images).argmax(-1)
            accuracy = 100 * float((found == splits.test.labels).double().mean())
            metrics |= {"test_accuracy": accuracy, "test_images": len(splits.test)}
        return metrics
