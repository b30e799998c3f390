"""What an image classifier learns from and is measured on: images with labels."""

from regard.data.labelled_images import LabelledImages, read_cifar10, read_class_folders, read_mnist
from regard.data.splits import Splits
from regard.errors import DataError, OptionError
from regard.systems.recognize.config import RecognitionConfig, RecognitionData, RecognitionTest
from regard.systems.recognize.model import ImageClassifier

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


def read_test(model: ImageClassifier, test_set: RecognitionTest) -> LabelledImages:
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
