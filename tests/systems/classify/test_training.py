"""Training document classifiers: they learn, start from word vectors, and wrong data is explained."""

import json

import numpy as np
import pytest
import torch
from helpers.models import small_document_classifier

import regard
from regard.errors import DataError, OptionError
from regard.systems.classify.config import ClassificationData, ClassificationTrain
from regard.systems.classify.data import encode_documents, read_splits, sorted_labels, world_documents
from regard.systems.classify.training import ClassificationTask, class_weights, loader, predicted, start_from_vectors
from regard.systems.plan import read_recipe
from regard.systems.run import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(
        "reviews",
        out=tmp_path_factory.mktemp("reviews"),
        data={"examples": 1000, "held_out": 60, "held_out_test": 60},
        model={"embedding": 16, "hidden": 16},
        train={"epochs": 4, "learning_rate": 0.02, "batch_size": 32},
        progress=False,
    )


def test_the_world_of_reviews_is_learned_and_tested(trained):
    assert trained.metrics["test_accuracy"] >= 80
    assert trained.metrics["test_documents"] == trained.metrics["valid_documents"] == 60
    assert trained.metrics["train_documents"] == 1000
    assert trained.metrics["train_unknown_percent"] == 0
    report = regard.evaluate(trained.folder, world="reviews", count=60)
    assert report["accuracy"] == pytest.approx(trained.metrics["test_accuracy"])
    assert report["decisive sentence"] >= 75
    other = regard.evaluate(trained.folder, world="reviews", count=60, split="valid")
    assert other["accuracy"] == pytest.approx(trained.metrics["valid_accuracy"])


def write_rows(path, count, seed):
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        label = number % 2
        words = [*random.choice(["a", "b", "c", "d"], 4), ["bad", "good"][label], str(number)]
        rows.append({"text": " ".join(words) + ". And more. ", "label": label})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_files_are_read_held_out_and_named(tmp_path):
    write_rows(tmp_path / "train.jsonl", 100, 1)
    write_rows(tmp_path / "test.jsonl", 20, 2)
    data = ClassificationData(
        folder=str(tmp_path), train="train.jsonl", test="test.jsonl", held_out=10, label_names=("no", "yes")
    )
    splits = read_splits(data)
    assert splits.labels == ("no", "yes")
    assert len(splits.valid) == 10
    assert len(splits.test or []) == 20
    train_texts = [document.text for document in splits.train]
    assert len(train_texts) == 90
    assert not {document.text for document in splits.valid} & set(train_texts)
    assert {document.label for document in splits.train} == {"no", "yes"}
    assert sorted_labels(["10", "9", "1", "9"]) == ["1", "9", "10"]
    assert sorted_labels(["b", "10", "9"]) == ["10", "9", "b"]
    with pytest.raises(OptionError, match="label_names has 1 names for 2 classes"):
        read_splits(ClassificationData(folder=str(tmp_path), train="train.jsonl", label_names=("no",)))


def test_duplicates_are_held_out_together(tmp_path):
    rows = [{"text": f"text {number % 30}", "label": number % 2} for number in range(120)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splits = read_splits(ClassificationData(folder=str(tmp_path), train="a.jsonl", held_out=3))
    assert not {document.text for document in splits.valid} & {document.text for document in splits.train}


def test_bad_rows_are_reported_and_counted(tmp_path, capsys):
    write_rows(tmp_path / "a.jsonl", 60, 1)
    with (tmp_path / "a.jsonl").open("a") as stream:
        stream.write("broken\n")
    with pytest.raises(DataError, match="line 61 is not JSON"):
        read_splits(ClassificationData(folder=str(tmp_path), train="a.jsonl"))
    splits = read_splits(ClassificationData(folder=str(tmp_path), train="a.jsonl", skip_bad=True))
    assert splits.bad.count == 1
    assert "1 bad row skipped" in capsys.readouterr().err


def test_classes_that_only_the_test_has_are_refused(tmp_path):
    write_rows(tmp_path / "train.jsonl", 40, 1)
    (tmp_path / "test.jsonl").write_text('{"text": "x", "label": "other"}\n')
    with pytest.raises(DataError, match=r"test documents have the classes \['other'\]"):
        read_splits(ClassificationData(folder=str(tmp_path), train="train.jsonl", test="test.jsonl"))
    with pytest.raises(OptionError, match="Say what to train on"):
        read_splits(ClassificationData())
    with pytest.raises(OptionError, match="not both"):
        ClassificationData(train="a", world="reviews")


def test_news_posts_lose_headers_and_quotations(tmp_path):
    post = "From: me\tSubject: hello\t\t> quoted\tmy own words {}\t--\tsignature"
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"text": post.format(number), "group": f"g{number % 2}"}) + "\n" for number in range(30))
    )
    options = {"folder": str(tmp_path), "train": "a.jsonl", "columns": ("text", "group"), "held_out": 2}
    whole = next(iter(read_splits(ClassificationData(**options, posts="whole")).train)).text
    assert whole.startswith("From: me\nSubject: hello\n\n> quoted\nmy own")
    body = read_splits(ClassificationData(**options, posts="body"))
    assert {document.text for document in [*body.train, *body.valid]} == {
        f"my own words {number}" for number in range(30)
    }


def test_a_batch_holds_these_documents_and_the_order_is_kept():
    model = small_document_classifier()
    documents = world_documents("train", 40)
    encoded = encode_documents(model, documents)
    assert encoded.sizes.tolist() == [sum(map(len, model.encode(document).ids)) for document in documents]
    batch = encoded.batch([7, 3])
    words = [number for index in (7, 3) for ids in model.encode(documents[index]).ids for number in ids]
    assert batch.by_sentence.restored(batch.words).tolist() == words
    assert batch.labels.tolist() == [encoded.labels[7], encoded.labels[3]]
    expected = [result.probabilities["positive"] for result in model.classify(documents)]
    assert predicted(model, encoded)[:, 1].tolist() == pytest.approx(expected, abs=1e-6)


def test_batches_are_bounded_in_words_and_documents():
    encoded = encode_documents(small_document_classifier(), world_documents("train", 200))
    batches = list(loader(encoded, ClassificationTrain(max_words=400, batch_size=6), shuffle=True))
    assert sum(len(batch) for batch in batches) == 200
    assert max(len(batch) for batch in batches) <= 6
    assert max(len(batch.words) for batch in batches) <= 400


def test_documents_that_are_cut_are_counted():
    model = small_document_classifier(max_sentences=4)
    documents = world_documents("train", 30)
    encoded = encode_documents(model, documents)
    assert encoded.left_out == sum(len(document.sentences) > 4 for document in documents) > 0
    assert encoded.document_lengths.max() == 4


def test_word_vectors_are_copied_and_missing_ones_counted(tmp_path):
    model = small_document_classifier()
    path = tmp_path / "vectors.txt"
    path.write_text("film 1 2 3 4 5 6 7\nfine 7 6 5 4 3 2 1\n")
    metrics = {}
    start_from_vectors(model, path, metrics)
    indices = [
        number for number, word in enumerate(model.tokenizer.pieces(range(len(model.tokenizer)))) if word == "film"
    ]
    assert indices
    for index in indices:
        assert model.embedding.weight[index].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert 0 < metrics["vocabulary_without_vector_percent"] < 100
    assert model.embedding.weight[0].tolist() == [0] * 7
    with pytest.raises(OptionError, match=r"--model\.embedding 7"):
        start_from_vectors(small_document_classifier(embedding=5), path, {})


def test_class_weights():
    labels = np.array([0, 0, 0, 1])
    names = ("no", "a=b")
    assert class_weights(ClassificationTrain(), labels, names) is None
    assert class_weights(ClassificationTrain(balance_classes=True), labels, names).tolist() == pytest.approx(
        [4 / 6, 2.0]
    )
    assert class_weights(ClassificationTrain(class_weights="a=b=3"), labels, names).tolist() == [1.0, 3.0]
    with pytest.raises(OptionError, match="names the class 'yes'"):
        class_weights(ClassificationTrain(class_weights="yes=2"), labels, names)
    for wrong in ("3", "no=x", "no=-1", "no=inf"):
        with pytest.raises(OptionError, match="class_weights must be such as"):
            ClassificationTrain(class_weights=wrong)
    with pytest.raises(OptionError, match="not both"):
        ClassificationTrain(class_weights="no=1", balance_classes=True)
    task = ClassificationTask(small_document_classifier(), ClassificationTrain(), 10, torch.tensor([0.0, 1.0]))
    batch = encode_documents(task.model, world_documents("train", 8)).batch(range(8))
    rows = task.model(batch).logits.log_softmax(-1)[batch.labels == 1]
    torch.testing.assert_close(task.loss(batch), -rows[:, 1].mean())


@pytest.mark.parametrize("name", ["imdb-han", "newsgroups-han", "reviews"])
def test_the_recipes_are_complete(name):
    recipe = read_recipe(name)
    assert recipe.system == "classify"
    assert recipe.model.pool == "attention"
