"""The vocabulary of the drawings: what each kind of thing looks like, in light, in the dark and in print.

Rounded boxes are states and vectors, square ones are networks, circles are operations, words stand alone, and shades of
blue are attention weights. Each drawing lies on a card of its own, so that it is legible on every page.
"""

from collections.abc import Sequence
from html import escape

STYLE = """
  .card { fill: #ffffff; stroke: #d5d9e0; } .ink { fill: #1a1f29; } .soft { fill: #59616f; }
  .line { stroke: #4a5260; fill: none; stroke-width: 1.6; } .faint { stroke: #a9b0bc; stroke-dasharray: 4 3; }
  .state { fill: #dcebfa; stroke: #2f6fb0; } .query { fill: #fde3cf; stroke: #b8621b; }
  .value { fill: #dff3e1; stroke: #2f8a43; } .net { fill: #eceef2; stroke: #7a8290; }
  .op { fill: #ffffff; stroke: #4a5260; } .weight { fill: #1f66ad; stroke: #a9b0bc; }
  .empty { fill: none; stroke: #a9b0bc; } .head { fill: #4a5260; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #171b22; stroke: #3a414d; } .ink { fill: #edf0f5; } .soft { fill: #aab2c0; }
    .line { stroke: #b5bdca; } .faint { stroke: #667080; } .state { fill: #1d3a57; stroke: #6cabe8; }
    .query { fill: #54341b; stroke: #eda463; } .value { fill: #1e4427; stroke: #6cc982; }
    .net { fill: #2a303a; stroke: #8f99a8; } .op { fill: #171b22; stroke: #b5bdca; }
    .weight { fill: #6cabe8; stroke: #667080; } .empty { stroke: #667080; } .head { fill: #b5bdca; }
  }
"""


class Drawing:
    """A picture of boxes, circles, words and arrows; x and y are the middle of a thing."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, size: int = 15, kind: str = "ink", anchor: str = "middle"
    ) -> None:
        """Write words; `_` and what follows it, up to a space or a comma, is set lower."""
        self.parts.append(
            f'<text x="{x:g}" y="{y + size * 0.35:g}" class="{kind}" font-size="{size}" text-anchor="{anchor}">'
            f"{_lowered(words, size)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        label: str,
        kind: str = "state",
        *,
        width: float = 54,
        height: float = 34,
        size: int = 15,
    ) -> None:
        """A state, query, value or network, with its name inside."""
        round_ = 4 if kind == "net" else 9
        self.parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}" rx="{round_}" '
            f'class="{kind}" stroke-width="1.5"/>'
        )
        if label:
            self.text(x, y, label, size=size)

    def circle(self, x: float, y: float, label: str, *, radius: float = 15) -> None:
        """An operation."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="op" stroke-width="1.5"/>')
        self.text(x, y, label, size=15)

    def arrow(self, *points: tuple[float, float], kind: str = "line", head: bool = True) -> None:
        """A line through the points, with a head at its end."""
        path = " L ".join(f"{x:g} {y:g}" for x, y in points)
        end = ' marker-end="url(#head)"' if head else ""
        self.parts.append(f'<path d="M {path}" class="line {kind if kind != "line" else ""}"{end}/>')

    def bar(self, x: float, y: float, weight: float, *, width: float = 18, height: float = 40) -> None:
        """A weight as a bar that stands on y, in a frame of the height of weight 1."""
        for kind, high in (("empty", height), ("weight", height * weight)):
            place = f'x="{x - width / 2:g}" y="{y - high:g}" width="{width:g}" height="{high:g}"'
            self.parts.append(f'<rect {place} class="{kind}"/>')

    def cells(self, x: float, y: float, rows: Sequence[Sequence[float]], *, side: float = 20) -> None:
        """A grid of weights whose upper left corner is at x, y; the darker a cell, the larger its weight."""
        for number, row in enumerate(rows):
            for column, weight in enumerate(row):
                self.parts.append(
                    f'<rect x="{x + column * side:g}" y="{y + number * side:g}" width="{side:g}" height="{side:g}" '
                    f'class="{"weight" if weight else "empty"}" fill-opacity="{weight:g}"/>'
                )

    def svg(self) -> str:
        """The picture as a file."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" font-family="system-ui, sans-serif">\n'
            f"<title>{escape(self.title)}</title>\n"
            f"<style>{STYLE}</style>\n"
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M 0 0 L 10 5 L 0 10 z" class="head"/></marker></defs>\n'
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" class="card"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def _lowered(words: str, size: int) -> str:
    first, *others = words.split("_")
    text = escape(first)
    for other in others:
        end = next((index for index, letter in enumerate(other) if letter in " ,:;()]=·"), len(other))
        text += f'<tspan dy="{size * 0.25:g}" font-size="{size * 0.75:g}">{escape(other[:end])}</tspan>'
        # What follows returns to the line; without anything to write, a tspan would not move it.
        text += f'<tspan dy="{-size * 0.25:g}">{escape(other[end:]) or "&#8203;"}</tspan>'
    return text
