"""Images as data URIs, which travel inside JSON and are shown by a browser as they are."""

import base64
import binascii
import io
from typing import Any

from regard.errors import DataError

_PREFIXES = ("data:image/png;base64,", "data:image/jpeg;base64,")
# Images up to this number of pixels are stored without loss.
_MAX_PIXELS_OF_PNG = 128 * 128
_JPEG_QUALITY = 90


def to_data_uri(image: Any) -> str:
    """Encode a Pillow image or a uint8 array: a small image as PNG, without loss, a photograph as JPEG."""
    from PIL import Image

    try:
        opened = image if isinstance(image, Image.Image) else Image.fromarray(image)
    except (AttributeError, TypeError, ValueError) as error:  # no array, or one of other sizes or numbers
        raise DataError(
            f"The image of a trace must be a Pillow image or a uint8 array (h, w, 3); got {type(image).__name__}."
        ) from error
    kind = "png" if opened.width * opened.height <= _MAX_PIXELS_OF_PNG else "jpeg"
    stream = io.BytesIO()
    opened.convert("RGB").save(stream, kind, **({"quality": _JPEG_QUALITY} if kind == "jpeg" else {}))
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"


def from_data_uri(uri: str) -> bytes:
    """The bytes of the PNG or JPEG file in a data URI."""
    prefix, comma, content = uri.partition(",")
    if prefix + comma not in _PREFIXES:
        raise DataError(f"The image of a trace must be a data URI, {' or '.join(_PREFIXES)}...; got {uri!r:.60}.")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"The image of a trace is no valid data URI: {error}.") from None


def check_data_uri(uri: Any) -> None:
    """Refuse anything but a PNG or JPEG data URI, so that a page may embed it."""
    if not isinstance(uri, str):
        raise DataError(f"The image of a trace must be a data URI; got {uri!r:.60}.")
    from_data_uri(uri)
