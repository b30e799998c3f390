"""Translator: text in, text out, by a plain encoder-decoder, RNNsearch, Luong's models or a Transformer."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batches import pad
from regard.data.tokenizer import END, PAD, START, UNKNOWN, UNKNOWN_MARK, Tokenizer
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import search
from regard.systems.system import System
from regard.systems.translate.assembly import build_decoder, build_embedding, build_encoder
from regard.systems.translate.config import TranslationConfig, TranslationOptions
from regard.systems.translate.names import MIN_SCORE, PLACEHOLDERS, possible_placeholders
from regard.systems.translate.passages import Passages
from regard.systems.translate.result import Translation
from regard.systems.translate.traces import traces_of


class Translator(System):
    """An encoder, a decoder, and the tokenizers on both sides."""

    kind = "translate"
    Config = TranslationConfig
    Options = TranslationOptions
    assets: ClassVar[Mapping[str, Any]] = {"source_tokenizer": Tokenizer, "target_tokenizer": Tokenizer}
    config: TranslationConfig
    has_warned = False
    """Whether something was reported that is reported once."""

    def __init__(self, config: TranslationConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        source_embedding = build_embedding(len(source_tokenizer), config.embedding)
        target_embedding = build_embedding(len(target_tokenizer), config.embedding)
        if config.share_embeddings == "all":
            if source_tokenizer.vocabulary_hash != target_tokenizer.vocabulary_hash:
                raise OptionError("share_embeddings 'all' needs one joint vocabulary; these are two. Use 'target'.")
            source_embedding = target_embedding
        output = nn.Linear(config.embedding, len(target_tokenizer))
        nn.init.zeros_(output.bias)
        if config.share_embeddings == "none":
            nn.init.normal_(output.weight, std=config.embedding**-0.5)
        else:
            output.weight = target_embedding.weight
        self.encoder = build_encoder(config, source_embedding)
        self.decoder = build_decoder(config, self.encoder.dim, target_embedding, output)

    def encode(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"]) -> Encoded:
        """The states of the source sentences."""
        encoded: Encoded = self.encoder(source, lengths)
        return encoded

    def by_word(self, weights: Float[Tensor, "*b m n"]) -> Float[Tensor, "*b m n"]:
        """Turn the attention of each decoding step into that of the token that the step predicts.

        With alignment_step "input", the attention of a token is that of the next step, which reads it. The last step
        keeps its own.
        """
        if self.config.alignment_step == "output":
            return weights
        return torch.cat([weights[..., 1:, :], weights[..., -1:, :]], dim=-2)

    def search(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence; by default at most twice as long as it and ten tokens more."""
        return self._search(self.encode(source, lengths), lengths.tolist(), options)

    def costs(self, inputs: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        return [len(ids) + 1 for ids in self.source_tokenizer.encode_batch(list(inputs))]

    @overload
    def translate(self, texts: str, **options: Any) -> Translation: ...

    @overload
    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]: ...

    def translate(self, texts: str | Sequence[str], **options: Any) -> Translation | list[Translation]:
        """Translate a text, or each text of a list.

        Options are the fields of `TranslationOptions`: beam, nbest, sample, temperature, max_length, traces, ...
        `stream` does the same for an iterable of any length.
        """
        checked = self.options(options)
        if isinstance(texts, str):
            only: Translation = self.answer([texts], checked)[0]
            return only
        if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
            raise OptionError(f"translate takes a text or a list of texts; got {type(texts).__name__}.")
        return self.answer(list(texts), checked)

    def answer(self, inputs: Sequence[str], options: TranslationOptions) -> list[Translation]:
        """The translations of any number of texts, in order."""
        if wrong := [text for text in inputs if not isinstance(text, str)]:
            raise OptionError(f"translate takes a text or a list of texts; got {wrong[0]!r:.80} in the list.")
        return [self.with_measure(one) for one in Passages(self, super().answer, options).translate(inputs)]

    @property
    def has_attention(self) -> bool:
        """Whether translations come with a trace."""
        return self.config.architecture != "plain"

    @property
    def has_heads(self) -> bool:
        """Whether this is a Transformer of regard's own parts, whose heads can be looked at one by one."""
        own = self.config.encoder != "auto" or self.config.decoder != "auto"
        return self.config.architecture == "transformer" and not own

    @functools.cached_property
    def placeholders(self) -> list[str]:
        """Names that this model copies, most frequent first: they stand for names that it does not know."""
        words = possible_placeholders(self.source_tokenizer, self.target_tokenizer)
        options = TranslationOptions(beam=1, max_length=8, traces="none")
        found = super().answer([f"{word}." for word in words], options)
        copied = [
            word
            for word, one in zip(words, found, strict=True)
            if one.text in (word, f"{word}.") and one.score > MIN_SCORE
        ]
        return copied[:PLACEHOLDERS]

    def predict(self, inputs: Sequence[str], options: TranslationOptions) -> list[Translation]:
        """The translations of one batch of sentences, as the model reads them; `answer` prepares whole texts."""
        ids = [[*self.source_tokenizer.encode(text), END] for text in inputs]
        padded, lengths = pad(ids)
        encoded = self.encode(padded.to(self.device), lengths)
        found = [best[: options.nbest] for best in self._search(encoded, lengths.tolist(), options)]
        rows = [row for row, best in enumerate(found) for _ in best]
        flat = [hypothesis for best in found for hypothesis in best]
        traces = iter(traces_of(self, [inputs[row] for row in rows], [ids[row] for row in rows], flat, options.traces))
        results = []
        for text, source, best in zip(inputs, ids, found, strict=True):
            first, *others = [
                Translation(
                    text,
                    self._written(text, source, one) if options.replace_unknown else self._decoded(one),
                    one.score,
                    one.finished,
                    trace=next(traces),
                )
                for one in best
            ]
            results.append(replace(first, alternatives=tuple(others)))
        return results

    def length_limits(self, lengths: Sequence[int], options: Search) -> list[int]:
        """The most tokens that the translation of each source sentence may have."""
        if options.max_length is not None:
            return [options.max_length] * len(lengths)
        return [max(2 * length + 10, options.min_length) for length in lengths]

    def _search(self, encoded: Encoded, lengths: Sequence[int], options: Search) -> list[list[Hypothesis]]:
        prefix = self.target_tokenizer.encode(options.prefix) if options.prefix else []
        rows, limits = len(lengths), [max(limit, len(prefix)) for limit in self.length_limits(lengths, options)]
        rules = options.rules(
            start=START,
            end=END,
            banned=(PAD,),
            max_length=max(limits),
            prefixes=[prefix] * rows if prefix else None,
            limits=limits,
        )
        state = self.decoder.start(encoded)
        return search(self.decoder, state, rules, options, rows=rows, device=encoded.states.device)

    def _decoded(self, hypothesis: Hypothesis) -> str:
        return self.target_tokenizer.decode(hypothesis.tokens)

    def _written(self, text: str, source: list[int], hypothesis: Hypothesis) -> str:
        """The text of a hypothesis, each unknown word replaced by the source word that was attended to most."""
        written = self._decoded(hypothesis)
        if hypothesis.weights is None or len(source) == 1:
            return written
        words, word_of = text.split(), self.source_tokenizer.word_index(source[:-1])
        rows = self.by_word(hypothesis.weights)[:, : len(source) - 1]
        for token, weights in zip(hypothesis.tokens, rows, strict=False):
            if token == UNKNOWN:
                written = written.replace(UNKNOWN_MARK, words[word_of[int(weights.argmax())]], 1)
        return written
