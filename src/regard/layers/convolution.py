"""Convolution and pooling from their definitions: the plain reference of torch's own, and the sizes that they give."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import OptionError, ShapeError


def output_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """How many windows fit on a line: w_out = floor((w_in + 2p - k) / s) + 1; a dilated kernel spans d (k - 1) + 1."""
    if min(size, kernel, stride, dilation) < 1 or padding < 0:
        raise OptionError(
            f"Sizes, kernels, strides and dilations are 1 or more and padding is 0 or more; got size={size}, "
            f"kernel={kernel}, stride={stride}, padding={padding}, dilation={dilation}."
        )
    spare = size + 2 * padding - (dilation * (kernel - 1) + 1)
    if spare < 0:
        raise ShapeError(
            f"A kernel of {kernel} (dilation {dilation}) does not fit on {size} pixels with a padding of {padding}. "
            "Take a larger picture or more padding."
        )
    return spare // stride + 1


def uncovered(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """How many pixels at the end of a line no window reaches, because the stride does not come out even."""
    windows = output_size(size, kernel, stride=stride, padding=padding, dilation=dilation)
    reached = (windows - 1) * stride + dilation * (kernel - 1) + 1 - padding
    return max(0, size - reached)


def pad(
    maps: Float[Tensor, "b c h w"], padding: int, value: float = 0.0
) -> Float[Tensor, "b c h+2*{padding} w+2*{padding}"]:
    """The maps with a frame of `value` around them."""
    b, c, h, w = maps.shape
    framed = maps.new_full((b, c, h + 2 * padding, w + 2 * padding), value)
    framed[:, :, padding : padding + h, padding : padding + w] = maps
    return framed


def convolve(
    maps: Float[Tensor, "b c h w"],
    filters: Float[Tensor, "f c kh kw"],
    bias: Float[Tensor, "f"] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "b f oh ow"]:
    """y[f, i, j] = b[f] + sum_{c, u, v} w[f, c, u, v] x[c, s i + u - p, s j + v - p], with x = 0 outside the picture.

    As in every deep learning library, the filter is not turned round: this is a correlation.
    """
    height, width = filters.shape[2:]
    rows = output_size(maps.shape[2], height, stride=stride, padding=padding)
    columns = output_size(maps.shape[3], width, stride=stride, padding=padding)
    framed = pad(maps, padding)
    out = maps.new_zeros(maps.shape[0], filters.shape[0], rows, columns)
    for i in range(rows):
        for j in range(columns):
            window = framed[:, :, i * stride : i * stride + height, j * stride : j * stride + width]
            out[:, :, i, j] = torch.einsum("bcuv,fcuv->bf", window, filters)
    return out if bias is None else out + bias[:, None, None]


def max_pool(
    maps: Float[Tensor, "b c h w"], kernel: int, *, stride: int | None = None, padding: int = 0
) -> tuple[Float[Tensor, "b c oh ow"], Int[Tensor, "b c oh ow"]]:
    """The largest number of each window, and where on the map it stands (row times width plus column).

    Of equal ones it is the first. Padding never wins: it counts as minus infinity.
    """
    stride = stride or kernel
    height, width = maps.shape[2:]
    rows = output_size(height, kernel, stride=stride, padding=padding)
    columns = output_size(width, kernel, stride=stride, padding=padding)
    framed = pad(maps, padding, float("-inf"))
    largest = maps.new_zeros(*maps.shape[:2], rows, columns)
    places = torch.zeros(largest.shape, dtype=torch.long, device=maps.device)
    for i in range(rows):
        for j in range(columns):
            window = framed[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel].flatten(2)
            largest[:, :, i, j], best = window.max(dim=2)
            row, column = i * stride + best // kernel - padding, j * stride + best % kernel - padding
            places[:, :, i, j] = row * width + column
    return largest, places


def max_pool_backward(
    gradient: Float[Tensor, "b c oh ow"], places: Int[Tensor, "b c oh ow"], size: tuple[int, int]
) -> Float[Tensor, "b c h w"]:
    """The gradient goes to the pixel that won and to no other; one that won in several windows gets their sum."""
    height, width = size
    flat = gradient.new_zeros(*gradient.shape[:2], height * width)
    flat.scatter_add_(2, places.flatten(2), gradient.flatten(2))
    return flat.view(*gradient.shape[:2], height, width)


def average_pool(
    maps: Float[Tensor, "b c h w"], kernel: int, *, stride: int | None = None
) -> Float[Tensor, "b c oh ow"]:
    """The mean of each window: a convolution of each map by itself with 1 / k^2."""
    mean = maps.new_full((1, 1, kernel, kernel), 1 / kernel**2)
    pooled = convolve(maps.flatten(0, 1).unsqueeze(1), mean, stride=stride or kernel)
    return pooled.view(*maps.shape[:2], *pooled.shape[2:])
