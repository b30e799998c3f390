"""Report: what an evaluation gives, for every system: named scores, tables, the outputs themselves."""

import json
import os
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.table import Table

from regard.files import write_text


@dataclass(frozen=True)
class Measure:
    """One score: its value, how it is written, and what it is."""

    value: float
    form: str = "{:.2f}"
    note: str = ""

    def __str__(self) -> str:
        return self.form.format(self.value)


@dataclass(frozen=True, repr=False)
class Report:
    """The scores of one model on one test set."""

    model: str
    """The name of the model."""
    title: str
    """What was evaluated, such as "500 sentences, beam 5"."""
    scores: dict[str, Measure]
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Further tables by title: a list of rows, each a mapping from column to value."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """For each example the input, the references and what the model answered."""
    notes: tuple[str, ...] = ()
    """Sentences on how to read the scores."""

    def __getitem__(self, name: str) -> float:
        return self.scores[name].value

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {measure}" for name, measure in self.scores.items())
        return f"Report({self.model}, {self.title}: {scores})"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, without the outputs."""
        return {
            "model": self.model,
            "title": self.title,
            "scores": {
                name: {"value": measure.value} | ({"note": measure.note} if measure.note else {})
                for name, measure in self.scores.items()
            },
            "tables": self.tables,
            "notes": list(self.notes),
        }

    def save_outputs(self, path: str | os.PathLike[str]) -> Path:
        """Write one JSON object per example."""
        lines = [json.dumps(output, ensure_ascii=False) + "\n" for output in self.outputs]
        return write_text(path, "".join(lines))

    def _repr_html_(self) -> str:
        """The report as a notebook displays it."""
        scores = [{"score": name, "value": str(each), "": each.note} for name, each in self.scores.items()]
        tables = [html_table(scores), *(html_table(rows, title=title) for title, rows in self.tables.items())]
        notes = [f"<p>{escape(note)}</p>" for note in self.notes]
        return "".join([f"<p><b>{escape(self.model)}</b>: {escape(self.title)}</p>", *tables, *notes])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        yield f"{self.model}: {self.title}"
        grid = Table.grid(padding=(0, 2))
        grid.add_column()
        grid.add_column(justify="right")
        grid.add_column(overflow="fold", style="dim")
        for name, measure in self.scores.items():
            grid.add_row(f"  {name}", str(measure), measure.note)
        yield grid
        for title, rows in self.tables.items():
            yield table_of(rows, title=title)
        yield from self.notes


def class_table(
    classes: Sequence[str], right: Sequence[int], predicted: Sequence[int], unit: str
) -> list[dict[str, Any]]:
    """A row for each class that occurs: recall, precision and F1 in percent, and what it is most often taken for.

    `right` and `predicted` are numbers of classes, one for each `unit`, such as "images".
    """
    pairs = Counter(zip(right, predicted, strict=True))
    there, said = Counter(right), Counter(predicted)
    rows = []
    for number, label in enumerate(classes):
        if not there[number]:
            continue
        mistakes = {other: count for (own, other), count in sorted(pairs.items()) if own == number != other}
        rows.append(
            {
                "class": label,
                unit: there[number],
                "recall": 100 * pairs[number, number] / there[number],
                "precision": 100 * pairs[number, number] / max(1, said[number]),
                "F1": 200 * pairs[number, number] / (there[number] + said[number]),
                "most common mistake": classes[max(mistakes, key=mistakes.__getitem__)] if mistakes else "",
            }
        )
    return rows


def side_by_side(reports: Sequence[Report], *, mean: bool = False) -> Table:
    """One row per score, one column per model; with `mean`, also mean and standard deviation over the models."""
    table = Table("score", title="Side by side", title_justify="left")
    for report in reports:
        table.add_column(report.model, justify="right", overflow="fold")
    if mean:
        table.add_column("mean ± deviation", justify="right")
    for name in dict.fromkeys(name for report in reports for name in report.scores):
        measures = [report.scores[name] for report in reports if name in report.scores]
        cells = [str(report.scores.get(name, "")) for report in reports]
        if mean:
            values = [measure.value for measure in measures]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{measures[0].form.format(statistics.fmean(values))} ± {measures[0].form.format(spread)}")
        table.add_row(name, *cells)
    return table


def table_of(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Table:
    """Rows of plain values as a table that fits the terminal."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(title=title or None, title_justify="left")
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    return table


def html_table(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> str:
    """Rows of plain values as an HTML table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    lines = ["".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in columns) for row in rows]
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)
