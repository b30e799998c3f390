"""Markdown (CommonMark with tables and strikethrough): paragraphs, headings, list items and cells are segments.

A parser finds the blocks. What is written for a block is parsed again: where it would not be the same block with the
same emphasis, links, code and images, the block is left as it was.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from regard.extras import require
from regard.systems.translate.markup.documents import Segment
from regard.systems.translate.markup.html import INLINE
from regard.systems.translate.markup.pieces import Piece, balanced

if TYPE_CHECKING:
    from markdown_it.token import Token

FRONT_MATTER = re.compile(r"\A---\n.*?\n---(?:\n|\Z)", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")
_CHECKBOX = re.compile(r"\[[ xX]\] ")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)")
_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~]|&(?=#?\w+;)")
_BLOCK_START = re.compile(r"^(?:[-+=](?=\s|[-+=]|$)|\d{1,9}(?=[.)]))")


@cache
def _parser() -> Any:
    parser = require("Translating Markdown", "markdown_it")
    return parser.MarkdownIt("commonmark").enable(["table", "strikethrough"])


def segments(document: str) -> tuple[list[Segment], str]:
    """The segments of a document."""
    front = FRONT_MATTER.match(document)
    skipped = front.end() if front else 0
    starts = [skipped, *(end.end() for end in _LINE_END.finditer(document, skipped)), len(document)]
    # Several cells stand in one line: each is looked for behind the one before.
    place, found = skipped, []
    for token in _parser().parse(document[skipped:]):
        if token.type != "inline" or token.map is None:
            continue
        for number, lines, children in _parts(token):
            first = token.map[0] + number
            extent = _extent(document, lines, starts[first : first + len(lines) + 1], place)
            if extent is None:
                break
            start, place = extent
            pieces = _closed(list(_pieces(children, _prefix(document, place, lines))))
            if pieces and (box := _CHECKBOX.match(pieces[0].content)):
                start += box.end()
                pieces[0] = replace(pieces[0], content=pieces[0].content[box.end() :])
            if any(piece.kind == "text" and any(map(str.isalpha, piece.content)) for piece in pieces):
                found.append(Segment(start, place, pieces))
    return found, ""


def escape(text: str) -> str:
    """Text without a sign that would begin markup."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def finished(segment: Segment, text: str) -> str | None:
    """A translated segment as it is written: the same block, with the same markup in it; None where it cannot be."""
    text = text.strip()
    if opening := _BLOCK_START.match(text):
        digits = opening[0] if opening[0].isdigit() else ""
        text = f"{digits}\\{text[len(digits) :]}"
    wanted = Counter(_marks(piece) for piece in segment.pieces if piece.kind != "text")
    for written in (text, text.replace("_", "*")):
        blocks = _parser().parse(written)
        if [token.type for token in blocks] == ["paragraph_open", "inline", "paragraph_close"]:
            made = _closed(list(_pieces(blocks[1].children or [], "")))
            plain = [replace(piece, content=piece.content.replace("_", "*")) for piece in segment.pieces]
            expected = wanted if written is text else Counter(_marks(each) for each in plain if each.kind != "text")
            if Counter(_marks(piece) for piece in made if piece.kind != "text") == expected:
                return written
    return None


def _marks(piece: Piece) -> tuple[str, str]:
    """What is compared of a piece."""
    return piece.kind, re.sub(r"\\\n.*", "\\\n", piece.content)


def _parts(token: "Token") -> "Iterator[tuple[int, list[str], list[Token]]]":
    """The parts of a block between hard line breaks: the number of the first line, the lines, and what is in them."""
    lines, children = token.content.split("\n"), token.children or []
    ends = [index for index, child in enumerate(children) if child.type in ("softbreak", "hardbreak")]
    hard = [index for index in ends if children[index].type == "hardbreak"]
    parts = [list(children[first + 1 : last]) for first, last in pairwise([-1, *hard, len(children)])]
    # A break inside an element divides nothing, and code may hold line ends that are none of these.
    if len(ends) != len(lines) - 1 or any(sum(child.nesting for child in part) for part in parts):
        yield 0, lines, list(children)
        return
    first = 0
    for part in parts:
        last = first + sum(child.type == "softbreak" for child in part) + 1
        yield first, [*lines[first : last - 1], lines[last - 1].removesuffix("\\")], part
        first = last


def _extent(document: str, lines: Sequence[str], starts: Sequence[int], place: int) -> tuple[int, int] | None:
    """Where lines stand in a document, behind a place; None where they are written in another way, as some cells are.

    `starts` are where these lines of the document begin, and the line after them.
    """
    if len(starts) <= len(lines) or not lines[0].strip():
        return None
    start = document.find(lines[0].strip(), max(place, starts[0]), starts[1])
    last = max(start, starts[len(lines) - 1])
    end = document.find(lines[-1].strip(), last, starts[len(lines)])
    return None if min(start, end) < 0 else (start, end + len(lines[-1].strip()))


def _prefix(document: str, end: int, lines: Sequence[str]) -> str:
    """What the last of several lines begins with, such as the mark of a quotation."""
    first = document.rfind("\n", 0, end) + 1
    return document[first : end - len(lines[-1].strip())] if len(lines) > 1 else ""


def _pieces(tokens: "Sequence[Token]", prefix: str) -> Iterator[Piece]:
    """The pieces of a block; `prefix` is what its lines begin with, such as the mark of a quotation."""
    links: list[str] = []
    automatic = False
    for token in tokens:
        if token.type == "text":
            if not automatic:
                yield Piece("text", token.content)
        elif token.type == "softbreak":
            yield Piece("text", " ")
        elif token.type == "hardbreak":
            yield Piece("text", " ")
            yield Piece("atom", "\\\n" + prefix)
        elif token.type == "code_inline":
            pad = " " if token.content[:1] in "` " or token.content[-1:] in "` " else ""
            yield Piece("atom", f"{token.markup}{pad}{token.content}{pad}{token.markup}", is_word=True)
        elif token.type == "image":
            yield Piece("atom", f"![{token.content}]({_address(token, 'src')})")
        elif token.type == "html_inline":
            yield _tag(token.content)
        elif token.type == "link_open" and token.info == "auto":
            automatic = True
            yield Piece("atom", f"<{str(token.attrs['href']).removeprefix('mailto:')}>", is_word=True)
        elif token.type == "link_open":
            links.append(f"]({_address(token, 'href')})")
            yield Piece("open", "[", "link")
        elif token.type == "link_close" and automatic:
            automatic = False
        elif token.type == "link_close":
            yield Piece("close", links.pop(), "link")
        elif token.nesting:
            yield Piece("open" if token.nesting > 0 else "close", token.markup, token.tag)


def _address(token: "Token", name: str) -> str:
    """The address of a link or an image, with its title."""
    address, title = str(token.attrs.get(name, "")), str(token.attrs.get("title", ""))
    if not address or re.search(r"[\s()<>]", address):
        address = f"<{address}>"
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'{address} "{escaped}"' if title else address


def _tag(content: str) -> Piece:
    """A tag of HTML: of an element in a sentence, or kept as it is."""
    found = _TAG.match(content)
    if found and found[2].lower() in INLINE and not content.endswith("/>"):
        return Piece("close" if found[1] else "open", content, f"<{found[2].lower()}")
    return Piece("atom", content)


def _closed(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a block, in which every element is closed: tags of HTML without a partner stand for themselves."""
    if sum(map(len, balanced(pieces))) == len(pieces):
        return list(pieces)
    return [
        replace(piece, kind="atom") if piece.kind in ("open", "close") and piece.name.startswith("<") else piece
        for piece in pieces
    ]
