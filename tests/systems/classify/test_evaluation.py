"""Evaluating document classifiers: scores by class, faithfulness, human rationales."""

import json

import numpy as np
import pytest
import torch
from helpers.models import small_document_classifier

import regard
from regard.data.documents import Document
from regard.errors import OptionError
from regard.metrics.faithfulness import Erasure, erasure
from regard.systems.classify import evaluation
from regard.systems.classify.data import DocumentBatch
from regard.systems.classify.evaluation import word_weights
from regard.systems.classify.faithfulness import (
    Explained,
    FaithfulnessScores,
    measure_faithfulness,
    rationale_agreement,
    verdict,
)

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
    from_one = write(
        tmp_path / "d.jsonl", [{"text": t, "label": 1 + (x == "positive")} for t, x in zip(TEXTS, labels, strict=True)]
    )
    assert regard.evaluate(model, documents=from_one)["accuracy"] == report["accuracy"]
    some = write(tmp_path / "e.jsonl", [{"text": "x", "label": 1}])
    with pytest.raises(OptionError, match=r"the documents have \['1'\]. Numbers count the classes from 0"):
        regard.evaluate(model, documents=some)
    other = write(tmp_path / "c.jsonl", [{"text": "x", "label": "sport"}])
    with pytest.raises(OptionError, match=r"the documents have \['sport'\]"):
        regard.evaluate(model, documents=other)
    with pytest.raises(OptionError, match="Give the test documents"):
        regard.evaluate(model)


def test_bad_rows_are_noted(model, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine", "label": 0}\nbroken\n')
    report = regard.evaluate(model, documents=str(path), skip_bad=True)
    assert any("1 bad row skipped" in note and "line 2" in note for note in report.notes)


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


@pytest.mark.parametrize("tokens", ["word", "bpe"])
def test_gradients_are_those_of_finite_differences(tokens):
    model = small_document_classifier(tokens=tokens)
    explained = Explained(model, TEXTS[0])
    slopes = explained.gradients()
    assert all(parameter.grad is None for parameter in model.parameters())
    batch = DocumentBatch.from_ids([explained.text.ids])
    size = 1e-2

    def probability(vectors, label):
        with torch.no_grad():
            return model(batch, vectors=vectors).logits.double().softmax(-1)[0, label].item()

    vectors = model.embedding(batch.words).detach()
    label = list(model.labels).index(model.classify(TEXTS[0]).label)
    differences = torch.zeros_like(vectors)
    for index in range(len(vectors)):
        for number in range(vectors.shape[1]):
            step = torch.zeros_like(vectors)
            step[index, number] = size
            differences[index, number] = (probability(vectors + step, label) - probability(vectors - step, label)) / (
                2 * size
            )
    # Packed, the ids of both sentences alternate; a word of several ids has the sum of their norms.
    norms = batch.by_sentence.restored(differences.norm(dim=-1)).tolist()
    owners = [(number, owner) for number, row in enumerate(explained.text.owners) for owner in row]
    expected = [
        sum(norm for norm, index in zip(norms, owners, strict=True) if index == word) for word in words_of(owners)
    ]
    assert slopes == pytest.approx(expected, rel=0.02, abs=1e-5)
    assert slopes.min() > 1e-4


def words_of(owners):
    return list(dict.fromkeys(owners))


def test_shuffling_the_weights_of_an_average_changes_nothing():
    """Within a sentence and between sentences all weights of an average are equal; those of attention are not."""
    documents = [Document(text) for text in TEXTS]
    changes = {
        pool: measure_faithfulness(small_document_classifier(pool=pool), documents, shuffles=5).scores[
            "permutation change"
        ]
        for pool in ("average", "attention")
    }
    assert changes["average"].value == pytest.approx(0, abs=1e-6)
    assert changes["attention"].value > 1e-3


def erasures(gains):
    return [Erasure(0.3 + gain, 0.1, 0.3, 0.2) for gain in gains]


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ((0.1, 0.2, 0.3), "matter more for its predictions than random words do (20.0 points"),
        ((-0.1, -0.2, -0.3), "Do not read the attention as an explanation: random words matter more (-20.0 points"),
        ((-0.2, 0.0, 0.2), "the attended words matter no more than random ones (0.0 points"),
    ],
)
def test_the_sentence_on_faithfulness_follows_the_interval(gains, expected):
    assert expected in verdict(erasures(gains))


def test_faithfulness_reports_intervals_beside_random_words_and_gradients(model):
    found = measure_faithfulness(model, [Document(text) for text in TEXTS], shuffles=5)
    expected = {"permutation change", "tau with gradients", "tau with leave-one-out"} | {
        f"{name}{other}"
        for name in ("comprehensiveness", "sufficiency")
        for other in ("", ", random words", ", gradients")
    }
    assert set(found.scores) == expected
    assert all("95 % interval" in measure.note for measure in found.scores.values())
    explained = [Explained(model, text) for text in TEXTS]
    by_hand = [
        erasure(each.predict, each.tokens, each.attention(), seed=number).comprehensiveness
        for number, each in enumerate(explained)
    ]
    assert found.scores["comprehensiveness"].value == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize(("strongest", "expected"), [(True, "better than chance"), (False, "worse than chance")])
def test_rationales_are_compared_with_gradients_and_chance(model, strongest, expected):
    """What people marked is here the word with the largest or the smallest weight of attention."""
    texts = ["My brother hated the plot of this film , and i did not .", *TEXTS] * 5
    documents = []
    for text in texts:
        weights = Explained(model, text).attention()
        index = int(weights.argmax() if strongest else weights.argmin())
        documents.append(Document(text, "positive", rationale=((index, index + 1),)))
    measures, sentence = rationale_agreement(model, documents)
    names = ("AUPRC", "average precision", "token F1", "IoU F1", "IoU F1, mean over documents")
    assert set(measures) == {f"{name}, {scores}" for name in names for scores in ("attention", "gradients", "random")}
    assert all(0 <= measure.value <= 1 for measure in measures.values())
    assert (measures["AUPRC, attention"].value == 1) is strongest
    assert measures["token F1, attention"].value == measures["IoU F1, attention"].value == (1 if strongest else 0)
    assert expected in sentence
    assert rationale_agreement(model, [Document("x")])[0] == {}


def test_documents_for_faithfulness_are_spread_over_the_test_set(model, tmp_path, monkeypatch):
    rows = [{"text": f"fine {number}", "label": "negative" if number < 50 else "positive"} for number in range(100)]
    seen = []

    def measured(model, documents, *, shuffles):
        seen.extend(document.text for document in documents)
        return FaithfulnessScores({}, "")

    monkeypatch.setattr(evaluation, "measure_faithfulness", measured)
    regard.evaluate(model, documents=write(tmp_path / "a.jsonl", rows), faithfulness=4)
    assert seen == ["fine 0", "fine 33", "fine 66", "fine 99"]


def test_the_distribution_of_a_word_by_class_as_a_table_and_a_figure(model, tmp_path):
    rows = [
        {"text": text, "label": label} for text, label in zip(TEXTS, ["positive", "negative", "negative"], strict=True)
    ]
    path = write(tmp_path / "a.jsonl", rows)
    report = regard.evaluate(model, documents=path, word="FINE", figure=str(tmp_path / "a.svg"))
    table = report.tables["Weight of 'FINE' by class"]
    assert [(row["class"], row["times"]) for row in table] == [("negative", 1), ("positive", 1)]
    by_class = word_weights(model.classify(TEXTS), "fine", ["positive", "negative", "negative"])
    assert [row["mean"] for row in table] == [f"{by_class[row['class']][0]:.3f}" for row in table]
    drawn = [next(value for name, value in row.items() if name.startswith("weight from 0")) for row in table]
    assert all(len(text) == 20 and text.count("█") == 1 for text in drawn)
    assert "positive: 1 time" in (tmp_path / "a.svg").read_text()
    assert any("a.svg" in note for note in report.notes)
    with pytest.raises(OptionError, match="'absent' does not occur"):
        regard.evaluate(model, documents=path, word="absent")
    with pytest.raises(OptionError, match="give it as --word"):
        regard.evaluate(model, documents=path, figure="a.png")


def test_a_model_in_training_mode_is_refused():
    model = small_document_classifier().train()
    with pytest.raises(OptionError, match="in training mode"):
        Explained(model, "fine")


def test_the_weights_of_a_word_by_class(model):
    results = model.classify(TEXTS)
    found = word_weights(results, "Fine")
    assert sum(map(len, found.values())) == 2
    expected = [word.weight for r in results for s in r.sentences for word in s.words if word.word.strip(".") == "fine"]
    assert sorted(weight for weights in found.values() for weight in weights) == pytest.approx(sorted(expected))
