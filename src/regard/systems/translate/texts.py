"""Whole texts: split into sentences, each translated once, and put together again, with the trace of the whole."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

import numpy as np

from regard.data.text import well_formed
from regard.errors import OptionError
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.links import Block, aligned, copied, word_links
from regard.systems.translate.sentences import Sentence, split
from regard.systems.translate.translation import Translating, Translation
from regard.trace import Axis, Map, Series, Trace

Decode = Callable[[Sequence[str], TranslationOptions], "list[Translation]"]
"""Translates sentences as they are, in order."""
MAX_CELLS = 2**24
"""Maximum number of weights of a joined trace: they grow with the square of the number of sentences."""


def translate_texts(
    model: Translating, decode: Decode, texts: Sequence[str], options: TranslationOptions
) -> list[Translation]:
    """A translation of each text. All sentences are decoded together; a prefix is for the first of a text."""
    if not options.links:
        return [each for each, _ in translate_in_parts(model, decode, texts, options)]
    found = translate_in_parts(model, decode, texts, with_traces(model, options, "Word links"))
    return [
        without_traces(replace(each, links=word_links(each.source, each.text, blocks())), options)
        for each, blocks in found
    ]


def with_traces(model: Translating, options: TranslationOptions, purpose: str) -> TranslationOptions:
    """The options with traces, which a purpose needs; a model without attention is refused."""
    if not model.has_attention:
        raise OptionError(f"{purpose} come from attention, which a plain model does not have.")
    return replace(options, traces="main") if options.traces == "none" else options


def without_traces(result: Translation, options: TranslationOptions) -> Translation:
    """The result without its traces, where only a purpose asked for them."""
    if options.traces != "none":
        return result
    others = tuple(replace(each, trace=None) for each in result.alternatives)
    return replace(result, trace=None, alternatives=others)


def translate_in_parts(
    model: Translating, decode: Decode, texts: Sequence[str], options: TranslationOptions
) -> list[tuple[Translation, Callable[[], list[Block]]]]:
    """A translation of each text, and a function that says which of its parts come from which of the text."""
    by_sentence = model.config.split_sentences if options.split is None else options.split
    texts = [well_formed(text) for text in texts]
    parts = [split(text, model.source_tokenizer, by_sentence=by_sentence) for text in texts]
    # A batch has one set of options: sentences with the prefix are decoded apart from those behind it.
    given = [
        (each.given, options.prefix is not None and index > 0)
        for sentences in parts
        for index, each in enumerate(sentences)
    ]
    firsts = [text for text, is_behind in given if not is_behind]
    others = [text for text, is_behind in given if is_behind]
    first = iter(decode(firsts, options) if firsts else [])
    other = iter(decode(others, replace(options, prefix=None)) if others else [])
    decoded = iter([next(other if is_behind else first) for _, is_behind in given])
    results = [list(islice(decoded, len(sentences))) for sentences in parts]
    return [_translation(model, *each, options) for each in zip(texts, parts, results, strict=True)]


def _translation(
    model: Translating,
    text: str,
    sentences: Sequence[Sentence],
    results: Sequence[Translation],
    options: TranslationOptions,
) -> tuple[Translation, Callable[[], list[Block]]]:
    """The translation of a text from those of its sentences; a text without any stays as it is."""
    if not sentences:
        trace = empty_trace(text) if model.has_attention and options.traces != "none" else None
        return Translation(text, " ".join(text.split()), 0.0, True, trace=trace), partial(copied, text)
    ranked = [(one, *one.alternatives) for one in results]
    combined = _combined(model, ranked, options)
    first, *others = [_joined(model, text, sentences, chosen, options) for chosen in combined]
    return replace(first, alternatives=tuple(others)), partial(_blocks, text, sentences, combined[0])


def _blocks(text: str, sentences: Sequence[Sentence], chosen: Sequence[Translation]) -> list[Block]:
    traces = [one.trace or empty_trace(one.source) for one in chosen]
    return aligned(text, sentences, _written(sentences, chosen), traces)


def _written(sentences: Sequence[Sentence], chosen: Sequence[Translation]) -> list[str]:
    """The translations of sentences as they are written."""
    return [one.text.upper() if each.in_capitals else one.text for each, one in zip(sentences, chosen, strict=True)]


def _combined(
    model: Translating, results: Sequence[Sequence[Translation]], options: TranslationOptions
) -> list[list[Translation]]:
    """Which translations of the sentences form the best translations of the text, best first."""
    if options.sample or len(results) == 1:
        return [list(each) for each in zip(*results, strict=True)]
    # With the sums that a score consists of, so that a further sentence costs the same in texts of any length.
    best: list[tuple[float, int, list[Translation]]] = [(0.0, 0, [])]
    for ranked in results:
        sizes = [_size(model, one) for one in ranked]
        longer = [
            (total + one.score * more, size + more, [*chosen, one])
            for total, size, chosen in best
            for one, more in zip(ranked, sizes, strict=True)
        ]
        best = heapq.nlargest(options.nbest, longer, key=lambda each: each[0] / max(1, each[1]))
    return [chosen for _, _, chosen in best]


def _joined(
    model: Translating,
    text: str,
    sentences: Sequence[Sentence],
    chosen: Sequence[Translation],
    options: TranslationOptions,
) -> Translation:
    """One translation of a text; its score is the mean of all its tokens."""
    parts = zip(sentences, _written(sentences, chosen), strict=True)
    written = "".join(f"{each.before}{one}{each.after}" for each, one in parts)
    traces = [one.trace for one in chosen if one.trace is not None]
    trace, note = None, ""
    if options.traces != "none" and traces:
        trace = joined(traces)
        if trace is None:
            note = f"A text of {len(sentences)} sentences is too long for one trace; translate it in parts."
    score = chosen[0].score
    if len(chosen) > 1:
        sizes = [_size(model, one) for one in chosen]
        score = sum(one.score * size for one, size in zip(chosen, sizes, strict=True)) / max(1, sum(sizes))
    return Translation(text, written, score, all(one.finished for one in chosen), trace=trace, note=note)


def _size(model: Translating, one: Translation) -> int:
    """The number of tokens of a translation, that of the end included."""
    return len(model.target_tokenizer.encode(one.text)) + 1


def empty_trace(text: str) -> Trace:
    """The trace of a text without words."""
    axes = Axis("source", "tokens", (), text=text), Axis("target", "tokens", (), text="")
    return Trace("translation", axes, (Map("cross", "target", "source", np.zeros((0, 0))),))


def joined(traces: Sequence[Trace]) -> Trace | None:
    """One trace of several sentences, in which each attends to itself alone; None where it would be too large."""
    if len(traces) == 1:
        return traces[0]
    axes = [{axis.name: axis for axis in trace.axes} for trace in traces]
    names = list(dict.fromkeys(name for each in axes for name in each))
    ends = {name: np.cumsum([0, *(len(each.get(name, ())) for each in axes)]) for name in names}
    kinds = {each.name: each for trace in traces for each in trace.maps}
    shapes = {name: (int(ends[each.rows][-1]), int(ends[each.columns][-1])) for name, each in kinds.items()}
    if sum(map(math.prod, shapes.values())) > MAX_CELLS:
        return None
    tables = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    for index, trace in enumerate(traces):
        for each in trace.maps:
            rows, columns = (slice(*ends[axis][index : index + 2]) for axis in (each.rows, each.columns))
            tables[each.name][rows, columns] = each.weights
    maps = (Map(name, each.rows, each.columns, tables[name], each.layer, each.head) for name, each in kinds.items())
    values = [value for trace in traces for value in trace.values("log_prob") or ()]
    joined_axes = (_joined_axis([each[name] for each in axes if name in each]) for name in names)
    return Trace("translation", tuple(joined_axes), tuple(maps), (Series("log_prob", "target", values),))


def _joined_axis(axes: Sequence[Axis]) -> Axis:
    labels = tuple(chain.from_iterable(each.labels for each in axes))
    texts = [each.text for each in axes if each.text is not None]
    return Axis(axes[0].name, "tokens", labels, text=" ".join(texts) if texts else None)
