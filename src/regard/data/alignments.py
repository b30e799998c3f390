"""Word alignments in files: links as lines such as `0-0 1-2 2-1`, and gold alignments as JSON lines.

i-j links word i of the source with word j of the target, both counted from 0.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from regard.data.text import parsed, read_lines
from regard.errors import DataError
from regard.metrics.alignment import GoldAlignment

LinkArray = Int[np.ndarray, "_ 2"]
# Numbers of at most 18 digits fit into 64 bits.
_LINE = re.compile(r"\s*(\d{1,18}-\d{1,18}\s*(?:\s\d{1,18}-\d{1,18}\s*)*)?")


def parse_links(line: str, place: str = "The line of links") -> LinkArray:
    """Parse `0-0 1-2`; an empty line has no links. `place` begins the message of an error."""
    if not _LINE.fullmatch(line):
        raise DataError(f"{place} must be such as '0-0 1-2 2-1' (source word - target word); got {line[:60]!r}.")
    return np.array(re.findall(r"\d+", line), dtype=np.int64).reshape(-1, 2)


def format_links(links: Iterable[tuple[int, int]]) -> str:
    """Write links as `0-0 1-2`, sorted."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_links(path: str | os.PathLike[str]) -> Iterator[LinkArray]:
    """Yield the links of each line of a file, plain or compressed (.gz, .xz, .zip)."""
    return (parse_links(line, f"{path}, line {number}:") for number, line in enumerate(read_lines(path), 1))


def read_gold(path: str | os.PathLike[str]) -> list[GoldAlignment]:
    """Read gold alignments from JSON lines, plain or compressed (.gz, .xz, .zip).

    A line is {"src": [...], "tgt": [...], "sure": [[i, j], ...], "possible": [[i, j], ...]} with links counted from 0;
    `possible` may leave out the sure links.
    """
    expected = "an object with src and tgt (lists of words) and sure and possible (lists of [i, j], counted from 0)"
    pairs = list(parsed(path, _gold, expected))
    if not pairs:
        raise DataError(f"{path} holds no aligned sentence pairs: it is empty.")
    if not any(pair.possible for pair in pairs):
        raise DataError(f"{path}: none of its {len(pairs)} sentence pairs has a link, so that nothing can be measured.")
    return pairs


def _gold(line: str) -> GoldAlignment:
    fields: Any = json.loads(line)
    if missing := {"src", "tgt", "sure"} - set(fields):
        raise ValueError(f"it is without {', '.join(sorted(missing))}")
    for side in ("src", "tgt"):
        if not isinstance(fields[side], list) or not all(isinstance(word, str) for word in fields[side]):
            raise ValueError(f"{side} is {str(fields[side])[:60]!r}")
    source, target = tuple(fields["src"]), tuple(fields["tgt"])
    sure = frozenset((int(i), int(j)) for i, j in fields["sure"])
    possible = sure | {(int(i), int(j)) for i, j in fields.get("possible", [])}
    for i, j in sorted(possible):
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise ValueError(f"link [{i}, {j}] is outside its {len(source)} x {len(target)} words")
    return GoldAlignment(source, target, sure, possible)
