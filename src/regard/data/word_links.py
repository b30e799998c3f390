"""Word links in the common text format: a line such as `0-0 1-2 2-1` for each sentence pair.

i-j links word i of the source with word j of the target, both counted from 0.
"""

import os
import re
from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Int

from regard.data.text import read_lines
from regard.errors import DataError

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
