"""Convolution and pooling from their definitions: a reference for those of torch, and their output sizes."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import OptionError, ShapeError, counted


def output_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the number of windows: w_out = floor((w_in + 2p - k) / s) + 1, where a dilated k is d (k - 1) + 1."""
    if min(size, kernel, stride, dilation) < 1 or padding < 0:
        raise OptionError(
            f"Sizes, kernels, strides and dilations must be 1 or more and padding 0 or more; got size={size}, "
            f"kernel={kernel}, stride={stride}, padding={padding}, dilation={dilation}."
        )
    spare = size + 2 * padding - (dilation * (kernel - 1) + 1)
    if spare < 0:
        raise ShapeError(
            f"A kernel of {kernel} (dilation {dilation}) does not fit on {counted(size, 'pixel')} with a "
            f"padding of {padding}. Use a larger image or more padding."
        )
    return spare // stride + 1


def uncovered(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the number of pixels at the end of a line that no window covers, because of the stride."""
    windows = output_size(size, kernel, stride=stride, padding=padding, dilation=dilation)
    reached = (windows - 1) * stride + dilation * (kernel - 1) + 1 - padding
    return max(0, size - reached)


def pad(
    maps: Float[Tensor, "b c h w"], padding: int, value: float = 0.0
) -> Float[Tensor, "b c h+2*{padding} w+2*{padding}"]:
    """Add a border of `value` around the maps."""
    b, c, h, w = maps.shape
    padded = maps.new_full((b, c, h + 2 * padding, w + 2 * padding), value)
    padded[:, :, padding : padding + h, padding : padding + w] = maps
    return padded


def convolve(
    maps: Float[Tensor, "b c h w"],
    filters: Float[Tensor, "f c kh kw"],
    bias: Float[Tensor, "f"] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "b f oh ow"]:
    """Compute y[f, i, j] = b[f] + sum_{c, u, v} w[f, c, u, v] x[c, s i + u - p, s j + v - p], with x = 0 outside.

    As in every deep learning library, the filter is not flipped: this is a cross-correlation.
    """
    height, width = filters.shape[2:]
    rows = output_size(maps.shape[2], height, stride=stride, padding=padding)
    columns = output_size(maps.shape[3], width, stride=stride, padding=padding)
    padded = pad(maps, padding)
    out = maps.new_zeros(maps.shape[0], filters.shape[0], rows, columns)
    for i in range(rows):
        for j in range(columns):
            window = padded[:, :, i * stride : i * stride + height, j * stride : j * stride + width]
            out[:, :, i, j] = torch.einsum("bcuv,fcuv->bf", window, filters)
    return out if bias is None else out + bias[:, None, None]


def max_pool(
    maps: Float[Tensor, "b c h w"], kernel: int, *, stride: int | None = None, padding: int = 0
) -> tuple[Float[Tensor, "b c oh ow"], Int[Tensor, "b c oh ow"]]:
    """Return the maximum of each window and its position on the map (row times width plus column).

    Of equal values the first is taken. Padding counts as minus infinity, so that it is never the maximum.
    """
    stride = stride or kernel
    height, width = maps.shape[2:]
    rows = output_size(height, kernel, stride=stride, padding=padding)
    columns = output_size(width, kernel, stride=stride, padding=padding)
    padded = pad(maps, padding, float("-inf"))
    largest = maps.new_zeros(*maps.shape[:2], rows, columns)
    places = torch.zeros(largest.shape, dtype=torch.long, device=maps.device)
    for i in range(rows):
        for j in range(columns):
            window = padded[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel].flatten(2)
            largest[:, :, i, j], best = window.max(dim=2)
            row, column = i * stride + best // kernel - padding, j * stride + best % kernel - padding
            places[:, :, i, j] = row * width + column
    return largest, places


def max_pool_backward(
    gradient: Float[Tensor, "b c oh ow"], places: Int[Tensor, "b c oh ow"], size: tuple[int, int]
) -> Float[Tensor, "b c h w"]:
    """Compute the gradient of `max_pool`: each window passes its gradient to the position of its maximum."""
    height, width = size
    flat = gradient.new_zeros(*gradient.shape[:2], height * width)
    flat.scatter_add_(2, places.flatten(2), gradient.flatten(2))
    return flat.view(*gradient.shape[:2], height, width)


def average_pool(
    maps: Float[Tensor, "b c h w"], kernel: int, *, stride: int | None = None
) -> Float[Tensor, "b c oh ow"]:
    """Return the mean of each window, as a convolution of each map with 1 / k^2."""
    mean = maps.new_full((1, 1, kernel, kernel), 1 / kernel**2)
    pooled = convolve(maps.flatten(0, 1).unsqueeze(1), mean, stride=stride or kernel)
    return pooled.view(*maps.shape[:2], *pooled.shape[2:])
