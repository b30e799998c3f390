"""Training an image classifier: all pictures on the device, changed at random there, a batch at a time."""

import time
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from torch.nn import functional

from regard.data.augmentation import cutout, random_crop, random_flip
from regard.data.labelled_images import LabelledImages, read_cifar10, read_class_folders, read_mnist
from regard.encoders.efficientnet import EfficientNetLite0
from regard.encoders.networks import TimmNet
from regard.errors import DataError, OptionError
from regard.systems.image_classifier import ImageClassifier
from regard.training.fitting import fit
from regard.training.image_recipe import ImageRecipe, ImageTrainConfig
from regard.training.task import Task

PictureBatch = tuple[UInt8[Tensor, "b c h w"], Int[Tensor, "b"]]


class RecognitionTask(Task):
    """What one step of training and of validation does."""

    def __init__(self, model: ImageClassifier, config: ImageTrainConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        self.model, self.config = model, config
        self._clock = time.perf_counter()
        self._seen = 0

    def training_step(self, batch: PictureBatch, index: int) -> Tensor:
        """Cross-entropy of the classes of pictures changed at random."""
        images, labels = batch
        logits = self.model.net(self._changed(self.model.normalised(images))).float()
        loss = functional.cross_entropy(logits, labels, label_smoothing=self.config.label_smoothing)
        self._seen += len(labels)
        if index % 20 == 19:
            now = time.perf_counter()
            self.log("pictures/s", self._seen / (now - self._clock))
            self._clock, self._seen = now, 0
        self.log("loss", loss.detach(), batch_size=len(labels))
        return loss

    def validation_step(self, batch: PictureBatch, index: int) -> None:
        """Loss and accuracy on the pictures as they are."""
        images, labels = batch
        logits = self.model(images).float()
        self.log("valid_loss", functional.cross_entropy(logits, labels), batch_size=len(labels))
        right = 100 * (logits.argmax(-1) == labels).float().mean()
        self.log("valid_accuracy", right, prog_bar=True, batch_size=len(labels))

    def on_validation_epoch_end(self) -> None:
        """Tell the step size how good the validation was."""
        self.note_validation(float(self.trainer.callback_metrics["valid_accuracy"]))

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Adam or SGD; only weights that are matrices or filters decay."""
        weights = list(self.model.parameters())
        groups = [
            {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": self.config.weight_decay},
            {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
        ]
        if self.config.optimizer == "adam":
            return torch.optim.AdamW(groups, lr=self.config.learning_rate)
        nesterov = self.config.momentum > 0
        return torch.optim.SGD(groups, self.config.learning_rate, momentum=self.config.momentum, nesterov=nesterov)

    def _changed(self, images: Tensor) -> Tensor:
        images = random_crop(images, self.config.crop)
        if self.config.flip:
            images = random_flip(images)
        return cutout(images, self.config.cutout).contiguous(memory_format=torch.channels_last)


def train_classifier(
    recipe: ImageRecipe, folder: Path, start_from: ImageClassifier | None, *, resume: bool, progress: bool
) -> tuple[ImageClassifier, dict[str, Any]]:
    """Train a classifier, and test it on pictures that nothing was chosen by."""
    config, device = recipe.train, "cuda" if torch.cuda.is_available() else "cpu"
    train, valid, test = read_pictures(recipe, progress=progress)
    model = _model(recipe, train) if start_from is None else start_from.to("cpu").train()
    if model.labels != list(train.classes):
        raise DataError(f"The model tells {model.labels} apart, and the pictures show {list(train.classes)}.")
    train, valid = train.to(device), valid.to(device)
    loaders = (
        train.loader(batch_size=config.batch, shuffle=True, seed=config.seed),
        valid.loader(batch_size=max(1000, config.batch), shuffle=False),
    )
    # With channels last, convolutions need not change the layout of each map: faster on GPU and CPU alike.
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    task = RecognitionTask(model, config, total_steps=config.epochs * len(loaders[0]))
    metrics = fit(task, loaders, folder, score="valid_accuracy", half_on_gpu=True, resume=resume, progress=progress)
    model.to(device).eval()
    metrics |= {"train_pictures": len(train), "valid_pictures": len(valid)}
    if len(test):
        found = model.probabilities(test.images).argmax(-1)
        accuracy = 100 * float((found == test.labels).double().mean())
        metrics |= {"test_accuracy": accuracy, "test_pictures": len(test)}
    return model, metrics


def read_pictures(
    recipe: ImageRecipe, *, progress: bool = True
) -> tuple[LabelledImages, LabelledImages, LabelledImages]:
    """The pictures to train on, to validate with, and to test with; of the last maybe none."""
    config, size, channels = recipe.data, recipe.model.size, recipe.model.channels
    if config.format == "folders":
        train = read_class_folders(config.folder, size=size, channels=channels, progress=progress)
        if config.test_folder:
            test = read_class_folders(config.test_folder, size=size, channels=channels, progress=progress)
        else:
            train, test = train.hold_out(min(config.held_out_test, len(train) // 10))
    else:
        train, test = (read_mnist if config.format == "mnist" else read_cifar10)(config.folder)
    if test.classes != train.classes:
        raise DataError(f"The test pictures show {list(test.classes)}, the training pictures {list(train.classes)}.")
    if tuple(train.images.shape[1:]) != (channels, size, size):
        raise OptionError(
            f"The pictures are {' x '.join(map(str, train.images.shape[1:]))}; the model takes {channels} x {size} x "
            f"{size}. Set --model.channels and --model.size."
        )
    train, valid = train.hold_out(max(1, min(config.held_out, len(train) // 10)))
    return train, valid, test


def _model(recipe: ImageRecipe, train: LabelledImages) -> ImageClassifier:
    model = ImageClassifier(recipe.model, train.classes)
    model.learn_normalisation(train.images)
    if not recipe.train.pretrained:
        return model
    match model.net:
        case EfficientNetLite0():
            if recipe.model.channels != 3:
                raise OptionError(f"The published weights are for RGB; got channels={recipe.model.channels}.")
            model.net.features = EfficientNetLite0.pretrained().features
            model.mean.fill_(127.0)
            model.deviation.fill_(128.0)
        case TimmNet():
            model.net = TimmNet(
                recipe.model.architecture.removeprefix("timm:"),
                len(train.classes),
                channels=recipe.model.channels,
                pretrained=True,
            )
        case _:
            raise OptionError(f"There are no published weights of {recipe.model.architecture} to begin with.")
    return model.train()
