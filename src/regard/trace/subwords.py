"""Subword tokens: the marks of common tokenizers, the text that tokens make up, and traces over words instead."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.trace.elements import Axis, Map, Series

if TYPE_CHECKING:
    from regard.trace.trace import Trace

SUMMED = ("log_prob", "surprisal")
"""Series of which a word has the sum over its subwords; of others it has the mean."""
MAX_GAP = 60
"""Characters of the text that may be passed over to find the next token."""
_SPECIAL = re.compile(r"<[^<>\s]+>|\[(CLS|SEP|PAD|UNK|MASK|BOS|EOS)\]", re.IGNORECASE)
_UNKNOWN = re.compile(r"<unk>|\[UNK\]", re.IGNORECASE)
_MARKS = re.compile(r"^(?:[▁Ġ]|##)|(?:@@|</w>)$")

Groups = list[list[int]]
"""The positions of the tokens of each word."""


def is_special(token: str) -> bool:
    """Whether a token stands for something that is not in the text, such as its end, or for an unknown word."""
    return _SPECIAL.fullmatch(token) is not None


def plain_tokens(tokens: Sequence[str]) -> tuple[list[str], str]:
    """Tokens without the marks of their tokenizer, and the text that they make up without special tokens.

    Knows the marks of SentencePiece ("▁the"), byte-level BPE ("Ġthe"), WordPiece ("##ing") and other BPE ("the</w>",
    "play@@ ing"). Without any mark, every token is a word.
    """
    pieces = iter(_pieces([token for token in tokens if not is_special(token)]))
    labels, text = [], ""
    for token in tokens:
        if is_special(token):
            labels.append(token)
            continue
        piece = next(pieces)
        labels.append(piece.strip(" ") or "␣")
        text += piece
    return labels, text.strip()


def _pieces(tokens: Sequence[str]) -> list[str]:
    """Tokens as parts of a text, with a space where a word begins or ends."""
    if any(token.startswith("Ġ") for token in tokens):
        return [_from_bytes(token) for token in tokens]
    if any("▁" in token for token in tokens):
        return [token.replace("▁", " ") for token in tokens]
    if not any(token.startswith("##") for token in tokens):
        if any(token.endswith("</w>") for token in tokens):
            return [f"{token[:-4]} " if token.endswith("</w>") else token for token in tokens]
        if any(token.endswith("@@") for token in tokens):
            return [token[:-2] if token.endswith("@@") else f"{token} " for token in tokens]
    return [token[2:] if token.startswith("##") and len(token) > 2 else f" {token}" for token in tokens]


def join_subwords(trace: "Trace") -> "Trace":
    """See `Trace.by_words`."""
    groups = {axis.name: found for axis in trace.axes if (found := word_groups(axis)) is not None}
    if not groups:
        return trace
    return replace(
        trace,
        axes=tuple(_joined_axis(axis, groups.get(axis.name)) for axis in trace.axes),
        maps=tuple(_joined_map(each, groups.get(each.rows), groups.get(each.columns)) for each in trace.maps),
        series=tuple(_joined_series(each, groups, trace.maps) for each in trace.series),
        boxes=tuple(
            replace(box, position=_word_of(groups[box.axis])[box.position]) if box.axis in groups else box
            for box in trace.boxes
        ),
    )


def word_groups(axis: Axis) -> Groups | None:
    """The tokens of each word of an axis; None where every token is a word, or where that is not known."""
    if axis.kind != "tokens":
        return None
    starts = _starts_in_text(axis.labels, axis.text) if axis.text else _starts_by_marks(axis.labels)
    if all(starts):
        return None
    groups: Groups = []
    for place, is_start in enumerate(starts):
        if is_start or not groups:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _starts_in_text(labels: Sequence[str], text: str) -> list[bool]:
    """Whether each token begins a word, found by looking it up in the text, where white space separates words."""
    # Case is folded first, and every place below is one in the folded text: folding changes the length of "İ".
    text, place, is_after_special = text.casefold(), 0, True
    starts = []
    for label in labels:
        if _stands_alone(label):
            starts.append(True)
            is_after_special = True
            continue
        token = _MARKS.sub("", label).strip().casefold()
        is_unknown = _UNKNOWN.fullmatch(label) is not None
        found = len(text) - len(text[place:].lstrip()) if is_unknown else text.find(token, place)
        is_found = 0 <= found - place < MAX_GAP
        starts.append(is_after_special or not is_found or any(map(str.isspace, text[place:found])))
        if is_found:
            rest = text[found:]
            place = found + (len(rest.split(maxsplit=1)[0]) if is_unknown and rest.strip() else len(token))
        is_after_special = False
    return starts


def _starts_by_marks(labels: Sequence[str]) -> list[bool]:
    """Whether each token begins a word, by the marks of common subword tokenizers; without any, every token does."""
    pieces = iter(_pieces([label for label in labels if not _stands_alone(label)]))
    starts, is_after_end = [], True
    for label in labels:
        piece = " " if _stands_alone(label) else next(pieces)
        starts.append(is_after_end or piece.startswith(" "))
        is_after_end = piece.endswith(" ")
    return starts


def _stands_alone(label: str) -> bool:
    """Whether a token is special but no unknown word, which may be a part of a word."""
    return is_special(label) and not _UNKNOWN.fullmatch(label)


def _joined_axis(axis: Axis, groups: Groups | None) -> Axis:
    if groups is None:
        return axis
    labels = ("".join(_MARKS.sub("", axis.labels[place]) for place in group) for group in groups)
    return replace(axis, kind="words", labels=tuple(labels))


def _joined_map(each: Map, rows: Groups | None, columns: Groups | None) -> Map:
    """The mean of the rows and the sum of the columns of each word, so that a row still sums to what it did."""
    weights = each.weights
    if columns is not None:
        weights = np.stack([weights[:, group].sum(1) for group in columns], 1)
    if rows is not None:
        weights = np.stack([weights[group].mean(0) for group in rows])
    return Map(each.name, each.rows, each.columns, weights, each.layer, each.head)


def _joined_series(each: Series, groups: dict[str, Groups], maps: Sequence[Map]) -> Series:
    rows = groups.get(each.axis)
    values = np.array(each.values)
    if each.name == "choice":
        columns = groups.get(maps[0].columns)
        if columns is not None:
            values = np.array(_word_of(columns))[values]
        chosen = values if rows is None else values[[group[0] for group in rows]]
        return Series(each.name, each.axis, chosen)
    if rows is None:
        return each
    joined = np.sum if each.name in SUMMED else np.mean
    return Series(each.name, each.axis, [joined(values[group]) for group in rows])


def _word_of(groups: Groups) -> list[int]:
    """The word that each token belongs to."""
    return [word for word, group in enumerate(groups) for _ in group]


def _from_bytes(token: str) -> str:
    """The text of a token of byte-level BPE, which writes each byte as a printable letter; as it is where it is cut."""
    try:
        return bytes(_BYTES[letter] for letter in token).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return token.replace("Ġ", " ")


def _byte_letters() -> dict[str, int]:
    """The letters of GPT-2 for bytes: printable ones stand for themselves, the others for letters from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _byte_letters()
