"""Readers learn: ten examples by heart for each task, from every format; what is measured afterwards is right."""

import gzip
import json

import numpy as np
import pytest
import torch

import regard
from regard.data.tokenizer import END, PAD
from regard.errors import DataError, OptionError
from regard.systems.read.config import ReadingData
from regard.systems.read.data import Example, labels_of, read_examples, read_splits
from regard.systems.read.evaluation import model_perplexity
from regard.systems.read.model import with_end

SENTENCES = [
    f"the {noun} {verb} {place} ."
    for noun, verb, place in zip(
        ["cat", "dog", "cow", "hen", "fox"],
        ["sat", "ran", "ate", "slept", "hid"],
        ["here", "there", "inside", "outside", "away"],
        strict=True,
    )
]
SMALL = {"embedding": 12, "hidden": 16}
FAST = {"epochs": 60, "learning_rate": 0.03, "max_tokens": 60, "warmup": 0.05, "validate_every": 60}


def write(folder, name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def learn(folder, *, data, model, train=None):
    recipe = folder / "recipe.toml"
    recipe.write_text('system = "read"\n')
    return regard.train(
        recipe,
        out=folder / "run",
        data={"folder": str(folder), "train": "train.txt", "valid": "train.txt", **data},
        model={**SMALL, **model},
        train={**FAST, **(train or {})},
        overwrite=True,
        progress=False,
    )


@pytest.mark.parametrize(
    "model",
    [{"cell": "lstm"}, {"cell": "lstmn", "layers": 2, "skip": True}, {"cell": "self-attention", "heads": 2}],
    ids=lambda model: model["cell"],
)
@pytest.mark.usefixtures("unchecked")
def test_a_language_model_learns_sentences_by_heart(tmp_path, model):
    write(tmp_path, "train.txt", SENTENCES)
    write(tmp_path, "test.txt", SENTENCES[:2])
    trained = learn(tmp_path, data={"split": "spaces", "test": "test.txt"}, model=model)
    # Only the second word cannot be known: one of five.
    assert trained.metrics["valid_perplexity"] < 1.6
    reading = trained.model.read(SENTENCES[1])
    assert trained.metrics["test_perplexity"] < 1.6
    assert np.argmax(reading.surprisals) == 1
    assert trained.model.generate("the fox").words == tuple(SENTENCES[4].split())


def test_a_classifier_learns_trees_and_their_phrases(tmp_path):
    trees = [
        f"({label} (2 the) ({label} {word}))" for label, word in enumerate(["awful", "bad", "plain", "good", "superb"])
    ]
    write(tmp_path, "train.txt", trees * 2)
    trained = learn(tmp_path, data={"format": "trees", "phrases": True}, model={"task": "classify"})
    assert trained.metrics["valid_accuracy"] == 100
    assert trained.metrics["train_sentences"] == 11, "five sentences, five words and an article, each once"
    assert list(trained.model.labels) == ["very negative", "negative", "neutral", "positive", "very positive"]
    assert trained.model.read("the superb").label == "very positive"
    report = regard.evaluate(trained.model, file=str(tmp_path / "train.txt"), format="trees")
    assert report["accuracy"] == 100
    assert [row["recall"] for row in report.tables["By class"]] == [100] * 5


@pytest.mark.parametrize("fusion", ["shallow", "deep", "aligned"])
@pytest.mark.usefixtures("unchecked")
def test_inference_learns_pairs(tmp_path, fusion):
    pairs = [
        ("yes", "a dog runs", "a dog moves"),
        ("no", "a dog runs", "a dog sleeps"),
        ("yes", "a cat naps", "a cat sleeps"),
        ("no", "a cat naps", "a cat runs"),
    ]
    write(tmp_path, "train.txt", ["\t".join(pair) for pair in pairs])
    trained = learn(tmp_path, data={}, model={"task": "entail", "fusion": fusion}, train={"class_weights": True})
    assert trained.metrics["valid_accuracy"] == 100
    assert trained.model.read(("a cat naps", "a cat runs")).label == "no"


def test_a_tagger_learns_what_stands_in_the_column(tmp_path):
    write(tmp_path, "train.txt", ["the\tD", "cat\tN", "", "it\tP", "ran\tV", ""])
    trained = learn(tmp_path, data={}, model={"task": "tag"})
    assert trained.model.read("the cat").tags == ("D", "N")
    assert trained.metrics["valid_accuracy"] == 100


def test_the_world_stories_is_learned_from_and_scored(tmp_path):
    (tmp_path / "recipe.toml").write_text('system = "read"\n[data]\nworld = "stories"\nexamples = 60\n')
    trained = regard.train(
        tmp_path / "recipe.toml",
        out=tmp_path / "run",
        data={"held_out": 20, "held_out_test": 20},
        model={"task": "tag", "cell": "self-attention", "embedding": 8, "hidden": 8},
        train={"epochs": 1},
        progress=False,
    )
    assert {"test_antecedent", "test_named", "test_accuracy"} <= trained.metrics.keys()
    report = regard.evaluate(trained.folder, world="stories", count=20)
    assert report["antecedent attended first"] == trained.metrics["test_antecedent"]


def test_perplexity_counts_the_end_of_each_sentence(tmp_path):
    write(tmp_path, "train.txt", SENTENCES)
    model = learn(tmp_path, data={}, model={}, train={"epochs": 1}).model
    bits = [
        (*reading.surprisals, np.log2(reading.perplexity) * 6 - sum(reading.surprisals))
        for reading in model.read(SENTENCES)
    ]
    wanted = 2 ** (np.sum(bits) / np.size(bits))
    assert model_perplexity(model, [Example((tuple(text.split()),)) for text in SENTENCES]) == pytest.approx(wanted)
    assert regard.evaluate(model, file=str(tmp_path / "train.txt"))["perplexity"] == pytest.approx(wanted)
    ids, lengths = torch.tensor([[5, 6, 7], [5, PAD, PAD]]), torch.tensor([3, 1])
    assert with_end(ids, lengths).tolist() == [[5, 6, 7, END], [5, END, PAD, PAD]]


def test_word_vectors_start_the_embedding_and_can_be_frozen(tmp_path):
    write(tmp_path, "train.txt", [f"a\t{text}" for text in SENTENCES] + ["b\tno cat"])
    np.savez(tmp_path / "vectors.npz", vectors=np.arange(24, dtype=np.float16).reshape(2, 12), words="cat\nzebra")
    vectors = {"vectors": str(tmp_path / "vectors.npz")}
    trained = learn(tmp_path, data=vectors, model={"task": "classify"}, train={"epochs": 1, "freeze_words": True})
    embedding, vocabulary = trained.model.network.words.embedding.weight, trained.model.vocabulary
    assert embedding[vocabulary.id("cat")].tolist() == list(range(12))
    assert trained.metrics["vector_coverage"] == pytest.approx(1 / len(vocabulary))
    with pytest.raises(OptionError, match=r"have 12 features; the model takes 13. Set --model.embedding 12"):
        learn(tmp_path, data=vectors, model={"task": "classify", "embedding": 13})
    with pytest.raises(OptionError, match=r"give some with --data.vectors"):
        learn(tmp_path, data={}, model={"task": "classify"}, train={"freeze_words": True})


def test_files_are_found_with_any_compression_and_sentences_are_held_out(tmp_path):
    with gzip.open(tmp_path / "train.txt.gz", "wt") as stream:
        stream.write("".join(f"{noun} {verb}\n" for noun in "abcdefgh" for verb in "stuvw"))
    splits = read_splits(
        ReadingData(folder=str(tmp_path), train="train.txt", held_out=4, held_out_test=3), "language-model", "forward"
    )
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (33, 4, 3)
    assert not {each.sentences for each in splits.train} & {each.sentences for each in (*splits.valid, *splits.test)}
    with pytest.raises(DataError, match="There is no file"):
        read_splits(ReadingData(folder=str(tmp_path), train="absent.txt"), "language-model", "forward")


def test_binary_sentiment_leaves_neutral_out(tmp_path):
    write(tmp_path, "trees.txt", ["(0 (1 so) (0 bad))", "(2 (2 so) (2 so))", "(4 (2 so) (3 good))"])
    data = ReadingData(format="trees", binary=True)
    examples = list(read_examples(tmp_path / "trees.txt", "classify", data))
    assert [each.labels for each in examples] == [("negative",), ("positive",)]
    assert labels_of([Example((), ("positive",)), Example((), ("very negative",)), Example((), ("zebra",))]) == [
        "very negative",
        "positive",
        "zebra",
    ]


def test_data_that_does_not_fit_the_task_is_refused(tmp_path):
    with pytest.raises(OptionError, match="Say what to train on"):
        read_splits(ReadingData(), "tag", "forward")
    with pytest.raises(OptionError, match="The world stories is for the task tag; got task 'classify'"):
        read_splits(ReadingData(world="stories"), "classify", "forward")
    with pytest.raises(OptionError, match="phrases and binary are for the format trees; got 'auto'"):
        ReadingData(phrases=True)
    write(tmp_path, "a.txt", ["x\ty"])
    with pytest.raises(OptionError, match="The task entail reads the format inference; got format 'lines'"):
        list(read_examples(tmp_path / "a.txt", "entail", ReadingData(format="lines")))


def test_a_trained_reader_is_trained_further_on_the_same_labels(tmp_path):
    write(tmp_path, "train.txt", ["good\ta fine film", "bad\ta poor film"] * 3)
    first = learn(tmp_path, data={}, model={"task": "classify"}, train={"epochs": 1})
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", "train.txt", ["good\tnice", "worse\tdull"])
    with pytest.raises(DataError, match=r"knows the labels \['bad', 'good'\], and the data has \['good', 'worse'\]"):
        regard.train(
            tmp_path / "recipe.toml", out=tmp_path / "again", start_from=first.folder, progress=False,
            data={"folder": str(tmp_path / "more"), "train": "train.txt", "valid": "train.txt"},
        )  # fmt: skip
    stored = json.loads((first.folder / "config.json").read_text())
    assert stored["system"] == "read"
