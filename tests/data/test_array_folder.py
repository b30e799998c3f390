"""What corpora and feature stores share: whatever their JSON files hold, opening one gives a result or a DataError."""

import json

import numpy as np
import pytest
from helpers.junk import wrong_values
from PIL import Image

from regard.data.corpus import Corpus
from regard.data.features import FeatureStore
from regard.data.images import Images, Square
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError


def build_corpus(folder):
    tokenizer = Tokenizer.train(["a b c"] * 3, size=20)
    Corpus.build([("a b", "b c")], tokenizer, tokenizer, folder, progress=False)


def build_store(folder):
    (folder.parent / "images").mkdir()
    Image.new("RGB", (9, 9)).save(folder.parent / "images" / "a.png")
    images, steps = Images(folder.parent / "images"), np.full(3, 0.5, np.float32)

    def encode(pixels):
        return pixels.reshape(len(pixels), 4, -1, 3).mean(2)

    FeatureStore.build(folder, images, ["a.png"], encode, encoder="e", prepare=Square(8), steps=steps, progress=False)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("kind", "build", "name"),
    [
        (Corpus, build_corpus, "meta.json"),
        (FeatureStore, build_store, "meta.json"),
        (FeatureStore, build_store, "names.json"),
        (FeatureStore, build_store, "failed.json"),
    ],
)
def test_any_wrong_value_in_a_description_is_explained(kind, build, name, tmp_path):
    folder = tmp_path / "folder"
    build(folder)
    right, refused = json.loads((folder / name).read_text()), 0
    for wrong in wrong_values(right):
        (folder / name).write_text(json.dumps(wrong))
        try:
            repr(kind.open(folder))
        except DataError:
            refused += 1
    assert refused > 5
    (folder / name).write_text(json.dumps(right))
    assert len(kind.open(folder)) == 1
