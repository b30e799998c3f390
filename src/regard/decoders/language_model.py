"""A language model: a decoder without an encoder, which search can start from nothing.

    state = model.begin()
    step = model.step(token, state)      # the first token is START

START is not read: a learned vector predicts the first word, so that the first word is the first on the tapes of a
reader, with nothing before it to attend to.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.decoders.protocol import Decoder, Override, Step
from regard.encoders.readers import Sentences
from regard.layers.dropout import LockedDropout


@dataclass(frozen=True)
class LanguageState:
    """What a language model has read so far."""

    reader: Any = None
    """The state of the reader; None before the first word."""
    begun: bool = False
    """Whether START has been given."""


@dataclass(frozen=True)
class Predicted:
    """What a language model predicts along whole sentences."""

    features: Float[Tensor, "b m d"]
    """Inputs of the output layer: the first predicts the first word, the one after it the second, and so on."""
    sentences: Sentences


class LanguageModel(Decoder):
    """Words in, the next word out, by any reader of one direction."""

    def __init__(
        self,
        embedding: nn.Module,
        reader: nn.Module,
        output: nn.Module,
        *,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.reader, self.output = embedding, reader, output
        self.dropout, self.output_dropout = LockedDropout(dropout), LockedDropout(output_dropout)
        self.first = nn.Parameter(torch.zeros(int(reader.dim)))  # type: ignore[arg-type]
        """The features that predict the first word."""

    def begin(self) -> LanguageState:
        """Return the state before START, for any number of sentences."""
        return LanguageState()

    def step(self, token: Int[Tensor, "b"], state: LanguageState, *, override: Override = None) -> Step:
        """Read a token and predict the next one. `Step.attended` is None: what is attended to grows at each step."""
        if not state.begun:
            features = self.first.expand(len(token), -1)
            return Step(self.output(features), LanguageState(None, begun=True), None)
        words = self.dropout(self.embedding(token.unsqueeze(1)))[:, 0]
        features, new = self.reader.step(words, state.reader)  # type: ignore[operator]
        return Step(self.output(features), LanguageState(new, begun=True), None)

    def forward(  # type: ignore[override]
        self, words: Int[Tensor, "b n"], lengths: Int[Tensor, "b"] | None = None, *, weights: bool = False
    ) -> Predicted:
        """Predict each word and the end of whole sentences, given the words before it."""
        sentences: Sentences = self.reader(self.dropout(self.embedding(words)), lengths, weights=weights)
        first = self.first.expand(len(words), 1, -1).to(sentences.states.dtype)
        return Predicted(self.output_dropout(torch.cat([first, sentences.states], dim=1)), sentences)
