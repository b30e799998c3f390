"""Word vectors that were learned from much text, such as GloVe or word2vec: text files, or .npz archives."""

import os
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from regard.data.text import read_lines
from regard.errors import DataError

Vectors = dict[str, Float32[np.ndarray, "d"]]


def read_vectors(path: str | os.PathLike[str], words: Collection[str]) -> Vectors:
    """Read the vectors of these words; words that the file does not have are missing from the result.

    A text file (plain, .gz, .xz or .zip) has a word and its numbers in each line; a first line with the counts, as
    word2vec writes it, is skipped. An .npz archive has the arrays `vectors` (n, d) and `words`: n words, or one text
    with a word in each line.
    """
    wanted = frozenset(words)
    if Path(path).suffix.lower() == ".npz":
        return _from_archive(Path(path), wanted)
    return dict(_from_text(path, wanted))


def _from_text(path: str | os.PathLike[str], wanted: frozenset[str]) -> Iterator[tuple[str, np.ndarray]]:
    dim = 0
    for number, line in enumerate(read_lines(path), 1):
        word, *cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 1:
            continue
        dim = dim or len(cells)
        if len(cells) != dim or not dim:
            raise DataError(f"{path}: line {number} has {len(cells)} numbers after its word; the others have {dim}.")
        if word in wanted:
            try:
                yield word, np.array(cells, dtype=np.float32)
            except ValueError:
                raise DataError(f"{path}: line {number} is not a word and its numbers: {line[:60]!r}.") from None


def _from_archive(path: Path, wanted: frozenset[str]) -> Vectors:
    try:
        with np.load(path, allow_pickle=False) as archive:
            vectors, words = archive["vectors"], archive["words"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} must be an .npz archive with the arrays vectors and words: {error}.") from error
    listed = str(words).split("\n") if words.ndim == 0 else [str(word) for word in words]
    if vectors.ndim != 2 or len(listed) != len(vectors):
        raise DataError(f"{path} has {len(listed)} words, but vectors of shape {vectors.shape}.")
    return {word: vector.astype(np.float32) for word, vector in zip(listed, vectors, strict=True) if word in wanted}
