"""Decoding one sentence step by step, with or without a change."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from regard.config import from_values
from regard.data.batches import pad
from regard.data.tokenizer import END, PAD, START
from regard.decoders.protocol import Decoder, Step
from regard.decoders.steered import Steered
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.search.beam import BeamStep, beam
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.systems.translate.changes import Change, check_attention
from regard.systems.translate.model import Translator
from regard.systems.translate.sentences import MAX_TOKENS

UNCHANGED = Change()


def checked_search(options: Mapping[str, Any]) -> Search:
    """The options of the search, checked: sampling and text prefixes have no place here."""
    search = from_values(Search, options, "inspection")
    if search.sample or search.prefix is not None:
        raise OptionError("Inspection searches with a beam: use Change(prefix=...) in place of prefix, no sampling.")
    return search


class SentenceDecoder:
    """A sentence as a model reads it, with a change: encoded, and ready to be decoded any number of times."""

    def __init__(self, model: Translator, sentence: str, change: Change = UNCHANGED) -> None:
        if model.training:
            raise OptionError("This model is in training mode; call model.eval() first.")
        self.model, self.sentence, self.change = change.apply(model), sentence, change
        self.ids = [*model.source_tokenizer.encode(sentence), END]
        if len(self.ids) == 1:
            raise OptionError("There is nothing to translate: the sentence has no words.")
        if len(self.ids) > MAX_TOKENS + 1:
            raise OptionError(
                f"A sentence of at most {MAX_TOKENS} tokens can be inspected; this one has {len(self.ids) - 1}. "
                "Inspect its parts."
            )
        if wrong := [token for token in change.prefix if not END <= token < len(model.target_tokenizer)]:
            raise OptionError(
                f"A prefix has tokens of the target vocabulary, {END} to {len(model.target_tokenizer) - 1}; got "
                f"{wrong[0]}."
            )
        if change.attention and not model.has_attention:
            raise OptionError("A plain model has no attention to change.")
        attention = {step: row.to(model.device) for step, row in check_attention(change, len(self.ids)).items()}
        self.decoder: Decoder = Steered(self.model.decoder, attention) if attention else self.model.decoder
        self.encoded = self._encode()

    @torch.inference_mode()
    def _encode(self) -> Encoded:
        padded, lengths = pad([self.ids])
        return self.model.encode(padded.to(self.model.device), lengths)

    @torch.inference_mode()
    def search(self, options: Search, record: list[BeamStep] | None = None) -> list[Hypothesis]:
        """The hypotheses of a beam search, best first; `record` is that of `beam`."""
        prefix, (limit,) = list(self.change.prefix), self.model.length_limits([len(self.ids)], options)
        return beam(
            self.decoder,
            self.decoder.start(self.encoded),
            options.rules(start=START, end=END, banned=(PAD,), max_length=limit),
            rows=1,
            device=self.encoded.states.device,
            size=options.beam,
            length_penalty=options.length_penalty,
            coverage_penalty=options.coverage_penalty,
            prefixes=[prefix] if prefix else None,
            limits=[max(limit, len(prefix))],
            record=record,
        )[0]

    @torch.inference_mode()
    def steps(self, tokens: Sequence[int]) -> list[Step]:
        """The step that predicts each token of a given translation, and the one after the last."""
        state, found = self.decoder.start(self.encoded), []
        for last in (START, *tokens):
            found.append(self.decoder.step(torch.tensor([last], device=self.model.device), state))
            state = found[-1].state
        return found

    @torch.inference_mode()
    def log_prob(self, tokens: Sequence[int]) -> float:
        """The log-probability of a given translation."""
        steps = zip(self.steps(tokens[:-1]), tokens, strict=True) if tokens else ()
        return math.fsum(step.logits[0].float().log_softmax(-1)[token].item() for step, token in steps)
