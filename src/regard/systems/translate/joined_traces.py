"""Traces of translations that were put together: of several sentences, with copied parts and restored names."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from regard.metrics.alignment import merge_subwords
from regard.trace import Axis, Map, Series, Trace

MAX_CELLS = 2**24
"""Maximum number of weights of a joined trace: they grow with the square of the number of sentences."""
_MARKS = ("<s>", "</s>")
_UNKNOWN = ("<unk>", "<unk>+")


def label_spans(labels: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where the label of each token stands in a text, (start, end); marks and lone spaces take no room."""
    spans, place = [], 0
    for number, label in enumerate(labels):
        if label in _MARKS or label == "▁":
            spans.append((place, place))
            continue
        place += len(text[place:]) - len(text[place:].lstrip(" "))
        length = _unknown_length(text[place:], labels[number:]) if label in _UNKNOWN else len(label)
        end = min(len(text), place + length)
        spans.append((place, end))
        place = end
    return spans


def _unknown_length(text: str, labels: Sequence[str]) -> int:
    """How long the first of these labels, which is unknown, is in a text: a character, or what is left of a word.

    Vocabularies of pieces lack single characters, those of words whole words; which it is shows in what follows.
    """
    count = next((place for place, label in enumerate(labels) if label not in _UNKNOWN), len(labels))
    after = next((label.lower() for label in labels[count:] if label not in _MARKS and label != "▁"), "")
    rest = text[count:].lstrip(" ").lower()
    if rest.startswith(after) if after else not rest:
        return 1
    word = text.split(" ", 1)[0]
    inside = word.lower().find(after, 1) if after and count == 1 else -1
    return inside if inside > 0 else len(word)


def word_of_labels(labels: Sequence[str], text: str) -> list[int]:
    """The word of a text that each label belongs to, counted from 0; -1 for marks."""
    return [
        -1 if start == end else text.count(" ", 0, start + 1)
        for start, end in label_spans(labels, text)
    ]  # fmt: skip


def word_weights(trace: Trace, source: str, target: str) -> Float[np.ndarray, "m n"]:
    """The attention of the main map from word to word, of a trace whose texts are these."""
    columns, rows = word_of_labels(trace.source, source), word_of_labels(trace.target, target)
    merged = merge_subwords(trace.weights, columns, rows)
    # Words without a label, which there are where a model writes a space at the end, attend to nothing.
    full = np.zeros((len(target.split()), len(source.split())))
    full[: len(merged), : merged.shape[1]] = merged
    return full


def empty_trace(text: str) -> Trace:
    """The trace of a text without words."""
    axes = Axis("source", "tokens", (), text=text), Axis("target", "tokens", (), text="")
    return Trace("translation", axes, (Map("cross", "target", "source", np.zeros((0, 0))),))


def copied_trace(text: str) -> Trace:
    """The trace of a text that was copied as a whole."""
    axes = Axis("source", "tokens", (text,), text=text), Axis("target", "tokens", (text,), text=text)
    maps = (Map("cross", "target", "source", [[1.0]]),)
    return Trace("translation", axes, maps, (Series("log_prob", "target", (0.0,)),))


def with_names(trace: Trace, stand_for: Mapping[str, str]) -> Trace:
    """The trace with names in place of the words that stood for them."""
    return replace(trace, axes=tuple(_with_names(axis, stand_for) for axis in trace.axes))


def _with_names(axis: Axis, stand_for: Mapping[str, str]) -> Axis:
    labels, text = list(axis.labels), axis.text or ""
    if axis.name == "history":  # its labels are those of the target, and it has no text
        return replace(axis, labels=tuple(stand_for.get(label, label) for label in labels))
    spans = label_spans(labels, text)
    for word, name in stand_for.items():
        match = re.search(rf"\b{word}\b", text)
        if match is None:
            continue
        inside = [
            place
            for place, (start, end) in enumerate(spans)
            if start < end and start < match.end() and end > match.start()
        ]
        for place in inside:
            labels[place] = name if place == inside[0] else ""
    return replace(axis, labels=tuple(labels), text=renamed(text, stand_for))


def renamed(text: str, stand_for: Mapping[str, str]) -> str:
    """The text with names in place of the words that stood for them."""
    if not stand_for:
        return text
    return re.sub(rf"\b(?:{'|'.join(stand_for)})\b", lambda match: stand_for[match[0]], text)


def with_copies(trace: Trace, columns: Sequence[int], rows: Sequence[int], texts: Sequence[str], text: str) -> Trace:
    """The trace with copied parts: a column and a row for each, inserted before these positions, with weight 1.

    `text` is the translation with the parts in it.
    """
    target = tuple(inserted(trace.target, rows, texts))
    # The history is the target one step before: after <s>, without the last of its tokens.
    history = [min(row + 1, len(trace.target)) for row in rows]
    places = {"source": list(columns), "target": list(rows), "history": history}
    changes: dict[str, dict[str, Any]] = {
        "source": {"labels": tuple(inserted(trace.source, columns, texts))},
        "target": {"labels": target, "text": text},
        "history": {"labels": ("<s>", *target[:-1])},
    }
    axes = tuple(replace(axis, **changes[axis.name]) for axis in trace.axes)
    maps = []
    for each in trace.maps:
        weights = np.insert(each.weights, places[each.columns], 0.0, axis=1)
        weights = np.insert(weights, places[each.rows], 0.0, axis=0)
        if each.columns == "source" and each.rows == "target":
            weights[_new_places(rows), _new_places(columns)] = 1.0
        maps.append(Map(each.name, each.rows, each.columns, weights, each.layer, each.head))
    series = tuple(
        Series(each.name, each.axis, np.insert(np.array(each.values, dtype=float), places[each.axis], 0.0))
        for each in trace.series
    )
    return replace(trace, axes=axes, maps=tuple(maps), series=series)


def capitalised(trace: Trace, *, first_only: bool) -> Trace:
    """The trace with all labels and texts in capitals, or with a capital at their beginning."""

    def changed(text: str) -> str:
        return text[:1].upper() + text[1:] if first_only else text.upper()

    def labels(axis: Axis) -> tuple[str, ...]:
        count = 1 if first_only else len(axis.labels)
        return (*(each if each in _MARKS else changed(each) for each in axis.labels[:count]), *axis.labels[count:])

    axes = (
        replace(axis, labels=labels(axis), text=None if axis.text is None else changed(axis.text))
        for axis in trace.axes
    )
    return replace(trace, axes=tuple(axes))


def joined(traces: Sequence[Trace], source: str, target: str) -> Trace | None:
    """One trace of several sentences, in which each attends to itself alone; None where it would be too large."""
    texts = {"source": source, "target": target}
    if len(traces) == 1 and all(traces[0].axis(name).text == text for name, text in texts.items()):
        return traces[0]
    axes = [{axis.name: axis for axis in trace.axes} for trace in traces]
    names = list(dict.fromkeys(name for each in axes for name in each))
    ends = {name: np.cumsum([0, *(len(each.get(name, ())) for each in axes)]) for name in names}
    kinds = {each.name: each for trace in traces for each in trace.maps}
    shapes = {name: (int(ends[each.rows][-1]), int(ends[each.columns][-1])) for name, each in kinds.items()}
    if sum(map(math.prod, shapes.values())) > MAX_CELLS:
        return None
    tables = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    for place, trace in enumerate(traces):
        for each in trace.maps:
            rows, columns = (slice(*ends[axis][place : place + 2]) for axis in (each.rows, each.columns))
            tables[each.name][rows, columns] = each.weights
    joined_axes = (
        Axis(
            name, "tokens", tuple(chain.from_iterable(each[name].labels for each in axes if name in each)),
            text=texts.get(name),
        )
        for name in names
    )  # fmt: skip
    maps = (Map(name, each.rows, each.columns, tables[name], each.layer, each.head) for name, each in kinds.items())
    values = [value for trace in traces for value in trace.values("log_prob") or ()]
    return Trace("translation", tuple(joined_axes), tuple(maps), (Series("log_prob", "target", values),))


def inserted(items: Sequence[str], places: Sequence[int], more: Sequence[str]) -> list[str]:
    """The items with others before these places; those at one place keep their order."""
    result = list(items)
    for place, _, each in sorted(zip(places, range(len(more)), more, strict=True), reverse=True):
        result.insert(place, each)
    return result


def _new_places(places: Sequence[int]) -> Int[np.ndarray, "n"]:
    """Where each of the inserted positions stands after all have been inserted."""
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(len(places))
    return np.asarray(places, dtype=np.int64) + ranks
