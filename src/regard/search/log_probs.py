"""The log-probabilities of the next token, as a search reads and restricts them: in NumPy, for every CPU.

`regard.search.tensors` computes the same on a GPU.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

CHUNK = 64
"""Number of neighbouring tokens whose maximum `largest` compares first."""
MIN_TEMPERATURE = 1e-30
"""Lower bound on the temperature: below it logits would overflow, and sampling is greedy anyway."""


@runtime_checkable
class LogProbs(Protocol):
    """The log-probabilities of the next token of each hypothesis, a row each."""

    @property
    def width(self) -> int:
        """The number of tokens."""

    def at(self, rows: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """The log-probability of one token of each of these rows."""

    def forbid(self, tokens: Sequence[int], row: int | None = None) -> None:
        """Make these tokens impossible, in all rows or in one."""

    def demand(self, rows: Sequence[int], tokens: Sequence[int], values: Sequence[float]) -> None:
        """Make all tokens of each of these rows impossible but one, whose log-probability is given."""

    def largest(self, scores: Sequence[float], size: int, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """The `count` best extensions of the rows of each input, best first: totals, and indices in its table.

        Each input has `size` rows, one after another, and each row a score so far; the total is their sum. Place p of
        an input is token p % width of its row p // width.
        """

    def most_likely(self) -> list[int]:
        """The most likely token of each row."""

    def draw(self, uniform: Float[np.ndarray, "r"], temperature: float, top_k: int, top_p: float) -> list[int]:
        """A token of each row by a number from 0 to 1: the first whose cumulative probability exceeds it.

        Logits are divided by `temperature`. Only the `top_k` most likely tokens count (0 for all), of which those whose
        probabilities add up to `top_p` are kept.
        """


class ArrayLogProbs:
    """`LogProbs` in NumPy; `values` are the log-probabilities, and are changed."""

    def __init__(self, values: Float[np.ndarray, "r y"]) -> None:
        self.values = values

    @classmethod
    def of_logits(cls, logits: Float[np.ndarray, "r y"]) -> "ArrayLogProbs":
        """Normalise logits, which are not changed."""
        with np.errstate(invalid="ignore"):  # what is not finite is refused when a token has been chosen
            shifted = logits - logits.max(-1, keepdims=True)
            shifted -= np.log(np.exp(shifted).sum(-1, keepdims=True))
        return cls(shifted)

    @property
    def width(self) -> int:
        """The number of tokens."""
        return int(self.values.shape[-1])

    def at(self, rows: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """The log-probability of one token of each of these rows."""
        found: list[float] = self.values[rows, tokens].tolist()
        return found

    def forbid(self, tokens: Sequence[int], row: int | None = None) -> None:
        """Make these tokens impossible, in all rows or in one."""
        self.values[slice(None) if row is None else row, tokens] = -np.inf

    def demand(self, rows: Sequence[int], tokens: Sequence[int], values: Sequence[float]) -> None:
        """Make all tokens of each of these rows impossible but one, whose log-probability is given."""
        self.values[rows] = -np.inf
        self.values[rows, tokens] = values

    def largest(self, scores: Sequence[float], size: int, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """The best extensions of the rows of each input.

        Rows are cut into chunks: the largest elements lie in the chunks with the largest maxima, so that only the
        elements of those chunks are sorted.
        """
        offsets = np.array(scores, np.float32).reshape(-1, size)
        inputs, width = np.arange(len(offsets))[:, None], self.values.shape[-1]
        table = self.values.reshape(len(offsets), size, width)
        count = min(count, size * width)
        whole = width - width % CHUNK
        if width < CHUNK * 4 * count:
            totals = (table + offsets[..., None]).reshape(len(table), -1)
            indices = np.broadcast_to(np.arange(size * width), totals.shape)
        else:
            chunks = table[..., :whole].reshape(len(table), size, -1, CHUNK)
            maxima = (chunks.max(-1) + offsets[..., None]).reshape(len(table), -1)
            row, chunk = np.divmod(np.sort(_largest(maxima, count), axis=1), chunks.shape[2])
            inside = chunks[inputs, row, chunk] + offsets[inputs, row][..., None]
            after = table[..., whole:] + offsets[..., None]
            totals = np.concatenate([inside.reshape(len(table), -1), after.reshape(len(table), -1)], axis=1)
            starts = row * width + chunk * CHUNK
            rest = np.arange(size)[:, None] * width + np.arange(whole, width)
            in_chunks = (starts[..., None] + np.arange(CHUNK)).reshape(len(table), -1)
            indices = np.concatenate([in_chunks, np.broadcast_to(rest.ravel(), (len(table), rest.size))], axis=1)
        best = _largest(totals, count)
        values = totals[inputs, best]
        # NaN comes first, where it is found and refused.
        order = np.argsort(np.where(np.isnan(values), np.inf, values) * -1, axis=1, kind="stable")
        best = best[inputs, order]
        return totals[inputs, best].tolist(), indices[inputs, best].tolist()

    def most_likely(self) -> list[int]:
        """The most likely token of each row."""
        found: list[int] = self.values.argmax(-1).tolist()
        return found

    def draw(self, uniform: Float[np.ndarray, "r"], temperature: float, top_k: int, top_p: float) -> list[int]:
        """A token of each row by a number from 0 to 1."""
        with np.errstate(invalid="ignore", over="ignore"):
            logits = _truncated(self.values.astype(np.float64) / max(temperature, MIN_TEMPERATURE), top_k, top_p)
            total = np.exp(logits - logits.max(-1, keepdims=True)).cumsum(-1)
            drawn = (total <= uniform[:, None] * total[:, -1:]).sum(-1)
        # Where nothing is possible, or something is NaN, the token that greedy search finds shows it.
        found: list[int] = np.where(np.isnan(total[:, -1]), self.values.argmax(-1), drawn).tolist()
        return found


def _largest(table: Float[np.ndarray, "i n"], count: int) -> Any:
    """The indices of the largest elements of each row, in any order; NaN counts as larger than every number."""
    if count >= table.shape[1]:
        return np.broadcast_to(np.arange(table.shape[1]), table.shape)
    return np.argpartition(table, table.shape[1] - count, axis=1)[:, -count:]


def _truncated(logits: Float[np.ndarray, "r y"], top_k: int, top_p: float) -> Float[np.ndarray, "r y"]:
    """Set the logits of all but the most likely tokens to minus infinity."""
    if 0 < top_k < logits.shape[-1]:
        least = np.partition(logits, -top_k, axis=-1)[:, -top_k, None]
        logits = np.where(logits < least, -np.inf, logits)
    if top_p < 1:
        order = np.argsort(-logits, axis=-1, kind="stable")
        ranked = np.exp(np.take_along_axis(logits - logits.max(-1, keepdims=True), order, -1))
        ranked /= ranked.sum(-1, keepdims=True)
        # A token is kept if the more likely ones do not add up to top_p already.
        beyond = ranked.cumsum(-1) - ranked >= top_p
        logits = np.where(np.take_along_axis(beyond, np.argsort(order, axis=-1), -1), -np.inf, logits)
    return logits
