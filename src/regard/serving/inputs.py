"""From the inputs of a request to those of a model. No input is ever taken for the name of a file."""

import base64
import binascii
from typing import Any

from PIL import Image

from regard.data.images import open_image
from regard.errors import DataError
from regard.serving.budget import Pixels
from regard.serving.schemas import Pair
from regard.serving.settings import ServerSettings
from regard.systems.system import System


def read_inputs(system: type[System], given: Any, settings: ServerSettings) -> list[Any]:
    """The inputs of a request, decoded; what cannot be decoded is a RegardError. Takes a while for large images."""
    listed = [given] if system.is_one(given) else given
    pixels = Pixels(settings)
    return [read_input(system, each, f"input {number}", settings, pixels) for number, each in enumerate(listed, 1)]


def read_input(
    system: type[System], given: Any, name: str, settings: ServerSettings, pixels: Pixels | None = None
) -> Any:
    """One input of a request, decoded; errors call it by its name."""
    if isinstance(given, Pair):
        return given.premise, given.hypothesis
    return read_image(given, name, settings, pixels) if system.takes_images else given


def read_image(uri: str, name: str, settings: ServerSettings, pixels: Pixels | None = None) -> Image.Image:
    """The image of a data URI, one of those that share `pixels`."""
    pixels = pixels or Pixels(settings)
    try:
        content = base64.b64decode(uri.partition(",")[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"The {name} is no valid data URI: {error}.") from None
    option = " (the limit is the server's --max-megapixels)"
    image = open_image(content, name=f"The image of {name}", max_pixels=pixels.most, limited_by=option)
    pixels.take(*image.size)
    return image
