"""XLIFF 1.2 and 2: each source without a translation gets a target with the same inline codes.

The parser of the standard library reports where everything stands in the file; targets are written there, and the rest
is copied. Targets that have text are kept, and what is marked as approved or not to be translated is left out.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn
from xml.parsers import expat

from regard.errors import DataError
from regard.systems.translate.markup.documents import Segment
from regard.systems.translate.markup.pieces import Piece, balanced

UNITS = frozenset(("trans-unit", "segment"))
"""The elements that hold a source and a target."""
PAIRED = frozenset(("g", "pc", "mrk"))
"""Elements around text."""
OPENING = {"bx": "rid", "bpt": "rid", "sc": "id", "sm": "id"}
"""Codes that begin where one of CLOSING ends, and the attribute that pairs them."""
CLOSING = {"ex": "rid", "ept": "rid", "ec": "startRef", "em": "startRef"}
OPEN_STATES = frozenset(("new", "needs-translation", "initial"))
"""States of a target of which the text may be replaced."""


@dataclass(frozen=True)
class _Node:
    """An element, or text, of a file."""

    name: str
    """Without its prefix; "" for text."""
    start: int
    end: int
    """Where its first tag, or the text, ends."""
    text: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    close: tuple[int, int] = (0, 0)
    """Where its last tag begins and ends; nothing for <x/>."""
    children: tuple["_Node", ...] = ()

    def get(self, name: str) -> str:
        """An attribute."""
        return dict(self.attributes).get(name, "")

    @property
    def whole(self) -> tuple[int, int]:
        """Where it begins and ends with all that is in it."""
        return self.start, self.close[1] or self.end


class _Reader:
    """Builds the nodes of a file from the events of the parser."""

    def __init__(self, document: str) -> None:
        self._document, self._bytes = document, document.encode()
        self._events: list[tuple[int, str, str, tuple[tuple[str, str], ...]]] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = False
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = lambda name, given: self._add("open", name, tuple(given.items()))
        parser.EndElementHandler = lambda name: self._add("close", name)
        parser.CharacterDataHandler = lambda text: self._add("text", text)
        for other in ("Comment", "ProcessingInstruction", "StartCdataSection", "EndCdataSection", "Default"):
            setattr(parser, f"{other}Handler", lambda *_: self._add("other"))
        try:
            parser.Parse(document, True)
        except expat.ExpatError as error:
            raise DataError(f"The document is not well-formed XML: {error}.") from None

    @staticmethod
    def _refuse(*_: object) -> NoReturn:
        raise DataError("The document defines entities, which could expand without bounds. Write them out.")

    def _add(self, kind: str, name: str = "", attributes: tuple[tuple[str, str], ...] = ()) -> None:
        self._events.append((self._parser.CurrentByteIndex, kind, name, attributes))

    def root(self) -> _Node:
        """The element that holds all others."""
        places, characters, last = [], 0, 0
        for at, *_ in self._events:
            characters += len(self._bytes[last:at].decode())
            places.append(characters)
            last = at
        ends = [*places[1:], len(self._document)]
        waiting: list[tuple[_Node, list[_Node]]] = [(_Node("", 0, 0), [])]
        for (_, kind, name, attributes), start, end in zip(self._events, places, ends, strict=True):
            if kind == "open":
                waiting.append((_Node(name, start, end, attributes=attributes), []))
            elif kind == "close":
                node, children = waiting.pop()
                is_empty = self._document[node.start : node.end].endswith("/>")
                close = (0, 0) if is_empty else (start, end)
                waiting[-1][1].append(replace(node, close=close, children=tuple(children)))
            elif kind == "text":
                waiting[-1][1].append(_Node("", start, end, text=name))
        return next(node for node in waiting[0][1] if node.name)


def segments(document: str) -> tuple[list[Segment], str]:
    """The sources of a file that have no translation, each of which a target is written for."""
    root = _Reader(document).root()
    if _plain(root.name) != "xliff":
        raise DataError(f"The document is not XLIFF: its root is <{root.name:.40}>.")
    return [each for unit in _units(root) for each in _segment(document, unit)], ""


def escape(text: str) -> str:
    """Text between tags."""
    return html.escape(text, quote=False)


def finished(segment: Segment, text: str) -> str | None:
    """A translated segment as it is written."""
    return text


def _plain(name: str) -> str:
    """The name of an element without its prefix."""
    return name.rpartition(":")[2]


def _units(root: _Node) -> Iterator[_Node]:
    """The units of a file that are to be translated, in order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        name = _plain(node.name)
        if node.get("translate") == "no" or node.get("approved") == "yes" or name == "alt-trans":
            continue
        if name in UNITS:
            yield node
        else:
            waiting += reversed(node.children)


def _segment(document: str, unit: _Node) -> Iterator[Segment]:
    """The segment of a unit, unless it has a translation or nothing to translate."""
    parts = {_plain(node.name): node for node in unit.children if node.name}
    source, target = parts.get("source"), parts.get("target")
    if source is None or not any(map(str.isalpha, _text(source))):
        return
    pieces = _codes(list(_pieces(document, source)))
    if target is None:
        # As far from the margin as the source is.
        at = parts.get("seg-source", source).whole[1]
        margin = document[: source.start]
        space = margin[len(margin.rstrip()) :]
        prefix = source.name.removesuffix("source")
        yield Segment(at, at, pieces, f"{space}<{prefix}target>", f"</{prefix}target>")
    elif not _text(target).strip() or target.get("state") in OPEN_STATES:
        start, end = target.whole
        tag = document[start : target.end].removesuffix("/>").rstrip().removesuffix(">")
        yield Segment(start, end, pieces, f"{tag}>", f"</{target.name}>")


def _text(node: _Node) -> str:
    """The text of an element and of those in it."""
    found, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        found.append(each.text)
        waiting += reversed(each.children)
    return "".join(found)


def _pieces(document: str, node: _Node) -> Iterator[Piece]:
    """What stands between the tags of an element."""
    for each in node.children:
        name, (start, end) = _plain(each.name), each.whole
        if not each.name:
            yield Piece("text", each.text, start=start, end=end)
        elif name == "mrk" and (each.get("translate") == "no" or each.get("mtype") == "protected"):
            yield Piece("atom", document[start:end], name, is_word=True)
        elif name in PAIRED and each.close[1]:
            yield Piece("open", document[each.start : each.end], f"<{each.name}")
            yield from _pieces(document, each)
            yield Piece("close", document[slice(*each.close)], f"<{each.name}")
        elif name in OPENING or name in CLOSING:
            pair = each.get((OPENING | CLOSING)[name]) or each.get("id")
            yield Piece("open" if name in OPENING else "close", document[start:end], pair)
        else:
            yield Piece("atom", document[start:end], name)


def _codes(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a source, in which every element is closed: codes that overlap others stand for themselves."""
    if sum(map(len, balanced(pieces))) == len(pieces):
        return list(pieces)
    return [
        replace(piece, kind="atom") if piece.kind in ("open", "close") and not piece.name.startswith("<") else piece
        for piece in pieces
    ]
