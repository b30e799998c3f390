"""A trace as a plain HTML table, for places where scripts do not run, such as a notebook that is not trusted."""

from html import escape

import numpy as np

from regard.trace import Map, Trace
from regard.viewing.scale import Colour, ink_on, largest_weight
from regard.viewing.words import printable, right_to_left, shortened

MAX_CELLS = 400
"""Weights up to which the table has a cell for each; of larger maps it lists the strongest of each row."""
MAX_ROWS = 60
_STRONGEST = 3
_MAX_LETTERS = 40
_LIGHT, _DARK = (247, 251, 255), (8, 69, 148)
_MAX_IMAGE = 360


def static_table(trace: Trace) -> str:
    """The main map as a table, with the image of the trace above it; all styles are attributes of its elements."""
    parts = []
    if trace.image is not None:
        parts.append(f'<img src="{escape(trace.image)}" alt="the image of this trace" width="{_MAX_IMAGE}">')
    if not trace.maps or not trace.weights.size:
        return "".join([*parts, f"<p>{escape(repr(trace))}</p>"])
    if trace.kind == "document" and trace.values("sentence") is not None:
        return _document(trace)
    rows, columns = trace.weights.shape
    is_whole = rows * columns <= MAX_CELLS and trace.axis(trace.main.columns).grid is None
    parts.append(_shaded(trace) if is_whole else _strongest(trace))
    return "".join(parts)


def _shaded(trace: Trace) -> str:
    """A cell for each weight."""
    order = range(len(trace.source))
    if right_to_left(trace.source):
        order = order[::-1]
    head = "".join(f"<th>{_label(trace.source[place])}</th>" for place in order)
    largest = largest_weight(trace.weights)
    lines = []
    for label, weights in zip(trace.target, trace.weights.tolist(), strict=True):
        cells = "".join(_cell(weights[place], largest) for place in order)
        lines.append(f"<tr><th>{_label(label)}</th>{cells}</tr>")
    return f"<table>{_caption(trace.main)}<tr><th></th>{head}</tr>{''.join(lines)}</table>"


def _strongest(trace: Trace) -> str:
    """The inputs with the largest weights of each row."""
    lines = []
    for label, weights in list(zip(trace.target, trace.weights, strict=True))[:MAX_ROWS]:
        best = np.argsort(-weights, kind="stable")[:_STRONGEST]
        inputs = ", ".join(f"{_label(trace.source[place])} {weights[place]:.3f}" for place in best)
        lines.append(f"<tr><th>{_label(label)}</th><td>{inputs}</td></tr>")
    if len(trace.target) > MAX_ROWS:
        lines.append(f"<tr><th>...</th><td>{len(trace.target) - MAX_ROWS:,} more rows</td></tr>")
    return f"<table>{_caption(trace.main)}{''.join(lines)}</table>"


def _document(trace: Trace) -> str:
    """A row for each sentence: its weight, and its words, shaded by theirs."""
    from regard.viewing.document_figures import document_heading, shaded_sentences, strongest_sentences

    sentences, note = strongest_sentences(shaded_sentences(trace), MAX_ROWS)
    lines = []
    for sentence in sentences:
        words = " ".join(f"<span{_style(shade)}>{_label(word)}</span>" for word, shade in sentence.words)
        lines.append(f"<tr><th>{sentence.weight:.2f}</th><td>{words}</td></tr>")
    caption = f"<caption>{escape(document_heading(trace))}</caption>"
    return f"<table>{caption}{''.join(lines)}</table>" + (f"<p>{escape(note)}</p>" if note else "")


def _caption(shown: Map) -> str:
    text = f"{printable(shown.name)}: {printable(shown.rows)} x {printable(shown.columns)}"
    return f"<caption>{escape(text)}</caption>"


def _label(label: str) -> str:
    return f"<bdi>{escape(shortened(label, _MAX_LETTERS))}</bdi>"


def _cell(weight: float, largest: float) -> str:
    return f"<td{_style(min(1.0, abs(weight) / largest))}>{weight:.2f}</td>"


def _style(share: float) -> str:
    """The attribute that shades an element, from 0 to 1."""
    red, green, blue = (round(low + (high - low) * share) for low, high in zip(_LIGHT, _DARK, strict=True))
    return f' style="background-color: {_hex((red, green, blue))}; color: {_hex(ink_on((red, green, blue)))}"'


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
