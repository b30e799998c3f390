"""Traces over words instead of subwords."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.trace.elements import Axis, Map, Series

if TYPE_CHECKING:
    from regard.trace.trace import Trace

SUMMED = ("log_prob", "surprisal")
"""Series of which a word has the sum over its subwords; of others it has the mean."""
Owners = list[int]
"""The word that each token belongs to."""


def join_subwords(trace: "Trace") -> "Trace":
    """See `Trace.by_words`."""
    owners = {
        axis.name: [word for word, (_, count) in enumerate(axis.words) for _ in range(count)]
        for axis in trace.axes
        if axis.words is not None
    }
    if not owners:
        return trace
    return replace(
        trace,
        axes=tuple(_joined_axis(axis) for axis in trace.axes),
        maps=tuple(_joined_map(each, owners.get(each.rows), owners.get(each.columns)) for each in trace.maps),
        series=tuple(_joined_series(each, owners, trace.maps) for each in trace.series),
        boxes=tuple(
            replace(box, position=owners[box.axis][box.position]) if box.axis in owners else box for box in trace.boxes
        ),
    )


def _joined_axis(axis: Axis) -> Axis:
    return axis if axis.words is None else replace(axis, kind="words", labels=tuple(word for word, _ in axis.words))


def _joined_map(each: Map, rows: Owners | None, columns: Owners | None) -> Map:
    """The mean of the rows and the sum of the columns of each word, so that a row still sums to what it did."""
    weights = each.weights
    if columns is not None:
        weights = np.stack([weights[:, group].sum(1) for group in _groups(columns)], 1)
    if rows is not None:
        weights = np.stack([weights[group].mean(0) for group in _groups(rows)])
    return Map(each.name, each.rows, each.columns, weights, each.layer, each.head)


def _joined_series(each: Series, owners: Mapping[str, Owners], maps: Sequence[Map]) -> Series:
    values = np.array(each.values)
    if each.name == "choice" and maps[0].columns in owners:
        values = np.array(owners[maps[0].columns])[values]
    if each.axis in owners:
        groups = _groups(owners[each.axis])
        if each.name == "choice":
            values = values[[group[0] for group in groups]]
        else:
            joined = np.sum if each.name in SUMMED else np.mean
            values = np.array([joined(values[group]) for group in groups])
    return Series(each.name, each.axis, values)


def _groups(owners: Owners) -> list[list[int]]:
    """The tokens of each word."""
    groups: list[list[int]] = [[] for _ in range(owners[-1] + 1)]
    for token, word in enumerate(owners):
        groups[word].append(token)
    return groups
