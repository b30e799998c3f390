"""Curves of BLEU against length, lined up so that several models can be shown side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.errors import OptionError
from regard.metrics.translation import LengthBucket


@dataclass(frozen=True)
class LengthRow:
    """One range of lengths and what each model scores in it; None where a model has no sentence of such length."""

    label: str
    count: str
    scores: tuple[float | None, ...]


def line_up(curves: Mapping[str, Sequence[LengthBucket]]) -> list[LengthRow]:
    """A row for each range of lengths that any model has, from short to long."""
    if not any(map(len, curves.values())):
        raise OptionError(f"A length curve needs at least one model with one bucket; got {dict(curves)}.")
    found = {(bucket.shortest, bucket.longest): bucket for curve in curves.values() for bucket in curve}
    ranges = sorted(found, key=lambda bounds: bounds[0])
    for (_, longest), (shortest, _) in pairwise(ranges):
        if longest is None or shortest <= longest:
            raise OptionError(
                "Curves can be shown together when their buckets have the same edges; these overlap: "
                f"{', '.join(found[bounds].label for bounds in ranges)}."
            )
    by_range = [{(bucket.shortest, bucket.longest): bucket for bucket in curve} for curve in curves.values()]
    rows = []
    for bounds in ranges:
        buckets = [curve.get(bounds) for curve in by_range]
        counts = sorted({bucket.count for bucket in buckets if bucket})
        count = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
        rows.append(LengthRow(found[bounds].label, count, tuple(bucket.bleu if bucket else None for bucket in buckets)))
    return rows
