"""What search gives, and the rules that every kind of search obeys."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import OptionError


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens without the end, the log-probability of each (the end's last), and its attention."""

    tokens: list[int]
    log_probs: list[float]
    score: float
    """What it was ranked by."""
    finished: bool
    """Whether it ended by itself, rather than at the length limit."""
    weights: Float[Tensor, "m n"] | None
    """One row per log-probability; None for a decoder without attention."""


@dataclass(frozen=True)
class Rules:
    """What an output may look like."""

    start: int
    end: int
    banned: tuple[int, ...] = ()
    """Tokens that are never chosen, such as padding."""
    min_length: int = 0
    """Fewest tokens before the end."""
    max_length: int = 200
    """Most tokens before the output is cut."""
    block_ngrams: int = 0
    """No run of so many tokens occurs twice; 0 allows it."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= self.max_length:
            raise OptionError(
                f"Lengths must be 0 <= min_length <= max_length; got {self.min_length} and {self.max_length}."
            )

    def apply_(
        self,
        log_probs: Float[Tensor, "r y"],
        tokens: Int[Tensor, "r t"],
        prefixes: Sequence[Sequence[int]] | None,
    ) -> None:
        """Write minus infinity over the log-probability of what may not come next; `prefixes` must be followed."""
        length = tokens.shape[1] - 1
        log_probs[:, [self.start, *self.banned]] = -torch.inf
        if length < self.min_length:
            log_probs[:, self.end] = -torch.inf
        if self.block_ngrams:
            for row, past in enumerate(tokens[:, 1:].tolist()):
                log_probs[row, _repeats(past, self.block_ngrams)] = -torch.inf
        for row, prefix in enumerate(prefixes or ()):
            if length < len(prefix):
                forced = log_probs.new_full((log_probs.shape[1],), -torch.inf)
                forced[prefix[length]] = log_probs[row, prefix[length]].clamp_min(torch.finfo(log_probs.dtype).min)
                log_probs[row] = forced


def _repeats(past: list[int], size: int) -> list[int]:
    """The tokens that would complete a run of `size` tokens seen before."""
    begin = tuple(past[len(past) - size + 1 :])
    if len(begin) < size - 1:
        return []
    runs = (past[i : i + size] for i in range(len(past) - size + 1))
    return [run[-1] for run in runs if tuple(run[:-1]) == begin]
