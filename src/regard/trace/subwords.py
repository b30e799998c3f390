"""Subword tokens: the marks of common tokenizers, and the text and words that tokens form."""

import re
from collections.abc import Iterator, Sequence

Words = tuple[tuple[str, int], ...]
"""Words, each with the number of its tokens."""
MAX_GAP = 60
"""Maximum number of characters that may be skipped in the text to find the next token."""
_SPECIAL = re.compile(r"<[^<>\s]+>|\[(CLS|SEP|PAD|UNK|MASK|BOS|EOS)\]", re.IGNORECASE)
_UNKNOWN = re.compile(r"<unk>|\[UNK\]", re.IGNORECASE)
_MARKS = re.compile(r"^(?:[▁Ġ]|##)|(?:@@|</w>)$")


def is_special(token: str) -> bool:
    """Whether a token is a special one, such as the end mark or the unknown word."""
    return _SPECIAL.fullmatch(token) is not None


def plain_tokens(tokens: Sequence[str]) -> tuple[list[str], str]:
    """Tokens without the marks of their tokenizer, and the text that they form without special tokens.

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


def words_of(labels: Sequence[str], text: str | None) -> Words | None:
    """The words that tokens form; None if every token is a word, or if that is not known."""
    groups: list[list[str]] = []
    starts = _starts_in_text(labels, text) if text else _starts_by_marks(labels)
    for label, is_start in zip(labels, starts, strict=True):
        if is_start or not groups:
            groups.append([])
        groups[-1].append(label)
    plain = [[_MARKS.sub("", label) for label in group] for group in groups]
    words = tuple([("".join(bare) or "".join(group), len(group)) for bare, group in zip(plain, groups, strict=True)])
    return None if [word for word, _ in words] == list(labels) else words


def _starts_in_text(labels: Sequence[str], text: str) -> list[bool]:
    """Whether each token begins a word, found by looking it up in the text, where white space separates words."""
    text, is_after_special = text.casefold(), True
    starts = []
    for label, (before, found) in zip(labels, _found(labels, text), strict=True):
        is_special_label = is_mark(label)
        starts.append(is_special_label or is_after_special or found < 0 or any(map(str.isspace, text[before:found])))
        is_after_special = is_special_label
    return starts


def positions_of(labels: Sequence[str], text: str) -> list[int]:
    """Where each token begins in the text; -1 for a special one, and for one that does not occur there."""
    # Case is folded first, which changes the length of some letters: every place is taken back to the text itself.
    folded = [letter.casefold() for letter in text]
    origin = [place for place, letters in enumerate(folded) for _ in letters]
    places: list[int] = []
    for label, (before, found) in zip(labels, _found(labels, "".join(folded)), strict=True):
        # A further byte of a character has no letters: it belongs to where that stands.
        found = found if label or not places else before - 1
        places.append(origin[found] if 0 <= found < len(origin) else -1)
    return places


def _found(labels: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    """For each token, where its search in a text in folded case began, and where it was found, or -1."""
    index = 0
    for label in labels:
        if is_mark(label):
            yield index, -1
            continue
        token = _MARKS.sub("", label).strip().casefold()
        is_unknown = _UNKNOWN.fullmatch(label) is not None
        found = len(text) - len(text[index:].lstrip()) if is_unknown else text.find(token, index)
        end = index
        if 0 <= found - index < MAX_GAP:
            rest = text[found:]
            end = found + (len(rest.split(maxsplit=1)[0]) if is_unknown and rest.strip() else len(token))
        else:
            found = -1
        yield index, found
        index = end


def _starts_by_marks(labels: Sequence[str]) -> list[bool]:
    """Whether each token begins a word, by the marks of common subword tokenizers; without any, every token does."""
    pieces = iter(_pieces([label for label in labels if not is_mark(label)]))
    starts, is_after_end = [], True
    for label in labels:
        piece = " " if is_mark(label) else next(pieces)
        starts.append(is_after_end or piece.startswith(" "))
        is_after_end = piece.endswith(" ")
    return starts


def is_mark(label: str) -> bool:
    """Whether a token does not occur in the text: it is special, and not an unknown word."""
    return _SPECIAL.fullmatch(label) is not None and _UNKNOWN.fullmatch(label) is None


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
    return {chr(byte): byte for byte in printable} | {chr(256 + index): byte for index, byte in enumerate(others)}


_BYTES = _byte_letters()
