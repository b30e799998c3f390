"""The config of a glimpse model, and its results with their traces."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.glimpse import window_offsets
from regard.systems.glimpse.config import GlimpsesConfig
from regard.systems.glimpse.square_view import SquareView
from regard.systems.system import Result
from regard.trace import Axis, Box, Map, Series, Trace
from regard.trace.data_uri import to_data_uri


@dataclass(frozen=True)
class Glimpses(Result):
    """What an image shows, and where the model looked."""

    label: str
    """The most probable class."""
    probability: float
    labels: tuple[str, ...] = field(repr=False)
    """All classes."""
    beliefs: tuple[tuple[float, ...], ...] = field(repr=False)
    """The probability of each class after each glimpse; the last are the answer."""
    path: tuple[tuple[float, float], ...] = field(repr=False)
    """The centre of each glimpse: x and y in pixels of the image."""
    crop_box: tuple[int, int, int, int]
    """The part of the image that was attended to: left, top, right, bottom in pixels. It holds the finest windows of
    all glimpses but the first, which is in the centre of every image."""


def make_result(
    view: SquareView,
    path: Float[Tensor, "t 2"],
    beliefs: Float[Tensor, "t classes"],
    config: GlimpsesConfig,
    labels: Sequence[str],
) -> Glimpses:
    """The result of one image, from the locations of its glimpses and the probabilities after each."""
    side = config.image_size
    points = ((path + 1) / 2 * side).tolist()
    probability, best = beliefs[-1].max(-1)
    finest = _windows(path, config, 0)
    attended = finest[1:] if len(finest) > 1 else finest
    left, top = view.to_image(*attended[:, :2].amin(0).tolist())
    right, bottom = view.to_image(*attended[:, 2:].amax(0).tolist())
    width, height = view.size
    start = min(int(left), width - 1), min(int(top), height - 1)
    return Glimpses(
        label=labels[int(best)],
        probability=float(probability),
        labels=tuple(labels),
        beliefs=tuple(map(tuple, beliefs.tolist())),
        path=tuple(view.to_image(x, y) for x, y in points),
        crop_box=(*start, max(start[0] + 1, round(right)), max(start[1] + 1, round(bottom))),
        trace=_trace(view, path, beliefs, config, labels),
    )


def _windows(path: Float[Tensor, "t 2"], config: GlimpsesConfig, scale: int) -> Int[Tensor, "t 4"]:
    """Left, top, right and bottom of what a scale sees in each glimpse, in pixels of the square, cut at its edges."""
    side, size = config.image_size, config.glimpse_size
    offsets = window_offsets(path, image=(side, side), size=size, scale=scale)
    return offsets.repeat(1, 2).add(offsets.new_tensor([0, 0, size * 2**scale, size * 2**scale])).clamp(0, side)


def _trace(
    view: SquareView,
    path: Float[Tensor, "t 2"],
    beliefs: Float[Tensor, "t classes"],
    config: GlimpsesConfig,
    labels: Sequence[str],
) -> Trace:
    """The square that was looked at; for each glimpse its point, a box per scale (finest first), and the belief."""
    axes = (
        Axis("glimpses", "steps", tuple(str(number) for number in range(1, len(path) + 1))),
        Axis("classes", "classes", tuple(labels)),
    )
    points = ((path + 1) / 2).tolist()
    windows = [(_windows(path, config, scale) / config.image_size).tolist() for scale in range(config.num_scales)]
    boxes = [Box("glimpses", step, *scale[step]) for step in range(len(path)) for scale in windows]
    series = (
        Series("x", "glimpses", [x for x, _ in points]),
        Series("y", "glimpses", [y for _, y in points]),
    )
    pixels = np.ascontiguousarray(view.pixels.transpose(1, 2, 0))
    return Trace(
        "glimpses",
        axes,
        (Map("belief", "glimpses", "classes", beliefs),),
        series,
        tuple(boxes),
        to_data_uri(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels),
        {"glimpse_size": config.glimpse_size, "num_scales": config.num_scales},
    )
