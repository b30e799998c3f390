"""A memory machine at work: input and output, the movements of its heads, and its memory (Graves et al. 2014, fig. 6).

Time runs from left to right in every panel.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from rich.console import RenderableType
from rich.text import Text

from regard.arguments import checked
from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.scale import DARK, LIGHT, blend, filled, is_signed, reduced, shade_of
from regard.viewing.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.viewing.figures import InlineFigure

MAX_ROWS, MAX_STEPS = 400, 1000
"""Rows and steps up to which a figure draws each; more are reduced."""
_MAX_TERMINAL_ROWS = 32
_COLOURS, _SIGNED_COLOURS, _WRONG = "Blues", "RdBu", "#D55E00"
_NEGATIVE = (165, 55, 45)


@dataclass(frozen=True, eq=False)
class _Panel:
    """One picture: rows over steps, or the memory."""

    name: str
    values: Float[np.ndarray, "rows columns"]
    first: int = 1
    """The number of its first row."""
    circle: int = 0
    """The number of slots of the memory, after which the numbers of rows begin again; 0 for rows that are no slots."""
    wrong: Float[np.ndarray, "rows columns"] | None = None
    """1 where an output bit is wrong."""
    bounded: bool = True
    """Whether its numbers are from 0 to 1."""
    down: str = "bit"
    """What its rows are: bits, inputs, slots, or features, which have no meaning one by one."""


class TapeView(View):
    """A memory machine at work: input, output, the movements of its heads, and its memory."""

    ELEMENTS = ("tape",)

    @checked
    def figure(self, *, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """Input, output, for each head what it wrote or read and where it was, and the memory over time and at the end.

        What a head adds is drawn as it reaches the slot where most of it is added. The memory over time shows the root
        mean square of each slot. Wrong bits of the output are crossed out. Slots that no head used are not drawn.
        """
        from regard.viewing.figures import InlineFigure, add_title

        panels, memory = _panels(self.trace)
        steps = panels[0].values.shape[1]
        wide = min(14.0, max(4.5, 0.13 * steps))
        drawn = panels if memory is None else [*panels, memory]
        heights = [_height(panel) for panel in drawn]
        extra = 0.28 * len(drawn) + (0.8 if title else 0.5) + (0.0 if memory is None else 0.35)
        figure = InlineFigure(figsize=(wide + 1.4, sum(heights) + extra), layout="constrained")
        # The memory has features instead of steps, so that it takes only a part of the width.
        across = wide / 2 if memory is None else min(0.9 * wide, max(1.2, 0.11 * memory.values.shape[1]))
        grid = figure.add_gridspec(len(drawn), 2, height_ratios=heights, width_ratios=(across, wide - across))
        above: "Axes | None" = None
        for row, panel in enumerate(panels):
            axes = figure.add_subplot(grid[row, :], sharex=above)
            above = above or axes
            _draw(axes, panel, across="step" if row == len(panels) - 1 else None)
        if memory is not None:
            _draw(figure.add_subplot(grid[-1, 0]), memory, across="feature")
        add_title(figure, title)
        return figure

    @checked
    def terminal(self, *, width: int = 80, colour: bool = True) -> RenderableType:  # type: ignore[override]
        """The same panels for a terminal, a character for each step; without `colour`, in five shades.

        What the heads read and added is left out. A tape longer than the terminal is wide is reduced: each character
        shows the largest number of its steps.
        """
        panels, memory = _panels(self.trace)
        room = max(10, width - 6)
        lines: list[Text] = []
        panels = [panel for panel in panels if panel.down != "feature"]
        for panel in panels if memory is None else [*panels, memory]:
            values, (down, across) = reduced(panel.values, _MAX_TERMINAL_ROWS, room)
            wrong = None if panel.wrong is None else reduced(panel.wrong, _MAX_TERMINAL_ROWS, room)[0]
            note = f" (each character shows {down} x {across} values)" if max(down, across) > 1 else ""
            lines.append(Text.assemble((panel.name, "bold"), (note, "dim")))
            largest = 1.0 if panel.bounded else max(1e-12, float(np.abs(values).max(initial=0.0)))
            for row, numbers in enumerate((values / largest).tolist()):
                cells = [
                    Text("✗", style="bold red")
                    if wrong is not None and wrong[row, column] > 0
                    else _cell(number, colour)
                    for column, number in enumerate(numbers)
                ]
                label = _number(panel, panel.first + row * down) if row % 5 == 0 else ""
                lines.append(Text.assemble((f"{label:>4} ", "dim"), *cells))
        return Text("\n").join(lines)


def _panels(trace: Trace) -> tuple[list[_Panel], _Panel | None]:
    """The panels over time, and the memory where there is one."""
    maps = {each.name: each.weights for each in trace.maps}
    missing = [name for name in ("input", "output", "target") if name not in maps]
    if missing or not maps.get("input", np.zeros((0, 0))).size:
        raise OptionError(
            f"There is no tape to draw: the trace has {len(trace.axes[0]) if trace.axes else 0} steps"
            + (f" and no map {missing[0]!r}." if missing else ".")
        )
    scored = np.array(trace.values("scored") or np.ones(len(maps["output"])))[:, None]
    wrong = ((maps["output"] > 0.5) != (maps["target"] > 0.5)) * scored
    signed = bool(maps["input"].min() < 0)
    panels = [
        _Panel("input", maps["input"].T, bounded=not signed),
        _Panel("output", (maps["output"] * scored).T, wrong=wrong.T.astype(np.float32)),
    ]
    if "memory" not in maps:
        panels += [_Panel(name, weights.T, down="input") for name, weights in maps.items() if name == "attention"]
        return panels, None
    writes, reads = (sorted(name for name in maps if name.startswith(kind)) for kind in ("write ", "read "))
    slots = len(maps["memory"])
    # The longest stretch of slots that no head used is not drawn.
    first, count = trace.used_slots or (0, slots)
    used = (first + np.arange(count)) % slots
    for name in (*writes, *reads):
        kind, number = name.split()
        vectors = f"{'adds' if kind == 'write' else 'reads'} {number}"
        if vectors in maps:
            # A write head that is nowhere in particular adds next to nothing, whatever its vector is.
            reach = maps[name].max(1, keepdims=True) if kind == "write" else 1
            title = f"what {kind} head {number} {vectors.split()[0]}"
            panels.append(_Panel(title, (maps[vectors] * reach).T, bounded=False, down="feature"))
        panels.append(
            _Panel(f"where {kind} head {number} is", maps[name].T[used], first=first + 1, circle=slots, down="slot")
        )
    if "slot sizes" in maps:
        title = "how full each slot is (root mean square)"
        values = maps["slot sizes"].T[used]
        panels.append(_Panel(title, values, first=first + 1, circle=slots, bounded=False, down="slot"))
    at_end = maps["memory"][used]
    return panels, _Panel("memory at the end", at_end, first=first + 1, circle=slots, bounded=False, down="slot")


def _number(panel: _Panel, row: float | int) -> str:
    """The number of a row."""
    whole = round(row)
    return str((whole - 1) % panel.circle + 1 if panel.circle else whole)


def _height(panel: _Panel) -> float:
    """The height of a panel in inches: there are few bits, some features, and many slots."""
    inches = {"bit": 0.1, "feature": 0.065}.get(panel.down, 0.04)
    return min(2.6, max(0.6, inches * len(panel.values)))


def _draw(axes: "Axes", panel: _Panel, *, across: str | None) -> None:
    """Draw a panel with its scale of colours; `across` names its columns, if it is the last one that shares them."""
    from matplotlib.ticker import MaxNLocator

    values, _ = reduced(panel.values, MAX_ROWS, MAX_STEPS)
    signed = not panel.bounded and is_signed(values)
    largest = 1.0 if panel.bounded else max(1e-12, float(np.abs(values).max(initial=0.0)))
    high, wide = panel.values.shape
    image = axes.imshow(
        values,
        cmap=_SIGNED_COLOURS if signed else _COLOURS,
        vmin=-largest if signed else 0,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, wide + 0.5, panel.first + high - 0.5, panel.first - 0.5),
    )
    if panel.wrong is not None:
        rows, columns = np.nonzero(panel.wrong)
        axes.plot(columns + 1, rows + panel.first, "x", color=_WRONG, markersize=4, linestyle="none")
    axes.set_title(panel.name, fontsize=9, loc="left", pad=2)
    axes.tick_params(labelsize=7, length=2, labelbottom=across is not None)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(lambda row, _: _number(panel, row))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(panel.down, fontsize=7)
    if across is not None:
        axes.set_xlabel(across, fontsize=8)
    ticks = [-largest, 0, largest] if signed else [0, largest]
    scale = axes.figure.colorbar(image, ax=axes, fraction=0.02, pad=0.01, aspect=8, ticks=ticks)
    scale.ax.tick_params(labelsize=6, length=2)
    scale.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
    scale.outline.set_color("0.8")
    for side in axes.spines.values():
        side.set_color("0.8")


def _cell(number: float, colour: bool) -> Text:
    strength = abs(number)
    ground = blend(LIGHT, _NEGATIVE if number < 0 else DARK, strength)
    return Text(shade_of(strength), style=filled(ground) if colour else "")
