"""Word vectors in the forms in which they are published."""

import numpy as np
import pytest

from regard.data.word_vectors import read_vectors
from regard.errors import DataError

WORDS = ["the", "Paris", "unheard", "new york"]


def test_text_of_glove_and_word2vec(tmp_path):
    glove = tmp_path / "glove.txt"
    glove.write_text("the 1 2\nparis 3 4\nnew york 5 6\nother 7 8\n", encoding="utf-8")
    found = read_vectors(glove, WORDS)
    assert found.vectors.tolist() == [[1, 2], [3, 4], [0, 0], [5, 6]]
    assert found.known.tolist() == [True, True, False, True]
    word2vec = tmp_path / "word2vec.txt"
    word2vec.write_text("3 2\nParis 9 9\nparis 3 4\nthe 1 2\n", encoding="utf-8")
    assert read_vectors(word2vec, WORDS).vectors[:2].tolist() == [[1, 2], [9, 9]]  # its own form comes first


@pytest.mark.parametrize("joined", [True, False])
def test_numpy_archives(tmp_path, joined):
    words = np.array("the\nparis") if joined else np.array(["the", "paris"])
    np.savez(tmp_path / "a.npz", vectors=np.array([[1, 2], [3, 4]], dtype=np.float16), words=words)
    assert read_vectors(tmp_path / "a.npz", WORDS).vectors[:2].tolist() == [[1, 2], [3, 4]]


def test_wrong_files_are_explained(tmp_path):
    (tmp_path / "a.txt").write_text("the 1 2\nof 1 x\n")
    with pytest.raises(DataError, match=r"line 2 should be a word and its numbers \(could not convert"):
        read_vectors(tmp_path / "a.txt", WORDS)
    (tmp_path / "b.txt").write_text("the 1 2\nof 1\n")
    with pytest.raises(DataError, match="line 2"):
        read_vectors(tmp_path / "b.txt", WORDS)
    np.savez(tmp_path / "a.npz", vectors=np.zeros((3, 2)), words=np.array("the"))
    with pytest.raises(DataError, match="1 word for vectors of shape"):
        read_vectors(tmp_path / "a.npz", WORDS)
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="holds no word vectors"):
        read_vectors(tmp_path / "empty.txt", WORDS)
