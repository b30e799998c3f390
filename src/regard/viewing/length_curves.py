"""BLEU by the length of the source: curves of several models lined up, as one figure and as a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from regard.errors import OptionError
from regard.viewing.tokens import heading, printable

if TYPE_CHECKING:
    from regard.metrics.translation import LengthBucket
    from regard.viewing.figures import InlineFigure

# Okabe and Ito's colours, which colour-blind readers can tell apart, and a marker for each.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"


@dataclass(frozen=True)
class LengthRow:
    """One range of lengths and the BLEU of each model in it; None where a model has no sentence of such a length."""

    label: str
    count: str
    scores: tuple[float | None, ...]


def line_up(curves: Mapping[str, Sequence["LengthBucket"]]) -> list[LengthRow]:
    """A row for each range of lengths that any model has, from short to long."""
    if not any(map(len, curves.values())):
        raise OptionError(f"A length curve needs at least one model with one bucket; got {dict(curves)}.")
    labels = {(bucket.shortest, bucket.longest): bucket.label for curve in curves.values() for bucket in curve}
    ranges = sorted(labels, key=lambda bounds: bounds[0])
    for (_, longest), (shortest, _) in pairwise(ranges):
        if longest is None or shortest <= longest:
            raise OptionError(
                "Curves can be compared when their buckets have the same edges; these overlap: "
                f"{', '.join(labels[bounds] for bounds in ranges)}."
            )
    by_range = [{(bucket.shortest, bucket.longest): bucket for bucket in curve} for curve in curves.values()]
    rows = []
    for bounds in ranges:
        buckets = [curve.get(bounds) for curve in by_range]
        counts = sorted({bucket.count for bucket in buckets if bucket})
        count = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
        rows.append(LengthRow(labels[bounds], count, tuple(bucket.bleu if bucket else None for bucket in buckets)))
    return rows


def length_curve(curves: Mapping[str, Sequence["LengthBucket"]], *, title: str | None = None) -> "InlineFigure":
    """BLEU against the length of the source, a curve for each model (Bahdanau et al. 2015, figure 2).

    Below each range of lengths stands its number of sentences: a point from few sentences is unreliable.
    """
    from regard.viewing.figures import InlineFigure, set_literal

    rows = line_up(curves)
    figure = InlineFigure(figsize=(max(5.0, 2.2 + 0.8 * len(rows)), 3.9), layout="constrained")
    axes: Any = figure.subplots()
    for number, name in enumerate(curves):
        points = [math.nan if (score := row.scores[number]) is None else score for row in rows]
        axes.plot(
            points,
            label=printable(name),
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=("-", "--")[number // len(_COLOURS) % 2],
            markersize=6,
            linewidth=1.8,
            clip_on=False,
            zorder=3,
        )
    axes.set_xticks(range(len(rows)), [f"{row.label}\nn={row.count}" for row in rows], fontsize=9)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("words in the source sentence; n sentences")
    axes.set_ylabel("BLEU")
    axes.grid(axis="y", color="0.9")
    axes.tick_params(length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    set_literal(axes.legend(frameon=False, fontsize=9, loc="best").get_texts())
    if title:
        axes.set_title(printable(title), fontsize=11, fontweight="bold", parse_math=False)
    return figure


def length_table(curves: Mapping[str, Sequence["LengthBucket"]], *, title: str | None = None) -> Table:
    """BLEU by the length of the source, a column for each model; the best of a row is bold."""
    table = Table(title=heading(title), title_justify="left")
    for name in ("source words", "sentences", *curves):
        table.add_column(Text(printable(name)), justify="right")
    for row in line_up(curves):
        best = max(score for score in row.scores if score is not None)
        cells = [
            Text("-", style="dim") if score is None else Text(f"{score:.1f}", style="bold" if score == best else "")
            for score in row.scores
        ]
        table.add_row(row.label, row.count, *cells)
    return table
