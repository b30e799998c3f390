"""Evaluating document classifiers: scores by class, faithfulness, human rationales."""

import json

import numpy as np
import pytest
from document_models import small_document_classifier

import regard
from regard.data.documents import Document
from regard.errors import OptionError
from regard.systems.documents.evaluation import word_weights
from regard.systems.documents.explanations import Explained, faithfulness, rationale_agreement

TEXTS = ["The film was fine. I loved it!", "My brother hated the plot .", "a fine room . with a view"]


@pytest.fixture(scope="module")
def model():
    return small_document_classifier()


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_accuracy_and_scores_by_class(model, tmp_path):
    found = [result.label for result in model.classify(TEXTS)]
    labels = [found[0], found[1], "negative" if found[2] == "positive" else "positive"]
    path = write(tmp_path / "a.jsonl", [{"text": t, "label": label} for t, label in zip(TEXTS, labels, strict=True)])
    report = regard.evaluate(model, documents=path)
    assert report["accuracy"] == pytest.approx(100 * 2 / 3)
    assert sum(row["documents"] for row in report.tables["By class"]) == 3
    assert [output["predicted"] for output in report.outputs] == found
    numbers = write(
        tmp_path / "b.jsonl", [{"text": t, "label": int(x == "positive")} for t, x in zip(TEXTS, labels, strict=True)]
    )
    assert regard.evaluate(model, documents=numbers)["accuracy"] == report["accuracy"]
    other = write(tmp_path / "c.jsonl", [{"text": "x", "label": "sport"}])
    with pytest.raises(OptionError, match=r"the documents have \['sport'\]"):
        regard.evaluate(model, documents=other)
    with pytest.raises(OptionError, match="Give the test documents"):
        regard.evaluate(model)


def test_bad_rows_are_noted(model, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine", "label": 1}\nbroken\n')
    report = regard.evaluate(model, documents=str(path), skip_bad=True)
    assert any("1 bad rows skipped" in note and "line 2" in note for note in report.notes)


def test_importance_and_erasure_of_one_document(model):
    explained = Explained(model, TEXTS[0])
    assert explained.tokens == TEXTS[0].split()
    assert explained.attention().sum() == pytest.approx(1, abs=1e-5)
    result = model.classify(TEXTS[0])
    expected = [word.weight * sentence.weight for sentence in result.sentences for word in sentence.words]
    assert explained.attention() == pytest.approx(expected, abs=1e-6)
    masks = np.ones((3, 7), dtype=bool)
    masks[1, 4:] = False
    masks[2] = False
    rows = explained.predict(explained.tokens, masks)
    whole, part = model.classify(TEXTS[0]), model.classify("The film was fine.")
    assert rows[0] == pytest.approx([whole.probabilities[label] for label in model.labels], abs=1e-6)
    assert rows[1] == pytest.approx([part.probabilities[label] for label in model.labels], abs=1e-6)
    assert rows[2].sum() == pytest.approx(1)


def test_gradients_are_those_of_finite_differences(model):
    explained = Explained(model, TEXTS[1])
    slopes = explained.gradients()
    assert slopes.shape == (5 + 1,)
    assert (slopes > 0).all()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_average_does_not_depend_on_attention_and_the_sentence_says_so():
    found = faithfulness(small_document_classifier(), [Document(text) for text in TEXTS], shuffles=5)
    assert set(found.scores) >= {"comprehensiveness", "sufficiency", "permutation change", "tau with gradients"}
    assert "95 % interval" in found.scores["comprehensiveness"].note
    assert "random" in found.sentence
    assert found.scores["permutation change"].value > 0


def test_rationales_are_compared_with_gradients_and_chance(model):
    documents = [Document(text, "positive", rationale=((1, 3),)) for text in TEXTS]
    measures, sentence = rationale_agreement(model, documents)
    assert {f"AUPRC, {name}" for name in ("attention", "gradients", "random")} <= set(measures)
    assert all(0 <= measure.value <= 1 for measure in measures.values())
    assert "people marked" in sentence
    assert rationale_agreement(model, [Document("x")])[0] == {}


def test_the_weights_of_a_word_by_class(model):
    results = model.classify(TEXTS)
    found = word_weights(results, "Fine")
    assert sum(map(len, found.values())) == 2
    expected = [word.weight for r in results for s in r.sentences for word in s.words if word.word.strip(".") == "fine"]
    assert sorted(weight for weights in found.values() for weight in weights) == pytest.approx(sorted(expected))
