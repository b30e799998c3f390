"""Translation whatever computes it: from texts to ids, from hypotheses to translations and their traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from regard.data.alignments import format_links
from regard.data.text import ByteStream, decode_document, read_all, read_limited
from regard.data.tokenizer import END, PAD, START, UNKNOWN, UNKNOWN_MARK, Tokenizer
from regard.errors import OptionError
from regard.metrics.alignment import Link
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.options import Search
from regard.systems.predictor import Predictor, Result
from regard.systems.translate.config import (
    MAX_UNSPLIT_TOKENS,
    TranslationArguments,
    TranslationConfig,
    TranslationOptions,
)
from regard.trace import Axis, Map, Series, Trace


@dataclass(frozen=True)
class Translation(Result):
    """One translation."""

    source: str
    text: str
    score: float
    """Mean log-probability of a token, or whatever else the search ranked by."""
    finished: bool
    """False where the output was cut at the length limit."""
    alternatives: tuple["Translation", ...] = field(default=(), repr=False)
    """The next best translations, where `nbest` asked for them."""
    links: tuple[Link, ...] = field(default=(), repr=False)
    """Pairs of a source word and the word of the translation that attends to it, where `links` asked for them; words
    are separated by whitespace and counted from 0."""
    note: str = ""
    """What the user should know about it, such as why it has no trace."""

    @property
    def caution(self) -> str:
        """What a command says beside the translation."""
        return self.note


class Translating(Predictor[str, Translation, TranslationOptions]):
    """What translates texts with a tokenizer on each side; subclasses define `hypotheses`."""

    kind = "translate"
    Config = TranslationConfig
    assets: ClassVar[Mapping[str, Any]] = {"source_tokenizer": Tokenizer, "target_tokenizer": Tokenizer}
    config: TranslationConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer

    def hypotheses(self, sources: Sequence[list[int]], options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each source sentence, whose ids end in END."""
        raise TypeError(f"{type(self).__name__} does not define hypotheses(sources, options).")

    def all_maps(self, sources: Sequence[list[int]], found: Sequence[Hypothesis]) -> list[tuple[Map, ...]]:
        """The attention of every layer and head for each source sentence with its hypothesis."""
        raise TypeError(f"{type(self).__name__} does not define all_maps(sources, found).")

    def by_word(self, weights: Any) -> Any:
        """Turn the attention of each decoding step into that of the token that the step predicts.

        With alignment_step "input", the attention of a token is that of the next step, which reads it. The last step
        keeps its own. The weights, (..., m, n), may be an array or a tensor.
        """
        if self.config.alignment_step == "output" or not weights.shape[-2]:
            return weights
        return weights[..., [*range(1, weights.shape[-2]), -1], :]

    def costs(self, inputs: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        return [len(ids) + 1 for ids in self.source_tokenizer.encode_batch(list(inputs))]

    translate = Predictor.predict

    def predict_all(self, inputs: Sequence[str], options: TranslationOptions) -> list[Translation]:
        """The translations of any number of texts, in order."""
        if wrong := [text for text in inputs if not isinstance(text, str)]:
            raise OptionError(f"translate takes a text or a list of texts; got {wrong[0]!r:.80}.")
        if options.markup:
            from regard.systems.translate.markup.documents import translate_documents

            return translate_documents(self, super().predict_all, inputs, options)
        from regard.systems.translate.texts import translate_texts

        # Splits the texts, and has their sentences decoded as the inputs of any system are.
        return translate_texts(self, super().predict_all, inputs, options)

    def read_arguments(
        self, given: Sequence[str], arguments: TranslationArguments, options: TranslationOptions, pipe: ByteStream
    ) -> list[str] | None:
        """Texts; or with `markup` whole documents, of which the standard input is one."""
        if not options.markup:
            return list(given) or None
        return [decode_document(read_all(path), path) for path in given] or [
            decode_document(read_limited(pipe, "The standard input"), "The standard input")
        ]

    def line(self, option: str, result: Translation) -> str:
        """The word links of a translation, which `--alignments` writes."""
        return format_links(result.links)

    @property
    def has_attention(self) -> bool:
        """Whether translations come with a trace."""
        return self.config.architecture != "plain"

    @property
    def has_heads(self) -> bool:
        """Whether this is a Transformer without custom parts, whose heads can be looked at one by one."""
        return self.config.architecture == "transformer" and not self.config.has_custom_networks

    def predict_batch(self, inputs: Sequence[str], options: TranslationOptions) -> list[Translation]:
        """The translations of one batch of sentences, as the model reads them; `predict_all` prepares whole texts."""
        ids = [[*self.source_tokenizer.encode(text), END] for text in inputs]
        if (longest := max(map(len, ids), default=0)) > MAX_UNSPLIT_TOKENS:
            raise OptionError(
                f"A sentence must have at most {MAX_UNSPLIT_TOKENS:,} tokens; got {longest:,}. Let it be split "
                "(split=True), or give its parts."
            )
        found = [best[: options.nbest] for best in self.hypotheses(ids, options)]
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
        """Maximum number of tokens of the translation of each source sentence."""
        if options.max_length is not None:
            return [options.max_length] * len(lengths)
        return [max(2 * length + 10, options.min_length) for length in lengths]

    def rules(self, lengths: Sequence[int], options: Search) -> Rules:
        """The rules of a search for source sentences of these lengths."""
        prefix = self.target_tokenizer.encode(options.prefix) if options.prefix else []
        limits = [max(limit, len(prefix)) for limit in self.length_limits(lengths, options)]
        return options.rules(
            start=START,
            end=END,
            banned=(PAD,),
            max_length=max(limits),
            prefixes=[prefix] * len(lengths) if prefix else None,
            limits=limits,
        )

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


def traces_of(
    model: Translating, texts: Sequence[str], sources: Sequence[list[int]], found: Sequence[Hypothesis], which: str
) -> list[Trace | None]:
    """The traces of hypotheses, one for each text with its tokens: "main", "all" with every layer and head, "none"."""
    if which == "none" or any(one.weights is None for one in found):
        return [None] * len(found)
    every = model.all_maps(sources, found) if which == "all" else [()] * len(found)
    return [
        _trace(model, text, source, one, maps)
        for text, source, one, maps in zip(texts, sources, found, every, strict=True)
    ]


def _trace(model: Translating, text: str, source: list[int], hypothesis: Hypothesis, more: tuple[Map, ...]) -> Trace:
    end = ["</s>"] if hypothesis.finished else []
    pieces = (*model.target_tokenizer.pieces(hypothesis.tokens), *end)
    columns = Axis("source", "tokens", (*model.source_tokenizer.pieces(source[:-1]), "</s>"), text=text)
    rows = Axis("target", "tokens", pieces, text=model.target_tokenizer.decode(hypothesis.tokens))
    # What a decoder's self-attention looks back at: the tokens that were its inputs.
    history = (Axis("history", "tokens", ("<s>", *pieces[:-1])),) if more else ()
    if hypothesis.weights is None:
        raise TypeError("A trace needs attention weights.")
    weights = model.by_word(hypothesis.weights[: len(pieces), : len(source)])
    log_probs = Series("log_prob", "target", tuple(hypothesis.log_probs[: len(pieces)]))
    maps = (Map("cross", "target", "source", weights), *more)
    return Trace("translation", (columns, rows, *history), maps, (log_probs,))
