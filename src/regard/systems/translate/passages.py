"""Translating whole texts: their sentences one by one, with what no vocabulary can spell, names and capitals restored.

A model is good at what it was trained on, and answers anything else with fluent nonsense. So a text is divided into
sentences, parts that the model cannot read are taken out, sentences in capitals and unknown names are tried in a form
that it knows; and the translation is put together again, with the trace of the whole.
"""

import heapq
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.data.text import well_formed
from regard.errors import RegardWarning
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.joined_traces import (
    copied_trace,
    empty_trace,
    in_capitals,
    inserted,
    joined,
    renamed,
    with_capital,
    with_copies,
    with_names,
    word_of_labels,
    word_weights,
)
from regard.systems.translate.names import find_names, is_guessed, is_kept, lost_numbers, with_placeholders
from regard.systems.translate.recasing import is_in_capitals, recased, without_first_capital
from regard.systems.translate.result import Translation
from regard.systems.translate.segments import ADDRESS, Form, Segment, Span, segments
from regard.trace import Trace

if TYPE_CHECKING:
    from regard.systems.translate.model import Translator

Decode = Callable[[Sequence[str], TranslationOptions], list[Translation]]
"""Translates sentences as they are, in order."""


class Passages:
    """Translates texts with a model and a way to decode sentences."""

    def __init__(self, model: "Translator", decode: Decode, options: TranslationOptions) -> None:
        self.model, self.decode, self.options = model, decode, options
        self.split = model.config.split_sentences if options.split is None else options.split
        # Samples and prefixes are what was asked for, and no form of a sentence is better than another.
        self.retries = not options.sample and options.prefix is None

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """A translation of each text."""
        tokenizer, options = self.model.source_tokenizer, self.options
        texts = [well_formed(text) for text in texts]
        divided = [segments(text, tokenizer, split=self.split, copy=options.copy_unknown) for text in texts]
        results = iter(self._translate([part for parts in divided for part in parts]))
        copied = [part.given[slice(*span)] for parts in divided for part in parts for span in part.copied]
        self._report([each for each in copied if not ADDRESS.fullmatch(each)])
        return [
            self._joined(text, parts, [next(results) for _ in parts])
            for text, parts in zip(texts, divided, strict=True)
        ]

    def _translate(self, parts: Sequence[Segment]) -> list[list[Translation]]:
        """The translations of segments, best first."""
        forms = {number: form for number, part in enumerate(parts) if (form := part.form()).read}
        names = {number: self._names(parts[number]) for number in forms}
        found: dict[int, tuple[Form, Translation]] = {}
        # A prefix is for the first sentence of a text that is translated.
        texts = list(accumulate(not part.joint for part in parts))
        first = {text: number for number, text in reversed(list(enumerate(texts))) if number in forms}
        for begins, options in ((True, self.options), (False, replace(self.options, prefix=None))):
            chosen = [number for number in forms if begins == (first[texts[number]] == number)]
            looked_at = [bool(forms[number].runs or names[number]) for number in chosen]
            decoded = self._decode([forms[number].read for number in chosen], options, looked_at)
            found |= {number: (forms[number], result) for number, result in zip(chosen, decoded, strict=True)}
        if self.retries:
            found |= self._retried(parts, names, found)
        return [
            self._restored(*found[number]) if number in found else self._copied(part)
            for number, part in enumerate(parts)
        ]

    def _names(self, part: Segment) -> list[Span]:
        return find_names(part, self.model.source_tokenizer) if self.retries and self.options.copy_unknown else []

    def _decode(
        self, texts: Sequence[str], options: TranslationOptions, looked_at: Sequence[bool]
    ) -> list[Translation]:
        """Decode sentences; attention is needed only where it is asked for or looked at here."""
        more = replace(options, traces="main" if options.traces == "none" else options.traces)
        results: dict[int, Translation] = {}
        for needed, chosen in ((False, options), (True, more)):
            places = [place for place, each in enumerate(looked_at) if each == needed]
            decoded = self.decode([texts[place] for place in places], chosen)
            results |= dict(zip(places, decoded, strict=True))
        return [results[place] for place in range(len(texts))]

    def _retried(
        self,
        parts: Sequence[Segment],
        names: Mapping[int, Sequence[Span]],
        found: Mapping[int, tuple[Form, Translation]],
    ) -> dict[int, tuple[Form, Translation]]:
        """Better translations of sentences in capitals, with a rare first word, unknown names or lost numbers."""
        tries = [
            (number, form)
            for number, (first, result) in found.items()
            for form in self._other_forms(parts[number], names[number], first, result)
        ]
        decoded = self._decode([form.read for _, form in tries], self.options, [bool(form.runs) for _, form in tries])
        better: dict[int, tuple[Form, Translation]] = {}
        for (number, form), result in zip(tries, decoded, strict=True):
            first = found[number]
            best = better.get(number, first if self._may_be_better(first[0], form) else None)
            if is_kept(form.stand_for, result.text) and (best is None or result.score > best[1].score):
                better[number] = (form, result)
        return better

    def _may_be_better(self, first: Form, other: Form) -> bool:
        """Whether a sentence as it was given may have a better translation than in another form.

        Capitals that take more pieces than lower case were hardly seen in training, and a model is most certain of them
        where it copies them unread. Their score says nothing then.
        """
        if other.capitals:
            tokenizer = self.model.source_tokenizer
            return len(tokenizer.encode(first.read)) <= len(tokenizer.encode(other.read))
        return other.capital

    def _other_forms(self, part: Segment, names: Sequence[Span], form: Form, result: Translation) -> list[Form]:
        """Other ways to read a sentence: in lower case, or with known names and numbers in the place of others."""
        tokenizer = self.model.source_tokenizer
        if self.options.recase and not tokenizer.lowercase and is_in_capitals(form.read):
            return [replace(form, read=read, capitals=True) for read in recased(form.read, tokenizer)]
        unknown = [span for span in part.copied if any(map(str.isalpha, part.given[slice(*span)]))]
        if unknown:  # so that the first translation, which lacks words, says nothing about the others
            unknown += names
        elif result.trace is not None:
            unknown = [name for name in names if is_guessed(name, part, result.text, result.trace, tokenizer)]
        numbers = lost_numbers(part, result.text) if self.options.copy_unknown and tokenizer.kind == "bpe" else []
        if unknown or numbers:
            return with_placeholders(part, unknown, self.model.placeholders if unknown else (), numbers)
        small = without_first_capital(form.read, tokenizer) if self.options.recase else None
        return [] if small is None else [replace(form, read=small, capital=True)]

    def _restored(self, form: Form, result: Translation) -> list[Translation]:
        """The translations of a segment with names, capitals and copied parts, best first."""
        restored = []
        for one in (result, *result.alternatives):
            if not is_kept(form.stand_for, one.text):
                continue
            places = _run_places(one, form, begins=self.options.prefix is None)
            text, trace = renamed(one.text, form.stand_for), one.trace
            if trace is not None and form.stand_for:
                trace = with_names(trace, form.stand_for)
            if form.capitals:
                text, trace = text.upper(), None if trace is None else in_capitals(trace)
            if form.capital:
                text, trace = text[:1].upper() + text[1:], None if trace is None else with_capital(trace)
            if form.runs:
                text, trace = _with_runs(text, trace, one, form, places)
            copied = (*(run.text for run in form.runs), *form.stand_for.values())
            restored.append(replace(one, text=text, trace=trace, copied=copied, alternatives=()))
        return restored

    def _copied(self, part: Segment) -> list[Translation]:
        """A segment that the model cannot read, as it is."""
        trace = copied_trace(part.given) if self.model.has_attention else None
        copied = tuple(part.given[slice(*span)] for span in part.copied)
        return [Translation(part.given, part.given, 0.0, True, trace=trace, copied=copied)]

    def _joined(self, text: str, parts: Sequence[Segment], results: Sequence[Sequence[Translation]]) -> Translation:
        """The translation of a text from those of its segments."""
        if not parts:
            trace = empty_trace(text) if self.model.has_attention and self.options.traces != "none" else None
            return Translation(text, "", 0.0, True, trace=trace)
        first, *others = [self._join(text, parts, chosen) for chosen in self._combined(results)]
        return replace(first, alternatives=tuple(others))

    def _combined(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """Which translations of the segments form the best translations of the text, best first."""
        if self.options.sample:
            count = max(map(len, results))  # what is copied comes once
            return [[each[place % len(each)] for each in results] for place in range(count)]
        if len(results) == 1:
            return [[one] for one in heapq.nlargest(self.options.nbest, results[0], key=lambda each: each.score)]
        # With the sums that a score consists of, so that a further sentence costs the same in texts of any length.
        best: list[tuple[float, int, list[Translation]]] = [(0.0, 0, [])]
        for ranked in results:
            sizes = [self._size(one) for one in ranked]
            longer = [
                (total + one.score * more, size + more, [*chosen, one])
                for total, size, chosen in best
                for one, more in zip(ranked, sizes, strict=True)
            ]
            best = heapq.nlargest(self.options.nbest, longer, key=lambda each: each[0] / max(1, each[1]))
        return [chosen for _, _, chosen in best]

    def _join(self, text: str, parts: Sequence[Segment], chosen: Sequence[Translation]) -> Translation:
        written = "".join(f"{part.joint}{one.text}" for part, one in zip(parts, chosen, strict=True))
        traces = [one.trace for one in chosen if one.trace is not None]
        trace = None
        if self.options.traces != "none" and traces:
            trace = joined(traces, text, written)
            if trace is None:
                self._warn(f"A text of {len(parts)} sentences is too long for one trace; translate it in parts.")
        copied = tuple(part for one in chosen for part in one.copied)
        finished = all(one.finished for one in chosen)
        return Translation(text, written, self._score(chosen), finished, trace=trace, copied=copied)

    def _score(self, chosen: Sequence[Translation]) -> float:
        """The mean of the scores, weighted by length: of mean log-probabilities, that of all tokens together."""
        if len(chosen) == 1:
            return chosen[0].score
        sizes = [self._size(one) for one in chosen]
        return sum(one.score * size for one, size in zip(chosen, sizes, strict=True)) / max(1, sum(sizes))

    def _size(self, one: Translation) -> int:
        """The number of tokens of a translation, that of the end included."""
        return len(self.model.target_tokenizer.encode(one.text)) + 1

    def _report(self, unspellable: Sequence[str]) -> None:
        if unspellable:
            self._warn(
                f"The vocabulary of this model cannot spell {unspellable[0][:40]!r}; such text is copied to the "
                "translation as it is."
            )

    def _warn(self, message: str) -> None:
        """Warn once for each model."""
        if not self.model.has_warned:
            self.model.has_warned = True
            warnings.warn(message, RegardWarning, stacklevel=6)


def _run_places(one: Translation, form: Form, *, begins: bool) -> list[int]:
    """Before which word of a translation each copied part goes: after the word that attends to what stands before it.

    `begins` says whether the translation may begin with one of them.
    """
    words, count = len(one.text.split()), len(form.read.split())
    places = []
    for run in form.runs:
        if run.place in (0, count):
            places.append(0 if run.place == 0 and begins else words)
        elif one.trace is None:
            places.append(round(run.place * words / count))
        else:
            places.append(1 + int(word_weights(one.trace, form.read, one.text)[:, run.place - 1].argmax()))
    return places


def _with_runs(
    text: str, trace: Trace | None, one: Translation, form: Form, places: Sequence[int]
) -> tuple[str, Trace | None]:
    """A text and its trace, in which names and capitals of a translation are restored, with the copied parts."""
    words, copies = one.text.split(), [run.text for run in form.runs]
    # A name may have more words than what stood for it, but has as many labels.
    moved = [len(renamed(" ".join(words[:place]), form.stand_for).split()) for place in places]
    written = " ".join(inserted(text.split(), moved, copies))
    if trace is None or one.trace is None:
        return written, None
    columns = [_first_label(one.trace.source, form.read, run.place) for run in form.runs]
    rows = [_first_label(one.trace.target, one.text, place) for place in places]
    return written, with_copies(trace, columns, rows, copies, written)


def _first_label(labels: Sequence[str], text: str, word: int) -> int:
    """The first label of a word, or that of the mark after the last."""
    owners = word_of_labels(labels, text)
    after = [place for place, owner in enumerate(owners) if owner >= word]
    return after[0] if after else sum(owner >= 0 for owner in owners)
