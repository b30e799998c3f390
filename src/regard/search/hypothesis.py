"""The results of search, how they are ranked, and the rules that every kind of search follows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from regard.errors import NonFiniteError, OptionError
from regard.search.log_probs import LogProbs

LOWEST = -1e4
"""Log-probability of a token that a prefix demands and the model finds impossible; sums with it still tell the tokens
after the prefix apart."""


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens without the end, the log-probability of each token (and of the end), its attention."""

    tokens: list[int]
    log_probs: list[float]
    score: float
    """The ranking of beam search (see `Ranking`), also for greedy search and sampling."""
    finished: bool
    """Whether it ends with the end token, rather than at the length limit."""
    weights: Float[np.ndarray, "m n"] | None
    """The attention weights, one row per log-probability; None for a decoder without attention."""


@dataclass(frozen=True)
class Ranking:
    """The score of an output: log p / length^length_penalty + coverage_penalty sum_i log min(1, sum_t weight_ti).

    The second term is equation 14 of Wu et al. 2016, over the source positions that exist.
    """

    length_penalty: float = 1.0
    coverage_penalty: float = 0.0

    def score(
        self,
        log_probs: Sequence[float],
        weights: Float[np.ndarray, "m n"] | None,
        exists: Bool[np.ndarray, "n"] | None,
    ) -> float:
        """Compute the score of an output; `exists` marks the source positions that exist (None: all)."""
        score: float = sum(log_probs) / max(1, len(log_probs)) ** self.length_penalty
        if self.coverage_penalty and weights is not None:
            covered = weights.sum(0)
            covered = (covered if exists is None else covered[exists]).clip(1e-10, 1.0)
            score += self.coverage_penalty * float(np.log(covered).sum())
        return score


@dataclass(frozen=True)
class Rules:
    """The constraints on an output."""

    start: int
    end: int
    banned: tuple[int, ...] = ()
    """Tokens that are never chosen, such as padding."""
    min_length: int = 0
    """Minimum number of tokens before the end."""
    max_length: int = 200
    """Maximum number of tokens; longer outputs are cut."""
    block_ngrams: int = 0
    """No sequence of this many tokens occurs twice; 0 allows repetition."""
    prefixes: Sequence[Sequence[int]] | None = None
    """For each input the tokens that its outputs begin with."""
    limits: Sequence[int] | None = None
    """For each input the maximum number of tokens, in place of `max_length`."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= self.max_length:
            raise OptionError(
                f"Lengths must satisfy 0 <= min_length <= max_length; got {self.min_length} and {self.max_length}."
            )
        if self.block_ngrams < 0:
            raise OptionError(f"block_ngrams must be 0 or more; got {self.block_ngrams}.")

    def limits_of(self, count: int) -> Sequence[int]:
        """The maximum number of tokens of each of `count` inputs."""
        return [self.max_length] * count if self.limits is None else self.limits

    def of_inputs(self, inputs: Sequence[int]) -> "Rules":
        """The rules for a choice of the inputs, which may repeat them."""
        prefixes = self.prefixes and [self.prefixes[index] for index in inputs]
        limits = self.limits and [self.limits[index] for index in inputs]
        return replace(self, prefixes=prefixes, limits=limits)

    def apply_(self, log_probs: LogProbs, outputs: Sequence[Sequence[int]], inputs: Sequence[int]) -> None:
        """Make each forbidden next token impossible.

        `outputs` are the tokens so far, a row each, all of one length; each of the `inputs` has equally many rows.
        Prefixes are followed also where the other rules forbid a token of theirs, which costs what the model says.
        """
        length = len(outputs[0]) if outputs else 0
        rows, forced = self._forced(length, inputs, len(outputs)) if self.prefixes else ([], [])
        given = [max(value, LOWEST) for value in log_probs.at(rows, forced)] if rows else []
        log_probs.forbid([self.start, *self.banned, *([self.end] if length < self.min_length else [])])
        if self.block_ngrams:
            for row, past in enumerate(outputs):
                log_probs.forbid(_repeats(past, self.block_ngrams), row)
        if rows:
            log_probs.demand(rows, forced, given)

    def _forced(self, length: int, inputs: Sequence[int], num_rows: int) -> tuple[list[int], list[int]]:
        """The rows that are still inside of their prefix, and the next token of each."""
        rows, forced, each = [], [], num_rows // max(1, len(inputs))
        for row in range(num_rows):
            prefix = () if self.prefixes is None else self.prefixes[inputs[row // each]]
            if length < len(prefix):
                rows.append(row)
                forced.append(prefix[length])
        return rows, forced


def check_finite(log_probs: Iterable[float]) -> None:
    """Refuse NaN: nothing can be chosen by it, and an output would mean nothing."""
    if any(map(math.isnan, log_probs)):
        raise NonFiniteError(
            "The model gave NaN instead of probabilities. Its parameters are damaged or its training diverged, or its "
            "input is not finite: check that all parameters are finite, or train it again with a lower learning rate."
        )


def _repeats(past: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would repeat an earlier sequence of `size` tokens."""
    begin = tuple(past[len(past) - size + 1 :])
    if len(begin) < size - 1:
        return []
    runs = (past[i : i + size] for i in range(len(past) - size + 1))
    return [run[-1] for run in runs if tuple(run[:-1]) == begin]
