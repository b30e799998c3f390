"""What a request may cost: tokens and decoded pixels, because letters and bytes say little about work."""

from collections.abc import Sequence
from typing import Any

from regard.serving.errors import RefusedError
from regard.serving.settings import ServerSettings
from regard.systems.system import System

IMAGES = 4
"""All images of a request together may have so many times the pixels of the largest one."""


MAX_TOKENS = 4
"""The most tokens of a character: its bytes."""


def work_of(model: System, inputs: Sequence[Any], options: Any) -> int:
    """The tokens that a model reads and may write for these inputs, times the hypotheses of the search."""
    return _work(model.costs(inputs), options)


def _work(costs: Sequence[int], options: Any) -> int:
    if not hasattr(options, "num_hypotheses"):
        return sum(costs)
    longest = options.max_length
    written = sum(2 * cost if longest is None else longest for cost in costs)
    return (sum(costs) + written) * int(options.num_hypotheses)


def check_work(model: System, inputs: Sequence[Any], options: Any, settings: ServerSettings) -> None:
    """Refuse a request that would take longer than others can wait for it."""
    if all(isinstance(each, str) for each in inputs):
        most = [MAX_TOKENS * len(each) + 1 for each in inputs]
        if _work(most, options) <= settings.max_work:
            return  # however they are divided into tokens
    if (work := work_of(model, inputs, options)) > settings.max_work:
        raise RefusedError(
            413,
            f"The request has too many tokens: {work:,} to read and to write, times the hypotheses of the search; at "
            f"most {settings.max_work:,} are allowed (--max-work). Divide it into several requests, or lower beam or "
            "max_length.",
        )


class Pixels:
    """The pixels that the images of a request may still have."""

    def __init__(self, settings: ServerSettings) -> None:
        self._each = settings.max_megapixels * 1_000_000
        self._left = IMAGES * self._each

    @property
    def most(self) -> int:
        """The most pixels of the next image."""
        return min(self._each, self._left)

    def take(self, width: int, height: int) -> None:
        """Count an image."""
        self._left -= width * height
