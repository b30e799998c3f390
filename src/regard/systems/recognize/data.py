"""What an image classifier learns from and is measured on: images with labels, augmented or drawn as in MNIST."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from PIL import Image
from torch import Tensor
from torch.nn import functional

from regard.data.labelled_images import LabelledImages, read_cifar10, read_class_folders, read_mnist
from regard.data.splits import Splits
from regard.errors import DataError, OptionError
from regard.systems.recognize.config import RecognitionConfig, RecognitionData, RecognitionTest

if TYPE_CHECKING:
    from regard.systems.recognize.model import ImageClassifier

Images = Float[Tensor, "b c h w"]
ImageSplits = Splits[LabelledImages, LabelledImages]


def read_splits(data: RecognitionData, config: RecognitionConfig, *, progress: bool) -> ImageSplits:
    """Images to train on, to validate with and to test with."""
    size, channels = config.image_size, config.channels
    if data.format == "folders":
        train = read_class_folders(data.folder, size=size, channels=channels, progress=progress)
        if data.test_folder:
            test = read_class_folders(data.test_folder, size=size, channels=channels, progress=progress)
        else:
            train, test = train.hold_out(min(data.held_out_test, len(train) // 10))
    else:
        train, test = (read_mnist if data.format == "mnist" else read_cifar10)(data.folder)
    if test.classes != train.classes:
        raise DataError(f"The test images show {list(test.classes)}, the training images {list(train.classes)}.")
    _check_size(train, config, " Set --model.channels and --model.image_size.")
    train, valid = train.hold_out(max(1, min(data.held_out, len(train) // 10)))
    return Splits(train, valid, test if len(test) else None)


def read_test(model: "ImageClassifier", test_set: RecognitionTest) -> LabelledImages:
    """The test images, as the model takes them."""
    config = model.config
    if test_set.format == "folders":
        size, channels = config.image_size, config.channels
        images = read_class_folders(test_set.folder, size=size, channels=channels, progress=True)
    else:
        images = (read_mnist if test_set.format == "mnist" else read_cifar10)(test_set.folder)[1]
    if list(images.classes) != list(model.labels):
        raise DataError(f"The model knows the classes {list(model.labels)}; the images show {list(images.classes)}.")
    _check_size(images, config)
    return images


def _check_size(images: LabelledImages, config: RecognitionConfig, hint: str = "") -> None:
    found, size = tuple(images.images.shape[1:]), config.image_size
    if found != (config.channels, size, size):
        raise OptionError(
            f"The images are {' x '.join(map(str, found))}; the model takes {config.channels} x {size} x {size}.{hint}"
        )


def to_mnist_style(image: Image.Image, size: int) -> UInt8[np.ndarray, "size size"]:
    """Convert an image of a character to grey, light on dark, scaled to 5/7 of `size`, centred by its mass.

    Dark strokes on a light background are inverted. An image of the right size that is already light on dark is
    returned unchanged.
    """
    grey = image.convert("L")
    pixels = np.asarray(grey, dtype=np.float32)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    is_dark_on_light = float(np.median(border)) > 127
    if grey.size == (size, size) and not is_dark_on_light:
        return np.array(grey)
    ink = 255 - pixels if is_dark_on_light else pixels
    ink = np.clip(ink - np.median(255 - border if is_dark_on_light else border), 0, None)
    rows, columns = (np.flatnonzero(ink.max(axis) > ink.max() / 4) for axis in (1, 0))
    if not len(rows) or ink.max() < 16:
        return np.zeros((size, size), np.uint8)
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] * (255 / ink.max())
    scale = size * 5 / 7 / max(ink.shape)
    width, height = (max(1, round(length * scale)) for length in (ink.shape[1], ink.shape[0]))
    small = np.asarray(Image.fromarray(ink.astype(np.uint8)).resize((width, height), Image.Resampling.BOX))
    mass = small.astype(np.float32) / max(1, int(small.sum()))
    top, left = (round(float((size - 1) / 2 - mass.sum(1 - axis) @ np.arange(small.shape[axis]))) for axis in (0, 1))
    top, left = min(max(0, top), size - height), min(max(0, left), size - width)
    out = np.zeros((size, size), np.uint8)
    out[top : top + height, left : left + width] = small
    return out


def random_crop(images: Images, padding: int) -> Images:
    """Shift each image by up to `padding` pixels in both directions; pixels from outside are 0."""
    if not padding:
        return images
    b, c, h, w = images.shape
    device = images.device
    rows, columns = (
        torch.randint(2 * padding + 1, (b, 1), device=device) + torch.arange(length, device=device) for length in (h, w)
    )
    padded = functional.pad(images, (padding,) * 4)
    batch, channels = torch.arange(b, device=device), torch.arange(c, device=device)
    return padded[
        batch[:, None, None, None], channels[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
    ]


def random_flip(images: Images) -> Images:
    """Mirror each image horizontally with probability 1/2."""
    mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(mirrored, images.flip(3), images)


def cutout(images: Images, size: int) -> Images:
    """Set a square of up to size x size pixels of each image to 0; the border may cut it (DeVries and Taylor 2017)."""
    if not size:
        return images
    b, _, h, w = images.shape
    rows, columns = (_random_interval(b, length, size, images.device) for length in (h, w))
    return images.masked_fill(rows[:, None, :, None] & columns[:, None, None, :], 0.0)


def _random_interval(count: int, length: int, size: int, device: torch.device) -> Bool[Tensor, "b n"]:
    first = torch.randint(length, (count, 1), device=device) - size // 2
    distance = torch.arange(length, device=device) - first
    return (distance >= 0) & (distance < size)
