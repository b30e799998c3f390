"""Converting drawn or photographed characters to the style of MNIST."""

import numpy as np
from jaxtyping import UInt8
from PIL import Image


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
