"""The options of a search, the same for every system that decodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from regard.config import Checked, Count, NonNegativeFloat, PositiveFloat, Probability
from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.search.hypothesis import Rules


Size = Annotated[int, Meta(ge=1, le=1000)]
"""A number of hypotheses, each of which takes memory."""
Length = Annotated[int, Meta(ge=0, le=100_000)]
"""A number of tokens."""
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
LengthPenalty = Annotated[float, Meta(ge=-10, le=10)]
"""An exponent of lengths; larger ones would leave nothing of a score, or overflow."""


SAMPLING = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
"""The options that only sampling uses, with the values that change nothing."""


@dataclass(frozen=True)
class Search(Checked):
    """How outputs are searched for: by beam search, or by sampling."""

    beam: Size = 5
    """Number of hypotheses kept at each step of beam search; 1 is greedy search."""
    nbest: Size = 1
    """Number of outputs for each input: the best of the beam, or independent samples."""
    sample: bool = False
    """Sample tokens instead of searching; `beam` is then ignored."""
    temperature: PositiveFloat = 1.0
    """Sampling: logits are divided by this, so that values below 1 prefer likely tokens."""
    top_k: Count = 0
    """Sampling: only the k most likely tokens are considered; 0 considers all."""
    top_p: Probability = 1.0
    """Sampling: only the most likely tokens whose probabilities add up to this are considered."""
    seed: Seed | None = None
    """Sampling: random seed; none draws anew each time."""
    max_length: Length | None = None
    """Maximum number of tokens; none lets the model choose a limit."""
    min_length: Length = 0
    """Minimum number of tokens."""
    length_penalty: LengthPenalty = 1.0
    """Outputs are ranked by log-probability / length^penalty: 1 is the mean per token, 0 the sum."""
    coverage_penalty: NonNegativeFloat = 0.0
    """Strength of the penalty on outputs that leave parts of the source without attention (Wu et al. 2016)."""
    block_ngrams: Count = 0
    """No sequence of this many tokens occurs twice in an output; 0 allows repetition."""
    prefix: str | None = None
    """Text that each output must begin with."""

    @property
    def num_hypotheses(self) -> int:
        """Number of hypotheses for each input."""
        return self.nbest if self.sample else self.beam

    def check(self) -> None:
        """Raise an OptionError where options contradict each other."""
        if not self.sample and self.nbest > self.beam:
            raise OptionError(
                f"nbest must not exceed beam, {self.beam}, since beam search keeps {self.beam} outputs; got "
                f"{self.nbest}. Use a larger beam, or sample."
            )
        if self.top_p == 0:
            raise OptionError("top_p must be above 0 and at most 1; got 0.")
        if not self.sample and (unused := [name for name in SAMPLING if getattr(self, name) != SAMPLING[name]]):
            raise OptionError(
                f"{unused[0]} is for sampling; got {unused[0]}={getattr(self, unused[0])} without it. Set sample=True "
                f"(--sample), or leave {unused[0]} out."
            )
        if self.max_length is not None and self.min_length > self.max_length:
            raise OptionError(
                f"min_length must not exceed max_length; got min_length={self.min_length}, "
                f"max_length={self.max_length}."
            )

    def rules(
        self,
        *,
        start: int,
        end: int,
        banned: Sequence[int] = (),
        max_length: int,
        prefixes: Sequence[Sequence[int]] | None = None,
        limits: Sequence[int] | None = None,
    ) -> "Rules":
        """Return the rules of these options for a vocabulary; `max_length` holds where the options have none."""
        from regard.search.hypothesis import Rules

        limit = max_length if self.max_length is None else self.max_length
        return Rules(start, end, tuple(banned), self.min_length, limit, self.block_ngrams, prefixes, limits)
