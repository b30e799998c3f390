"""Traces over words instead of subwords."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.trace.elements import Axis, Map, Series

if TYPE_CHECKING:
    from regard.trace.trace import Trace

SUMMED = ("log_prob", "surprisal")
"""Series of which a word has the sum over its subwords; of others it has the mean."""
MAX_GAP = 60
"""Characters of the text that may be passed over to find the next token."""
_SPECIAL = re.compile(
    r"</?s>|<(pad|bos|eos|sos|cls|sep|start|end)>|<\|[^|]*\|>|\[(CLS|SEP|PAD|BOS|EOS)\]", re.IGNORECASE
)
_UNKNOWN = re.compile(r"<unk>|\[UNK\]", re.IGNORECASE)
_MARKS = re.compile(r"^(?:[▁Ġ]|##)|(?:@@|</w>)$")

Groups = list[list[int]]
"""The positions of the tokens of each word."""


def join_subwords(trace: "Trace") -> "Trace":
    """See `Trace.by_words`."""
    groups = {axis.name: found for axis in trace.axes if (found := word_groups(axis)) is not None}
    if not groups:
        return trace
    return replace(
        trace,
        axes=tuple(_joined_axis(axis, groups.get(axis.name)) for axis in trace.axes),
        maps=tuple(_joined_map(each, groups.get(each.rows), groups.get(each.columns)) for each in trace.maps),
        series=tuple(_joined_series(each, groups, trace.maps) for each in trace.series),
        boxes=tuple(
            replace(box, position=_word_of(groups[box.axis])[box.position]) if box.axis in groups else box
            for box in trace.boxes
        ),
    )


def word_groups(axis: Axis) -> Groups | None:
    """The tokens of each word of an axis; None where every token is a word, or where that is not known."""
    if axis.kind != "tokens":
        return None
    starts = _starts_in_text(axis.labels, axis.text) if axis.text else _starts_by_marks(axis.labels)
    if starts is None or all(starts):
        return None
    groups: Groups = []
    for place, is_start in enumerate(starts):
        if is_start or not groups:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _starts_in_text(labels: Sequence[str], text: str) -> list[bool]:
    """Whether each token begins a word, found by looking it up in the text, where white space separates words."""
    # Case is folded first, and every place below is one in the folded text: folding changes the length of "İ".
    text, place, is_after_special = text.casefold(), 0, True
    starts = []
    for label in labels:
        if _SPECIAL.fullmatch(label):
            starts.append(True)
            is_after_special = True
            continue
        token = _MARKS.sub("", label).strip().casefold()
        is_unknown = _UNKNOWN.fullmatch(label) is not None
        found = len(text) - len(text[place:].lstrip()) if is_unknown else text.find(token, place)
        is_found = 0 <= found - place < MAX_GAP
        starts.append(is_after_special or not is_found or any(map(str.isspace, text[place:found])))
        if is_found:
            rest = text[found:]
            place = found + (len(rest.split(maxsplit=1)[0]) if is_unknown and rest.strip() else len(token))
        is_after_special = False
    return starts


def _starts_by_marks(labels: Sequence[str]) -> list[bool] | None:
    """Whether each token begins a word, by the marks of common subword tokenizers; None where there are none."""
    special = [_SPECIAL.fullmatch(label) is not None for label in labels]
    plain = [label for label, is_special in zip(labels, special, strict=True) if not is_special]
    edges = [i == 0 or special[i] or special[i - 1] for i in range(len(labels))]
    if any(label.startswith(("▁", "Ġ")) for label in plain):
        return [edge or label.startswith(("▁", "Ġ")) for edge, label in zip(edges, labels, strict=True)]
    if any(label.startswith("##") for label in plain):
        return [edge or not label.startswith("##") for edge, label in zip(edges, labels, strict=True)]
    for mark, ends_word in (("</w>", True), ("@@", False)):
        if any(label.endswith(mark) for label in plain):
            return [edge or labels[i - 1].endswith(mark) == ends_word for i, edge in enumerate(edges)]
    return None


def _joined_axis(axis: Axis, groups: Groups | None) -> Axis:
    if groups is None:
        return axis
    labels = ("".join(_MARKS.sub("", axis.labels[place]) for place in group) for group in groups)
    return replace(axis, kind="words", labels=tuple(labels))


def _joined_map(each: Map, rows: Groups | None, columns: Groups | None) -> Map:
    """The mean of the rows and the sum of the columns of each word, so that a row still sums to what it did."""
    weights = each.weights
    if columns is not None:
        weights = np.stack([weights[:, group].sum(1) for group in columns], 1)
    if rows is not None:
        weights = np.stack([weights[group].mean(0) for group in rows])
    return Map(each.name, each.rows, each.columns, weights, each.layer, each.head)


def _joined_series(each: Series, groups: dict[str, Groups], maps: Sequence[Map]) -> Series:
    rows = groups.get(each.axis)
    values = np.array(each.values)
    if each.name == "choice":
        columns = groups.get(maps[0].columns)
        if columns is not None:
            values = np.array(_word_of(columns))[values]
        chosen = values if rows is None else values[[group[0] for group in rows]]
        return Series(each.name, each.axis, chosen)
    if rows is None:
        return each
    joined = np.sum if each.name in SUMMED else np.mean
    return Series(each.name, each.axis, [joined(values[group]) for group in rows])


def _word_of(groups: Groups) -> list[int]:
    """The word that each token belongs to."""
    return [word for word, group in enumerate(groups) for _ in group]
