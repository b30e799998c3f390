"""Published word vectors, such as GloVe and word2vec, for the words of a vocabulary."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32

from regard.data.text import parsed, reading
from regard.errors import DataError, counted

MAX_DIM = 100_000
"""Largest size of a vector: a larger one is a damaged file."""


@dataclass(frozen=True)
class WordVectors:
    """A vector for each word of a vocabulary, and which of the words have one."""

    vectors: Float32[np.ndarray, "n d"]
    """Rows of words without a vector are 0."""
    known: Bool[np.ndarray, "n"]

    @property
    def dim(self) -> int:
        """The size of a vector."""
        return int(self.vectors.shape[1])


def read_vectors(path: str | os.PathLike[str], words: Sequence[str]) -> WordVectors:
    """Read the vectors of these words; a word without a vector takes that of its lower-case form.

    The file is text in the form of GloVe or word2vec (a word and its numbers per line, with or without a first line of
    counts; also .gz, .xz or .zip), or a NumPy .npz with `vectors` (n, d) and `words` (an array, or one string with a
    word per line). Only the vectors that are asked for are kept.
    """
    path = Path(path)
    wanted: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        for form in {word, word.lower()}:
            wanted.setdefault(form, []).append(number)
    rows = _npz_rows(path) if path.suffix.lower() == ".npz" else _text_rows(path)
    vectors, known, exact = None, np.zeros(len(words), dtype=bool), np.zeros(len(words), dtype=bool)
    for word, vector in rows:
        if vectors is None:
            vectors = np.zeros((len(words), len(vector)), dtype=np.float32)
        for number in wanted.get(word, ()):
            if words[number] == word or not exact[number]:
                vectors[number], known[number], exact[number] = vector, True, words[number] == word
    if vectors is None:
        raise DataError(f"{path} holds no word vectors.")
    return WordVectors(vectors, known)


def _npz_rows(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    with reading(path, "does not hold `vectors` and `words`"), np.load(path, allow_pickle=False) as archive:
        vectors, stored = archive["vectors"], archive["words"]
    words = str(stored).split("\n") if stored.ndim == 0 else [str(word) for word in stored]
    if vectors.ndim != 2 or len(vectors) != len(words) or vectors.dtype.kind not in "fiu":
        what = f"{counted(len(words), 'word')} for vectors of shape {vectors.shape} and type {vectors.dtype}"
        raise DataError(f"{path} has {what}.")
    return zip(words, vectors.astype(np.float32), strict=True)


def _text_rows(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    width = 0

    def row(line: str) -> tuple[str, np.ndarray] | None:
        nonlocal width
        # Some published vectors belong to words with spaces: the numbers are counted from the end.
        cells = line.rstrip().split(" ")
        if not width and len(cells) == 2 and all(cell.isdecimal() for cell in cells):
            width = int(cells[1])
            if not 0 < width <= MAX_DIM:
                raise ValueError(f"vectors may have 1 to {MAX_DIM} numbers")
            return None
        width = width or len(cells) - 1
        if len(cells) <= width or width < 1 or not np.isfinite(vector := np.array(cells[-width:], np.float32)).all():
            raise ValueError(f"it does not end in {max(1, width)} finite numbers")
        return " ".join(cells[:-width]), vector

    return filter(None, parsed(path, row, "a word and its numbers"))
