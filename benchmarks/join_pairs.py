"""Make long sentence pairs by joining neighbouring short ones, for figures of quality against length.

    python benchmarks/join_pairs.py IN.tsv[.gz|.xz] OUT.tsv [WORDS]

Each pair is used once. For each output line a length is drawn uniformly between 1 and WORDS source words, and as many
neighbours are joined as fit into it.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from regard.data.text import read_tsv

MAX_WORDS = 60


def joined(pairs: Iterable[tuple[str, str]], words: int) -> Iterator[tuple[str, str]]:
    """Neighbours joined up to lengths drawn between 1 and `words`; a pair longer than its length stays alone."""
    generator = np.random.default_rng(1)
    source, target, limit = "", "", generator.integers(1, words, endpoint=True)
    for more_source, more_target in pairs:
        if source and len(source.split()) + len(more_source.split()) > limit:
            yield source, target
            source, target, limit = "", "", generator.integers(1, words, endpoint=True)
        source, target = f"{source} {more_source}".strip(), f"{target} {more_target}".strip()
    if source:
        yield source, target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="source<TAB>target")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("words", type=int, nargs="?", default=MAX_WORDS, help=f"default: {MAX_WORDS}")
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf-8") as file:
        for source, target in joined(read_tsv(arguments.pairs), arguments.words):
            file.write(f"{source}\t{target}\n")


if __name__ == "__main__":
    main()
