"""Glimpses of an image: the path over it, what each glimpse saw at each scale, and the belief after it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from PIL import Image
from rich.console import RenderableType
from rich.text import Text

from regard.arguments import checked
from regard.errors import OptionError
from regard.trace import Box, Trace
from regard.viewing.image import Pixels, half_blocks, opened_image
from regard.viewing.tokens import printable, shortened
from regard.viewing.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.viewing.figures import InlineFigure

MAX_GLIMPSES = 40
"""Maximum number of glimpses that are drawn."""
MAX_CLASSES = 10
"""Classes whose belief is drawn: the most probable after the last glimpse."""
_INK, _QUIET, _PATH, _BAR = "#1c1c1c", "#6a6a6a", "#ffb000", "#0072B2"
_MARK = "bold black on rgb(255,176,0)"
# Inches: the smallest image, a patch, the panel of the belief, the space between; and between two labels of the path.
_IMAGE, _PATCH, _BELIEF, _SPACE = 3.0, 0.85, 1.1, 0.12
_LABEL = 0.16


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts of a trace of glimpses, checked."""

    image: Image.Image
    points: list[tuple[float, float]]
    boxes: list[list[Box]]
    """For each glimpse its boxes, finest first."""
    beliefs: Float[np.ndarray, "t classes"]
    labels: list[str]
    patch_size: int


class GlimpsesView(View):
    """The path of glimpses over an image, what each saw, and the belief after it."""

    ELEMENTS = ("glimpses",)

    @checked
    def figure(self, *, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """The image with the numbered path and the finest windows; then for each glimpse its patches and the belief.

        The patches of a glimpse stand above each other, the sharpest first, as coarse as the model saw them. The bars
        show the probability of the classes after the glimpse, those that are most probable in the end.
        """
        from regard.viewing.figures import InlineFigure, add_title

        parts = _parts(self.trace)
        count, scales = len(parts.points), len(parts.boxes[0])
        step = _PATCH + _SPACE
        # The image is as high as the column of a glimpse beside it.
        side = max(_IMAGE, scales * step + 0.05 + _BELIEF)
        left = side + 4 * _SPACE
        width = left + count * step + _SPACE
        height = side + 0.85 + (0.3 if title else 0)
        top = height - (0.6 if title else 0.3)
        figure = InlineFigure(figsize=(width, height))

        def axes(x: float, y: float, wide: float, high: float) -> "Axes":
            """Axes at so many inches from the left and below the top."""
            return figure.add_axes((x / width, (top - y - high) / height, wide / width, high / height))

        _draw_path(axes(_SPACE, 0.0, side, side), parts, apart=_LABEL / side)
        names = _best_classes(parts)
        for number in range(count):
            x = left + number * step
            for scale in range(scales):
                panel = axes(x, scale * step, _PATCH, _PATCH)
                panel.imshow(_patch(parts, number, scale), interpolation="nearest")
                panel.set_axis_off()
                if scale == 0:
                    panel.set_title(str(number + 1), fontsize=9, color=_INK, pad=3)
            bars = axes(x, scales * step + 0.05, _PATCH, _BELIEF)
            _draw_belief(bars, parts.beliefs[number], names, parts.labels, name_them=number == 0)
        note = "Each column: a glimpse at its scales, the sharpest on top, and the probability of classes after it."
        figure.text(_SPACE / width, 0.06 / height, note, fontsize=7.5, color=_QUIET, va="bottom", parse_math=False)
        add_title(figure, title, y=1 - 0.08 / height)
        return figure

    @checked
    def terminal(self, *, width: int = 80, colour: bool = True) -> RenderableType:  # type: ignore[override]
        """The image with the numbered path, and a line for each glimpse: where it was, and what is believed after it.

        Without `colour` the image is drawn in five shades.
        """
        parts = _parts(self.trace)
        side = max(4, min(30, width // 2))
        picture = _terminal_image(parts, side, colour=colour)
        beside = width - side - 2
        lines = [Text(shortened(each, max(8, beside))) for each in _belief_lines(parts)]
        if beside < 24:
            return Text("\n").join([*picture, *lines])
        rows = []
        for number in range(max(len(picture), len(lines))):
            image = picture[number] if number < len(picture) else Text(" " * side)
            text = lines[number] if number < len(lines) else Text()
            rows.append(Text.assemble(image, "  ", text))
        return Text("\n").join(rows)


def _parts(trace: Trace) -> _Parts:
    x, y = trace.values("x"), trace.values("y")
    count = len(trace.target)
    boxes: list[list[Box]] = [[] for _ in range(count)]
    for box in trace.boxes:
        if box.axis == trace.main.rows:
            boxes[box.position].append(box)
    if x is None or y is None or not count or len(x) != count or not all(boxes):
        raise OptionError(
            f"This trace of kind {trace.kind!r} does not hold glimpses: it needs a main map of beliefs with a row per "
            "glimpse, series x and y, and at least one box for each glimpse."
        )
    if count > MAX_GLIMPSES or len({len(each) for each in boxes}) > 1:
        raise OptionError(f"Up to {MAX_GLIMPSES} glimpses with equally many boxes are drawn; got {count}.")
    image = opened_image(trace, blank=(60, 60))
    size = trace.extras.get("glimpse_size", 0)
    known = isinstance(size, int) and 0 < size <= max(image.size)
    return _Parts(image, list(zip(x, y, strict=True)), boxes, trace.weights, list(trace.source), size if known else 16)


def _best_classes(parts: _Parts) -> list[int]:
    """The classes to draw, in their own order."""
    best = np.argsort(-parts.beliefs[-1], kind="stable")[:MAX_CLASSES]
    return sorted(int(each) for each in best)


def _edges(parts: _Parts, box: Box) -> tuple[float, float, float, float]:
    width, height = parts.image.size
    return box.left * width, box.top * height, box.right * width, box.bottom * height


def _patch(parts: _Parts, number: int, scale: int) -> Pixels:
    """What a window saw: cut from the image, black outside of it, and made as coarse as the retina is."""
    left, top, right, bottom = _edges(parts, parts.boxes[number][scale])
    (width, height), (x, y), full = parts.image.size, parts.points[number], parts.patch_size * 2**scale
    left, right = _uncut(left, right, width, full, x * width)
    top, bottom = _uncut(top, bottom, height, full, y * height)
    cut = parts.image.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
    smaller = min(1.0, parts.patch_size / max(cut.size))
    small = cut.resize([max(1, round(length * smaller)) for length in cut.size], Image.Resampling.BOX)
    return np.asarray(small.convert("RGB"), dtype=np.uint8)


def _uncut(low: float, high: float, extent: int, full: int, centre: float) -> tuple[int, int]:
    """Where a window of `full` pixels begins and ends that the edges of the image have cut to [low, high]."""
    start, end = round(low), round(high)
    at_start, at_end = start <= 0, end >= extent
    if end - start >= full or not (at_start or at_end):
        return start, end
    if at_start and at_end:
        start = round(centre - full / 2)
    elif at_start:
        start = end - full
    return start, start + full


def _draw_path(axes: "Axes", parts: _Parts, *, apart: float) -> None:
    """The image, the finest windows and the numbered path; labels nearer than a fraction `apart` of the image join."""
    from matplotlib.patches import Rectangle

    width, height = parts.image.size
    axes.imshow(np.asarray(parts.image), interpolation="nearest", extent=(0, width, height, 0))
    axes.set_axis_off()
    points = [(x * width, y * height) for x, y in parts.points]
    axes.plot([x for x, _ in points], [y for _, y in points], color=_PATH, linewidth=1.4, alpha=0.9)
    for number, boxes in enumerate(parts.boxes, 1):
        left, top, right, bottom = _edges(parts, boxes[0])
        last = number == len(points)
        frame = Rectangle(
            (left, top), right - left, bottom - top, fill=False, edgecolor=_PATH, linewidth=1.8 if last else 0.9
        )
        axes.add_patch(frame)
    for (x, y), numbers in _labels(points, apart * max(width, height)).items():
        axes.annotate(
            numbers, (x, y), ha="center", va="center", fontsize=7, color=_INK,
            bbox={"boxstyle": "round,pad=0.2,rounding_size=0.6", "facecolor": _PATH, "edgecolor": "none"},
        )  # fmt: skip
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)


def _labels(points: list[tuple[float, float]], apart: float) -> dict[tuple[float, float], str]:
    """A label for each point; points that are too near to be labelled apart share one, such as 2-4."""
    groups: dict[tuple[float, float], list[int]] = {}
    for number, point in enumerate(points, 1):
        near = (each for each in groups if math.dist(each, point) < apart)
        groups.setdefault(next(near, point), []).append(number)
    labels = {}
    for point, numbers in groups.items():
        is_run = len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1
        labels[point] = f"{numbers[0]}-{numbers[-1]}" if is_run else ",".join(map(str, numbers))
    return labels


def _draw_belief(axes: "Axes", belief: Any, classes: list[int], labels: list[str], *, name_them: bool) -> None:
    from regard.viewing.figures import set_literal

    values = [float(belief[each]) for each in classes]
    best = int(np.argmax(values))
    colours = [_BAR if index == best else "#b8c9d6" for index in range(len(values))]
    axes.barh(range(len(values)), values, color=colours, height=0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_yticks(range(len(classes)) if name_them else [])
    if name_them:
        axes.set_yticklabels([shortened(labels[each], 8) for each in classes], fontsize=6)
        set_literal(axes.get_yticklabels())
    label = f"{printable(shortened(labels[classes[best]], 8))} {values[best]:.2f}"
    axes.set_xlabel(label, fontsize=8, color=_INK, labelpad=2, parse_math=False)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


def _terminal_image(parts: _Parts, side: int, *, colour: bool) -> list[Text]:
    """`side` characters wide and half as many high; a glimpse is marked by its number."""
    rows = max(2, side // 2)
    pixels = np.asarray(parts.image.resize((side, 2 * rows), Image.Resampling.BOX).convert("RGB"))
    marks = {
        (min(rows - 1, int(y * rows)), min(side - 1, int(x * side))): (str(number)[-1], _MARK if colour else "")
        for number, (x, y) in enumerate(parts.points, 1)
    }
    return half_blocks(pixels, colour=colour, marks=marks)


def _belief_lines(parts: _Parts) -> list[str]:
    """For each glimpse its number, where it was in percent of the image, and the three most probable classes."""
    lines = []
    for number, ((x, y), belief) in enumerate(zip(parts.points, parts.beliefs, strict=True), 1):
        order = np.argsort(-belief, kind="stable")[:3]
        believed = "  ".join(f"{printable(parts.labels[int(each)])} {belief[int(each)]:.2f}" for each in order)
        lines.append(f"{number:>2} at {100 * x:3.0f}%,{100 * y:3.0f}%  {believed}")
    return lines
