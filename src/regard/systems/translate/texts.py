"""Whole texts: split into sentences, translated, and put together again, with the trace of the whole."""

import heapq
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakSet

from regard.data.text import well_formed
from regard.errors import RegardWarning
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.joined_traces import (
    capitalised,
    copied_trace,
    empty_trace,
    inserted,
    joined,
    renamed,
    with_copies,
    with_names,
    word_of_labels,
    word_weights,
)
from regard.systems.translate.model import Translation
from regard.systems.translate.retries import Decode, Draft, decode_together, find_names, is_kept, retry, with_attention
from regard.systems.translate.sentences import ADDRESS, Piece, Sentence, split
from regard.trace import Trace

if TYPE_CHECKING:
    from regard.systems.translate.model import Translator

_REPORTED: "WeakSet[Translator]" = WeakSet()
"""The models of which it was reported that they cannot spell something."""


def translate_texts(
    model: "Translator", decode: Decode, texts: Sequence[str], options: TranslationOptions
) -> list[Translation]:
    """A translation of each text: its sentences are decoded once, and again only where a check fails (`retry`)."""
    tokenizer = model.source_tokenizer
    by_sentence = model.config.split_sentences if options.split is None else options.split
    # Samples and prefixes are what was asked for, and no form of a sentence is better than another.
    checks = not options.sample and options.prefix is None
    texts = [well_formed(text) for text in texts]
    drafts = [
        [
            Draft(each, find_names(each, tokenizer) if checks and options.copy_unknown else [], each.piece())
            for each in split(text, tokenizer, by_sentence=by_sentence, copy=options.copy_unknown)
        ]
        for text in texts
    ]
    every = [draft for parts in drafts for draft in parts]
    _report_unspellable(model, [draft.sentence for draft in every])
    _decode(decode, drafts, options)
    if checks:
        retry(model, decode, every, options)
    return [_translation(model, text, parts, options) for text, parts in zip(texts, drafts, strict=True)]


def _decode(decode: Decode, drafts: Sequence[Sequence[Draft]], options: TranslationOptions) -> None:
    """Decode what can be read of each sentence of each text; a prefix is for the first of a text."""
    others = options if options.prefix is None else replace(options, prefix=None)
    readable = [[draft for draft in parts if draft.piece.read] for parts in drafts]
    wanted = [(draft, others if place else options) for parts in readable for place, draft in enumerate(parts)]
    results = decode_together(
        decode,
        [(draft.piece, with_attention(each) if draft.piece.copied or draft.names else each) for draft, each in wanted],
    )
    for (draft, _), result in zip(wanted, results, strict=True):
        draft.result = result


def _report_unspellable(model: "Translator", sentences: Sequence[Sentence]) -> None:
    """Warn once for each model of what it cannot spell."""
    copied = [sentence.given[slice(*span)] for sentence in sentences for span in sentence.copied]
    unspellable = [each for each in copied if not ADDRESS.fullmatch(each)]
    if unspellable and model not in _REPORTED:
        _REPORTED.add(model)
        warnings.warn(
            f"The vocabulary of this model cannot spell {unspellable[0][:40]!r}; such text is copied to the "
            "translation as it is.",
            RegardWarning,
            stacklevel=5,
        )


def _translation(model: "Translator", text: str, drafts: Sequence[Draft], options: TranslationOptions) -> Translation:
    """The translation of a text from those of its sentences."""
    if not drafts:
        trace = empty_trace(text) if model.has_attention and options.traces != "none" else None
        return Translation(text, "", 0.0, True, trace=trace)
    restored = [_restored(model, draft, begins=options.prefix is None) for draft in drafts]
    first, *others = [_joined(model, text, drafts, chosen, options) for chosen in _combined(model, restored, options)]
    return replace(first, alternatives=tuple(others))


def _restored(model: "Translator", draft: Draft, *, begins: bool) -> list[Translation]:
    """The translations of a sentence with names, capitals and copied parts, best first.

    `begins` says whether a translation may begin with a copied part.
    """
    piece, given = draft.piece, draft.sentence.given
    if draft.result is None:
        trace = copied_trace(given) if model.has_attention else None
        copied = tuple(given[slice(*span)] for span in draft.sentence.copied)
        return [Translation(given, given, 0.0, True, trace=trace, copied=copied)]
    restored = []
    for one in (draft.result, *draft.result.alternatives):
        if not is_kept(piece.stand_for, one.text):
            continue
        places = _places(one, piece, begins=begins)
        text, trace = one.text, one.trace
        if piece.stand_for:
            text = renamed(text, piece.stand_for)
            trace = None if trace is None else with_names(trace, piece.stand_for)
        if piece.capitals or piece.capital:
            text = text.upper() if piece.capitals else text[:1].upper() + text[1:]
            trace = None if trace is None else capitalised(trace, first_only=not piece.capitals)
        if piece.copied:
            text, trace = _with_copied(text, trace, one, piece, places)
        copied = (*(part.text for part in piece.copied), *piece.stand_for.values())
        restored.append(replace(one, text=text, trace=trace, copied=copied, alternatives=()))
    return restored


def _combined(
    model: "Translator", results: Sequence[Sequence[Translation]], options: TranslationOptions
) -> list[list[Translation]]:
    """Which translations of the sentences form the best translations of the text, best first."""
    if options.sample:
        count = max(map(len, results))  # what is copied comes once
        return [[each[place % len(each)] for each in results] for place in range(count)]
    if len(results) == 1:
        return [[one] for one in heapq.nlargest(options.nbest, results[0], key=lambda each: each.score)]
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
    model: "Translator", text: str, drafts: Sequence[Draft], chosen: Sequence[Translation], options: TranslationOptions
) -> Translation:
    """One translation of a text; its score is the mean of all its tokens."""
    written = "".join(f"{draft.sentence.separator}{one.text}" for draft, one in zip(drafts, chosen, strict=True))
    traces = [one.trace for one in chosen if one.trace is not None]
    trace, note = None, ""
    if options.traces != "none" and traces:
        trace = joined(traces, text, written)
        if trace is None:
            note = f"A text of {len(drafts)} sentences is too long for one trace; translate it in parts."
    score = chosen[0].score
    if len(chosen) > 1:
        sizes = [_size(model, one) for one in chosen]
        score = sum(one.score * size for one, size in zip(chosen, sizes, strict=True)) / max(1, sum(sizes))
    copied = tuple(part for one in chosen for part in one.copied)
    return Translation(text, written, score, all(one.finished for one in chosen), trace=trace, copied=copied, note=note)


def _size(model: "Translator", one: Translation) -> int:
    """The number of tokens of a translation, that of the end included."""
    return len(model.target_tokenizer.encode(one.text)) + 1


def _places(one: Translation, piece: Piece, *, begins: bool) -> list[int]:
    """Before which word of a translation each copied part goes: after the word that attends to what stands before it.

    `begins` says whether the translation may begin with one of them.
    """
    words, count = len(one.text.split()), len(piece.read.split())
    places = []
    for part in piece.copied:
        if part.place in (0, count):
            places.append(0 if part.place == 0 and begins else words)
        elif one.trace is None:
            places.append(round(part.place * words / count))
        else:
            places.append(1 + int(word_weights(one.trace, piece.read, one.text)[:, part.place - 1].argmax()))
    return places


def _with_copied(
    text: str, trace: Trace | None, one: Translation, piece: Piece, places: Sequence[int]
) -> tuple[str, Trace | None]:
    """A text and its trace, in which names and capitals of a translation are restored, with the copied parts."""
    words, copies = one.text.split(), [part.text for part in piece.copied]
    # A name may have more words than what stood for it, but has as many labels.
    moved = [len(renamed(" ".join(words[:place]), piece.stand_for).split()) for place in places]
    written = " ".join(inserted(text.split(), moved, copies))
    if trace is None or one.trace is None:
        return written, None
    columns = [_first_label(one.trace.source, piece.read, part.place) for part in piece.copied]
    rows = [_first_label(one.trace.target, one.text, place) for place in places]
    return written, with_copies(trace, columns, rows, copies, written)


def _first_label(labels: Sequence[str], text: str, word: int) -> int:
    """The first label of a word, or that of the mark after the last."""
    owners = word_of_labels(labels, text)
    after = [place for place, owner in enumerate(owners) if owner >= word]
    return after[0] if after else sum(owner >= 0 for owner in owners)
