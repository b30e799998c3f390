"""Long sentence pairs from short ones: neighbours joined end to end, for figures of quality against length.

    python benchmarks/join_pairs.py IN.tsv[.gz|.xz] OUT.tsv [WORDS]

Each pair is used once: as many neighbours are joined as fit into a length that is drawn for each line, evenly between
1 and WORDS (60) source words.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from regard.data.text import read_tsv


def joined(pairs: Iterable[tuple[str, str]], words: int) -> Iterator[tuple[str, str]]:
    """Neighbours joined up to lengths drawn between 1 and `words`; a pair that is longer by itself stays alone."""
    draw = np.random.default_rng(1)
    source, target, limit = "", "", draw.integers(1, words, endpoint=True)
    for more_source, more_target in pairs:
        if source and len(source.split()) + len(more_source.split()) > limit:
            yield source, target
            source, target, limit = "", "", draw.integers(1, words, endpoint=True)
        source, target = f"{source} {more_source}".strip(), f"{target} {more_target}".strip()
    if source:
        yield source, target


def main() -> None:
    origin, out, *words = sys.argv[1:]
    with Path(out).open("w", encoding="utf-8") as file:
        for source, target in joined(read_tsv(origin), int(words[0]) if words else 60):
            file.write(f"{source}\t{target}\n")


if __name__ == "__main__":
    main()
