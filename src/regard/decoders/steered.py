"""A decoder whose attention is replaced at some steps, for asking what would have happened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, Override, Step
from regard.encoders.encoded import Encoded


@dataclass(frozen=True)
class SteeredState:
    """The state of the decoder, and the number of its steps so far."""

    inner: Any
    step: int = 0


class Steered(Decoder):
    """Decodes as another decoder does, except that the attention of some steps is given.

    `attention` has the weights over the source of each such step, counted from 0; they hold for all hypotheses of the
    search, which are all of one input. There is no teacher forcing, since search needs none.
    """

    def __init__(self, decoder: Decoder, attention: Mapping[int, Float[Tensor, "n"]]) -> None:
        super().__init__()
        self.decoder, self.attention = decoder, dict(attention)
        self.output = decoder.output

    def start(self, encoded: Encoded) -> SteeredState:
        """Return the state before the first token."""
        return SteeredState(self.decoder.start(encoded))

    def step(self, token: Int[Tensor, "b"], state: SteeredState, *, override: Override = None) -> Step:
        """Read a token and predict the next one, with the attention that is given for this step."""
        given = self.attention.get(state.step)
        if override is None and given is not None:
            override = given.expand(len(token), 1, -1)
        step = self.decoder.step(token, state.inner, override=override)
        return Step(step.logits, SteeredState(step.state, state.step + 1), step.attended)

    def source_mask(self, state: SteeredState) -> Bool[Tensor, "b n"] | None:
        """Return which source positions exist."""
        return self.decoder.source_mask(state.inner)
