"""HTML: text between block elements is a segment; scripts, code, attributes and comments are never touched.

Python's own parser finds the tags and where they stand in the document; what is not translated is copied from there,
so that attributes, entities and white space stay as they are written.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate, groupby

from regard.systems.translate.markup.documents import Segment
from regard.systems.translate.markup.pieces import Piece, balanced

INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins",
    "mark", "nobr", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "u",
))  # fmt: skip
"""Elements whose words belong to the sentence around them."""
KEPT = frozenset((
    "code", "kbd", "samp", "tt", "var", "svg", "math", "ruby", "object", "canvas", "audio", "video", "script",
    "style", "img", "wbr",
))  # fmt: skip
"""Elements that stand in a sentence and are kept as they are, with all that is in them."""
VERBATIM = frozenset(("pre", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext", "template"))
"""Elements that divide sentences and are kept as they are."""
VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
"""Elements without an end tag."""
SPELLED = frozenset(("code", "kbd", "samp", "tt", "var"))
"""Kept elements whose words are part of the sentence."""
_MARKUP = re.compile("<[A-Za-z!/?]")
"""What a browser takes for markup, also where Python's parser takes it for text."""


@dataclass(frozen=True)
class _Event:
    """A part of a document, as the parser reports it."""

    start: int
    kind: str
    name: str = ""
    text: str = ""
    is_kept: bool = False
    """Whether the author asks that an element be not translated."""


class _Reader(HTMLParser):
    """Lists what a document consists of, and where each part begins."""

    CDATA_CONTENT_ELEMENTS = (  # type: ignore[misc]
        "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext",
    )  # fmt: skip

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *accumulate(len(line) + 1 for line in document.split("\n"))]
        self.events: list[_Event] = []
        self.feed(document)
        self.close()

    def _add(self, kind: str, name: str = "", text: str = "", *, is_kept: bool = False) -> None:
        line, column = self.getpos()
        self.events.append(_Event(self._lines[line - 1] + column, kind, name, text, is_kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that begins an element."""
        given = dict(attrs)
        is_kept = given.get("translate") == "no" or "notranslate" in (given.get("class") or "").split()
        self._add("void" if tag in VOID else "open", tag, is_kept=is_kept)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag with a slash, which browsers ignore unless the element is void: it divides sentences."""
        self._add("void" if tag in VOID else "other", tag)

    def handle_endtag(self, tag: str) -> None:
        """A tag that ends an element."""
        self._add("close", tag)

    def handle_data(self, data: str) -> None:
        """Text, as it is written; with the name of an element such as a script in which nothing is markup."""
        self._add("text", self.cdata_elem or "", data)

    def handle_entityref(self, name: str) -> None:
        """A character by its name."""
        self._add("reference")

    def handle_charref(self, name: str) -> None:
        """A character by its number."""
        self._add("reference")

    def handle_comment(self, data: str) -> None:
        """A comment, which has a place in a sentence."""
        self._add("comment")

    def handle_decl(self, decl: str) -> None:
        """A declaration, such as the type of the document."""
        self._add("other")

    def handle_pi(self, data: str) -> None:
        """An instruction."""
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        """Anything else of this form."""
        self._add("other")


def segments(document: str) -> tuple[list[Segment], str]:
    """The segments of a page, also of a part of one; from damaged markup on, nothing is translated."""
    events = _Reader(document).events
    ends = [*(event.start for event in events[1:]), len(document)]
    damaged = (
        index
        for index, event in enumerate(events)
        if _is_damaged(event, document[event.start : ends[index] + 1]) or _is_torn(events, index)
    )
    last = next(damaged, len(events))
    found = []
    for is_boundary, run in groupby(_pieces(document, events[:last], ends), key=lambda piece: piece is None):
        for pieces in () if is_boundary else balanced([piece for piece in run if piece is not None]):
            if any(map(str.isalpha, "".join(piece.content for piece in pieces if piece.kind == "text"))):
                found.append(Segment(pieces[0].start, pieces[-1].end, pieces))
    if last == len(events):
        return found, ""
    line = document.count("\n", 0, events[last].start) + 1
    return found, f"Damaged markup in line {line}: the page is left as it is from there on."


def _is_damaged(event: _Event, written: str) -> bool:
    """Whether a browser would read a part, which is given with one more character, in another way than the parser."""
    if event.kind == "text" and not event.name:
        return _MARKUP.search(written) is not None
    return event.kind == "comment" and re.match("<!--.*--!>|<!---?>", written, re.DOTALL) is not None


def _is_torn(events: Sequence[_Event], first: int) -> bool:
    """Whether a kept element begins here whose end tag comes before that of an element opened inside it."""
    if events[first].kind != "open" or events[first].name not in KEPT | VERBATIM:
        return False
    inside: list[str] = []
    for event in events[first : _closing(events, first) + 1]:
        if event.name not in KEPT | VERBATIM | INLINE:
            continue
        if event.kind == "open":
            inside.append(event.name)
        elif event.kind == "close" and (not inside or inside.pop() != event.name):
            return True
    return bool(inside)


def escape(text: str) -> str:
    """Text between tags."""
    return html.escape(text, quote=False)


def finished(segment: Segment, text: str) -> str | None:
    """A translated segment as it is written."""
    return text


def _pieces(document: str, events: Sequence[_Event], ends: Sequence[int]) -> Iterator[Piece | None]:
    """The pieces of a page, of which each event ends where `ends` says; None for whatever divides sentences."""
    index = 0
    while index < len(events):
        event, start, end = events[index], events[index].start, ends[index]
        index += 1
        if event.kind == "open" and (
            event.is_kept or event.name in KEPT | VERBATIM or _is_reference(events, index - 1)
        ):
            last = _closing(events, index - 1)
            end, index = ends[min(last, len(events) - 1)], last + 1
            if event.name in INLINE | KEPT and last < len(events):
                is_word = event.is_kept or event.name in SPELLED
                yield Piece("atom", document[start:end], event.name, is_word, start, end)
            else:
                yield None
        elif event.kind in ("text", "reference"):
            yield Piece("text", html.unescape(document[start:end]), "", False, start, end)
        elif event.kind == "comment" or (event.kind == "void" and event.name in KEPT):
            yield Piece("atom", document[start:end], event.name, False, start, end)
        elif event.kind in ("open", "close") and event.name in INLINE:
            yield Piece("open" if event.kind == "open" else "close", document[start:end], event.name, False, start, end)
        else:
            yield None


def _is_reference(events: Sequence[_Event], first: int) -> bool:
    """Whether an element is raised and has no letters, as the number of a footnote."""
    if events[first].name != "sup":
        return False
    return not any(each.isalpha() for event in events[first : _closing(events, first)] for each in event.text)


def _closing(events: Sequence[_Event], first: int) -> int:
    """The index of the event that ends an element, or the number of events where none does."""
    depth = 0
    for index in range(first, len(events)):
        if events[index].name == events[first].name:
            depth += {"open": 1, "close": -1}.get(events[index].kind, 0)
        if not depth:
            return index
    return len(events)
