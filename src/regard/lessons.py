"""What the companions of the lectures need beside regard: exercises that check the answer, and two plain figures."""

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

Answer = Any
"""A number, a text, a list or a tensor; an ellipsis, None, or a list with one of them, where it is still missing."""


def check(answer: Answer, right: Answer | Callable[[Answer], bool], hint: str, *, within: float = 1e-3) -> None:
    """Print whether an answer is right, and the hint if it is not.

    `right` is the right answer, or a function that says whether an answer is right. Numbers may differ by `within`,
    absolutely or relative to the right ones; of texts, capitals and surrounding spaces do not count.
    """
    if any(part is None or part is ... for part in (answer if isinstance(answer, (list, tuple)) else [answer])):
        print("Not answered yet.")  # noqa: T201 - this is what an exercise answers with
        return
    fault = _fault(answer, right, within)
    print("Right." if fault is None else f"Not yet: {fault}{hint}")  # noqa: T201


def curves(
    lines: Mapping[str, Answer], *, x: str, y: str, start: int = 1, step: int = 1, log: bool = False
) -> "InlineFigure":
    """Draw lines over the same places of an axis that begins at `start`, each with its name, as a figure for a cell.

    `x` and `y` say what the axes show. With `log`, the vertical axis is logarithmic.
    """
    from regard.viewing.figures import InlineFigure

    figure = InlineFigure(figsize=(6.4, 3.0), layout="constrained")
    axes: Any = figure.subplots()
    for (name, values), style in zip(lines.items(), ("o-", "s--", "D-.", "^:", "v-"), strict=False):
        heights = _array(values)
        if heights is None:
            raise OptionError(f"A curve is a list of numbers; got {values!r:.80} for {name!r}.")
        axes.plot(start + step * np.arange(len(heights)), heights, style, label=name, markersize=3)
    if log:
        axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def pictures(images: Mapping[str, Any], *, columns: int = 6, side: float = 1.5) -> "InlineFigure":
    """Draw images, or maps of numbers, side by side, each under its name; `side` is their width in inches."""
    from regard.viewing.figures import InlineFigure

    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    figure = InlineFigure(figsize=(side * columns, (side + 0.25) * rows), layout="constrained")
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, (name, image) in zip(grid.flat, images.items(), strict=False):
        axes.imshow(_array(image), cmap="gray")
        axes.set_title(name, fontsize=9)
    return figure


ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FRENCH = ("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf")


def numbers(count: int, *, shortest: int = 1, longest: int, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs of random digits, in English and in French words, with `shortest` to `longest` digits each.

    Nothing in such a sentence can be guessed from the rest of it, so that a translator has to remember every word.
    """
    draw = random.Random(seed)  # noqa: S311 - data for an exercise, not a secret
    digits = [[draw.randrange(10) for _ in range(draw.randint(shortest, longest))] for _ in range(count)]
    return [(" ".join(ENGLISH[each] for each in row), " ".join(FRENCH[each] for each in row)) for row in digits]


def _fault(answer: Answer, right: Answer | Callable[[Answer], bool], within: float) -> str | None:
    """What is wrong with the answer, "" where there is nothing to say but the hint, or None if it is right."""
    if callable(right):
        return None if right(answer) else ""
    if isinstance(right, str):
        return None if str(answer).strip().lower() == right.strip().lower() else ""
    given, wanted = _array(answer), _array(right)
    if given is None or wanted is None:
        return f"this is of type {type(answer).__name__}. "
    if given.shape != wanted.shape:
        return f"the shape is {given.shape}, and should be {wanted.shape}. "
    return None if np.allclose(given, wanted, rtol=within, atol=within) else ""


def _array(value: Answer) -> np.ndarray | None:
    """The numbers of a value, a tensor included; None where it holds anything else."""
    array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    return array if array.dtype.kind in "biuf" else None
