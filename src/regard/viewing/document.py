"""A classified document: a bar for each sentence, and its words shaded by their weight (Yang et al. 2016, figure 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.arguments import checked
from regard.errors import OptionError, counted
from regard.trace import Trace
from regard.trace.elements import right_to_left
from regard.viewing.matrix import html_label, html_shade
from regard.viewing.scale import WHITE, blend, fractions, ink_on, inked
from regard.viewing.tokens import isolated, printable, shortened
from regard.viewing.view import View

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

MAX_FIGURE_SENTENCES = 30
"""Maximum number of sentences in a figure: those that are attended to most."""
MAX_TERMINAL_SENTENCES = 200
MAX_TABLE_SENTENCES = 60
_MAX_WORD = 40
_LINE_LETTERS = 90
_BAR = 12
_SENTENCE, _WORD = (203, 24, 29), (33, 113, 181)
_LETTER_INCHES, _LINE_INCHES = 0.0755, 0.24
_BAR_INCHES = 1.3
# Of 16 colours the nearest to a paler shade is white, which would stand out.
_PALEST = 0.15
_BARS = "Bar: weight of the sentence, whichever class it speaks for."
_SHADES = "Shade: weight of the word in its sentence x square root of the sentence's weight."
_RAW_SHADES = "Shade: weight of the word in its sentence."


@dataclass(frozen=True)
class ShadedSentence:
    """A sentence with its weight, and its words with how strongly each is shaded, from 0 to 1."""

    number: int
    """Counted from 1."""
    weight: float
    words: tuple[tuple[str, float], ...]


class DocumentView(View):
    """A classified document: a bar for each sentence, and its words shaded by their weight."""

    ELEMENTS = ("document",)

    @checked
    def figure(self, *, raw: bool = False, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """The document as a figure: a bar for each sentence, with its weight, and its words on shaded ground."""
        from matplotlib.patches import Rectangle

        from regard.viewing.figures import InlineFigure, add_title

        sentences, note = strongest_sentences(shaded_sentences(self.trace, raw=raw), MAX_FIGURE_SENTENCES)
        lines = [_wrapped(sentence.words) for sentence in sentences]
        notes = [*([note] if note else []), _BARS, _RAW_SHADES if raw else _SHADES]
        height = sum(map(len, lines)) + 0.35 * len(lines) + len(notes) + 0.3
        size = _BAR_INCHES + _LINE_LETTERS * _LETTER_INCHES + 0.3, height * _LINE_INCHES + 0.55
        figure = InlineFigure(figsize=size)
        axes = figure.add_axes((0.01, 0.01, 0.98, 1 - 0.5 / size[1]))
        axes.set_xlim(-_BAR_INCHES / _LETTER_INCHES, _LINE_LETTERS + 2)
        axes.set_ylim(height, 0)
        axes.axis("off")
        largest = max((sentence.weight for sentence in sentences), default=1.0) or 1.0
        y = 0.0
        for sentence, rows in zip(sentences, lines, strict=True):
            length = 9 * sentence.weight / largest
            axes.add_patch(Rectangle((-1 - length, y + 0.1), length, 0.75, color=fractions(_SENTENCE), lw=0))
            axes.text(-10.6, y + 0.5, f"{sentence.weight:.2f}", ha="right", va="center", fontsize=8, family="monospace")
            for row in rows:
                for x, word, shade in row:
                    background = blend(WHITE, _WORD, shade)
                    box = Rectangle((x - 0.3, y + 0.06), cell_len(word) + 0.6, 0.86, color=fractions(background), lw=0)
                    axes.add_patch(box)
                    ink = fractions(ink_on(background))
                    options: dict[str, Any] = {
                        "va": "center",
                        "fontsize": 9,
                        "family": "monospace",
                        "parse_math": False,
                    }
                    axes.text(x, y + 0.5, word, color=ink, **options)
                y += 1
            y += 0.35
        for text in notes:
            y += 1
            axes.text(0, y - 0.3, text, va="center", fontsize=8, color="0.35")
        add_title(figure, title or self._heading(), fontsize=11, y=1 - 0.07 / size[1])
        return figure

    @checked
    def terminal(self, *, width: int = 80, colour: bool = True, raw: bool = False) -> RenderableType:  # type: ignore[override]
        """The document for a terminal; without `colour`, the strongest words stand between marks."""
        sentences, note = strongest_sentences(shaded_sentences(self.trace, raw=raw), MAX_TERMINAL_SENTENCES)
        largest = max((sentence.weight for sentence in sentences), default=1.0) or 1.0
        longest = _BAR if width >= 60 else 4
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, width=longest)
        table.add_column(overflow="fold")
        for sentence in sentences:
            bar = "█" * max(1 if sentence.weight > 0.005 else 0, round(longest * sentence.weight / largest))
            text = Text()
            for number, (word, shade) in enumerate(sentence.words):
                text.append(" " if number else "")
                shown = isolated(shortened(word, _MAX_WORD))
                if colour:
                    background = blend(WHITE, _WORD, shade)
                    text.append(shown, style=inked(background) if shade > _PALEST else "")
                else:
                    text.append(f"▓{shown}▓" if shade > 0.66 else f"▒{shown}▒" if shade > 0.33 else shown)
            table.add_row(f"{sentence.weight:.2f}", Text(bar, style="red" if colour else ""), text)
        parts: list[Any] = [
            Text(self._heading(), style="bold"),
            table,
            *([Text(note, style="dim")] if note else []),
        ]
        return Group(*parts)

    def html_table(self) -> str:
        """A row for each sentence: its weight, and its words, shaded by theirs."""
        if self.trace.values("sentence") is None:
            return super().html_table()
        sentences, note = strongest_sentences(shaded_sentences(self.trace), MAX_TABLE_SENTENCES)
        lines = []
        for sentence in sentences:
            words = " ".join(f"<span{html_shade(shade)}>{html_label(word)}</span>" for word, shade in sentence.words)
            lines.append(f"<tr><th>{sentence.weight:.2f}</th><td>{words}</td></tr>")
        caption = f"<caption>{escape(self._heading())}</caption>"
        return f"<table>{caption}{''.join(lines)}</table>" + (f"<p>{escape(note)}</p>" if note else "")

    def _heading(self) -> str:
        """The label with its probability, and how many sentences were not read."""
        extras = self.trace.extras
        probability, left_out = extras.get("probability"), extras.get("sentences_left_out")
        shown = f" {probability:.3f}" if isinstance(probability, float) else ""
        unread = f" ({counted(left_out, 'sentence')} not read)" if left_out else ""
        return f"{printable(self.trace.target[0])}{shown}{unread}"


def shaded_sentences(trace: Trace, *, raw: bool = False) -> list[ShadedSentence]:
    """The sentences of a trace of kind "document".

    A word is shaded by its weight x the square root of its sentence's weight, so that the words of sentences that
    hardly count stay pale (Yang et al. 2016, section 3.6). With `raw`, by its weight within the sentence alone. The
    strongest word of the document is shaded fully.
    """
    indices = trace.values("sentence")
    if trace.kind != "document" or indices is None:
        raise OptionError(f"Only a trace of kind 'document' has sentences and words; this one is {trace.kind!r}.")
    weights = trace.map("sentences").weights[0].astype(np.float64)
    words = trace.map("words").weights[0].astype(np.float64)
    owners = np.asarray(indices, dtype=int)
    shades = words if raw else words * np.sqrt(weights[owners].clip(0))
    shades = shades / max(float(shades.max(initial=0.0)), 1e-12)
    labels = trace.axis("words").labels
    bounds = np.searchsorted(owners, np.arange(len(weights) + 1))
    return [
        ShadedSentence(
            number + 1,
            float(weight),
            tuple((labels[index], float(shades[index])) for index in range(bounds[number], bounds[number + 1])),
        )
        for number, weight in enumerate(weights)
    ]


def word_weight_figure(weights: Mapping[str, Sequence[float]], word: str, *, bins: int = 20) -> "InlineFigure":
    """How the weight of one word is distributed in the documents of each class (Yang et al. 2016, Figure 3)."""
    from regard.viewing.figures import InlineFigure, add_title

    if not any(len(values) for values in weights.values()):
        raise OptionError(f"The word {word!r} does not occur in these documents.")
    figure = InlineFigure(figsize=(6, 1.0 + 1.3 * len(weights)), layout="constrained")
    edges = np.linspace(0, max(max(values, default=0) for values in weights.values()) or 1.0, bins + 1)
    grid = figure.subplots(len(weights), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (label, values) in zip(grid, weights.items(), strict=True):
        numbers: Float[np.ndarray, "n"] = np.asarray(values, dtype=np.float64)
        axes.hist(numbers, bins=list(edges), color=fractions(_WORD), weights=np.full(len(numbers), 1 / len(numbers)))
        axes.set_ylabel("share", fontsize=8)
        caption = f"{label}: {counted(len(numbers), 'time')}, mean {numbers.mean():.3f}"
        axes.set_title(printable(caption), fontsize=9, loc="left", parse_math=False)
        axes.tick_params(labelsize=8)
    grid[-1].set_xlabel("weight of the word within its sentence", fontsize=9)
    add_title(figure, f"Weight of {word!r} by class", fontsize=11)
    return figure


def strongest_sentences(sentences: list[ShadedSentence], limit: int) -> tuple[list[ShadedSentence], str]:
    """All sentences or, of more than `limit`, the most attended ones in their order, and a note that says so."""
    if len(sentences) <= limit:
        return sentences, ""
    chosen = sorted(sorted(sentences, key=lambda each: -each.weight)[:limit], key=lambda each: each.number)
    return chosen, f"The {limit} most attended of {len(sentences):,} sentences."


def _wrapped(words: Sequence[tuple[str, float]]) -> list[list[tuple[int, str, float]]]:
    """Words in lines of at most _LINE_LETTERS columns, each with its position; right to left where the script is."""
    rows: list[list[tuple[int, str, float]]] = [[]]
    x = 0
    mirrored = right_to_left(word for word, _ in words)
    for word, shade in words:
        shown = shortened(word, _MAX_WORD, cell_len)
        size = cell_len(shown)
        if x and x + size > _LINE_LETTERS:
            rows.append([])
            x = 0
        rows[-1].append((_LINE_LETTERS - x - size if mirrored else x, shown, shade))
        x += size + 1
    return rows
