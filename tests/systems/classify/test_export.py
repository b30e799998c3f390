"""Exported document classifiers compute what torch computes."""

import json

import numpy as np
import pytest
import torch
from helpers.exported import Exported
from helpers.models import DOCUMENT_TEXTS, small_document_classifier

from regard.systems.classify.data import DocumentBatch
from regard.systems.export import export

DOCUMENTS = [" ".join(DOCUMENT_TEXTS[:3]), DOCUMENT_TEXTS[3], " ".join(DOCUMENT_TEXTS[2:])]
KINDS = {
    "attention": {},
    "average": {"pool": "average"},
    "max": {"pool": "max"},
    "sparsemax": {"align": "sparsemax"},
    "sentences": {"read": "sentences"},
}


def padded(documents):
    """Ids and mask, (documents, sentences, words), and the places of all words and of all sentences."""
    shape = len(documents), max(map(len, documents)), max(len(each) for one in documents for each in one)
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for document, sentences in enumerate(documents):
        for place, words in enumerate(sentences):
            ids[document, place, : len(words)], mask[document, place, : len(words)] = words, 1
    return ids, mask


@pytest.mark.parametrize("kind", KINDS)
def test_the_classes_and_weights_of_an_exported_classifier_are_those_of_torch(kind, tmp_path):
    model = small_document_classifier(tokens="bpe", **KINDS[kind])
    documents = [model.encode(text).ids for text in DOCUMENTS]
    with torch.no_grad():
        expected = model(DocumentBatch.from_ids(documents))
    ids, mask = padded(documents)
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    outputs = exported.run("model", input_ids=ids, attention_mask=mask)
    np.testing.assert_allclose(outputs["logits"], expected.logits, atol=1e-5)
    np.testing.assert_allclose(outputs["word_weights"][mask > 0], expected.word_weights, atol=1e-5)
    np.testing.assert_allclose(outputs["sentence_weights"][mask.max(2) > 0], expected.sentence_weights, atol=1e-5)
    assert not outputs["word_weights"][mask == 0].any()
    assert not outputs["sentence_weights"][mask.max(2) == 0].any()


def test_the_classes_are_named(tmp_path):
    folder = export(small_document_classifier(), tmp_path / "out")
    assert json.loads((folder / "config.json").read_text())["id2label"] == {"0": "negative", "1": "positive"}
