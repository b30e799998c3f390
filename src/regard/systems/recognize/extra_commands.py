"""A further command of image classifiers: the table of the layers of a network."""

from regard.cli.io import print_line
from regard.errors import OptionError


def layers(network: str, *, size: str = "", classes: int = 0) -> None:
    """Tabulate the layers of a network: output sizes, receptive fields, parameters, and pixels that a stride skips.

    `regard layers vgg16` lists the 138 million parameters of the published network under the names of its checkpoints.
    Nothing is computed from an image.

    Parameters
    ----------
    network
        A network by its name, such as lenet5, alexnet, vgg16 or vgg19, or timm:NAME.
    size
        Channels, height and width of an image, such as 3x224x224; by default those that the network was made for.
    classes
        Number of classes; by default those of the data that the network was made for.
    """
    import torch

    from regard.encoders.image_networks import MADE_FOR, make_net
    from regard.encoders.layer_table import layer_table

    channels, side, own_classes = MADE_FOR.get(network, (3, 224, 1000))
    image = (channels, side, side)
    if size:
        parts = size.split("x")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and int(part) for part in parts):
            raise OptionError(f"--size is CHANNELSxHEIGHTxWIDTH, such as {channels}x{side}x{side}; got {size!r}.")
        image = (int(parts[0]), int(parts[1]), int(parts[2]))
    if classes < 0:
        raise OptionError(f"--classes must be 1 or more, or 0 for those of the network; got {classes}.")
    with torch.device("meta"):
        net = make_net(network, classes or own_classes, channels=image[0], size=image[1])
    print_line(str(layer_table(net, image)))
