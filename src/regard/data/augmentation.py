"""Sentence pairs in another form to learn from: with other names and numbers, in capitals, or in lower case.

A pair is given as the units of its sides: words with their leading space, and punctuation. Their number stays the same,
but for a sign at the end.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from regard.data.tokenizer import units_of

Units = list[str]

SIGN_INSTEAD = 0.1
"""Probability that a name is replaced by a sign, or by letters of another script, rather than by a name."""
SIGN_AFTER = 0.2
"""Probability that a sign is added at the end of both sides."""
LOWER_CASE = 0.5
"""Probability that `cased` gives a pair in lower case, and not in capitals."""
MIN_LENGTH = 2
"""Shorter words and numbers are not replaced: "a dog" and "1 dog" have other words around them than "7 dogs"."""
_VOWELS, _CONSONANTS = "aeiouy", "bcdfghjklmnpqrstvwxz"
_SIGNS = ((0x2190, 0x21FF), (0x2600, 0x27BF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF))
_SCRIPTS = ((0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x905, 0x939), (0x3041, 0x3096), (0x4E00, 0x9FA5))
"""Ranges of characters: arrows and pictures; letters of scripts that a translator into French need not know."""


def in_other_forms(
    pairs: Iterable[Any], *, copied: float, cased: float, seed: int, split: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Pairs of texts, some of them in another form: a share with other names, another in another case.

    The seed and the number of a pair decide its form. A pair may have links as its third part, which are between words
    of `text.split()` or, with `split`, of `split_words`.
    """
    shares = Random(seed)  # noqa: S311 - not for secrets
    for number, (source, target, *links) in enumerate(pairs):
        drawn = shares.random()
        if drawn >= copied + cased:
            yield source, target, *links
            continue
        random = Random(f"{seed} {number}")  # noqa: S311
        units = units_of(source), units_of(target)
        changed = (with_other_names if drawn < copied else in_another_case)(*units, random)
        texts = ["".join(side).strip(" ") for side in changed]
        if links and len(links[0]) and len(changed[0]) > len(units[0]):
            last = [len(side if split else text.split()) - 1 for side, text in zip(changed, texts, strict=True)]
            links = [np.concatenate([links[0], [last]])]
        yield *texts, *links


def with_other_names(source: Sequence[str], target: Sequence[str], random: Random) -> tuple[Units, Units]:
    """Replace the names and numbers that both sides have by random ones of the same shape, the same on both sides.

    A vowel becomes another vowel, a consonant another consonant, a digit another digit. Sometimes a name becomes a
    sign or letters of another script, or a sign is added at the end: what a model has to copy byte by byte.
    """
    sides = list(source), list(target)
    positions = [_positions(side) for side in sides]
    for key, position in positions[0].items():
        if key not in positions[1]:
            continue
        if key.isdigit():
            digits = f"{random.randint(1, 9)}" + "".join(f"{random.randrange(10)}" for _ in key[1:])
            new = digits if key[0] != "0" else f"0{digits[1:]}"
        else:
            new = _sign(random) if random.random() < SIGN_INSTEAD else "".join(_like(each, random) for each in key)
        for side, other in zip(sides, (position, positions[1][key]), strict=True):
            side[other] = _in_the_form_of(side[other], new)
    if random.random() < SIGN_AFTER:
        sign = _sign(random)
        for side in sides:
            side.append(f" {sign}")
    return sides


def in_another_case(source: Sequence[str], target: Sequence[str], random: Random) -> tuple[Units, Units]:
    """Put both sides into capitals, or the source alone into lower case, from which a translator restores the case."""
    if random.random() < LOWER_CASE:
        return [unit.lower() for unit in source], list(target)
    capitals = [unit.upper() for unit in source]
    if all(unit.lower() == unit for unit in capitals):  # a script without capitals says nothing about those to write
        return list(source), list(target)
    return capitals, [unit.upper() for unit in target]


def _positions(units: Sequence[str]) -> dict[str, int]:
    """Where the names and numbers of a sentence stand that it has once; a number in European digits is the key."""
    keys = [_key(unit.strip(" ")) for unit in units]
    counts = Counter(keys)
    return {key: position for position, key in enumerate(keys) if key and counts[key] == 1}


def _key(word: str) -> str:
    if len(word) < MIN_LENGTH:
        return ""
    if word.isdecimal():
        return "".join(f"{unicodedata.decimal(digit)}" for digit in word)
    return word if word.isalpha() and word[0].isupper() else ""


def _in_the_form_of(unit: str, new: str) -> str:
    """The new word with the space of a unit and, if it is a number, with its kind of digits."""
    old = unit.strip(" ")
    if old.isdecimal():
        zero = ord(old[0]) - unicodedata.decimal(old[0])
        new = "".join(chr(zero + int(digit)) for digit in new)
    return unit[: len(unit) - len(old)] + new


def _like(letter: str, random: Random) -> str:
    plain = unicodedata.normalize("NFD", letter.lower())[0]
    kind = next((kind for kind in (_VOWELS, _CONSONANTS) if plain in kind), None)
    if kind is None:
        return letter
    new = random.choice(kind)
    return new.upper() if letter.isupper() else new


def _sign(random: Random) -> str:
    """A picture, an arrow or the like, or a few letters of a script."""
    if random.random() < 0.5:
        return random.choice(_characters(_SIGNS[random.randrange(len(_SIGNS))]))
    letters = _characters(_SCRIPTS[random.randrange(len(_SCRIPTS))])
    return "".join(random.choice(letters) for _ in range(random.randint(2, 6)))


@cache
def _characters(ends: tuple[int, int]) -> str:
    """The characters of a range that have a name, such as letters and signs."""
    characters = map(chr, range(ends[0], ends[1] + 1))
    return "".join(each for each in characters if unicodedata.category(each) in ("Ll", "Lu", "Lo", "So", "Sm"))
