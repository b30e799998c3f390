"""Antecedents are scored where a reader can know them."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.models import READ_PAIRS, READ_TEXTS, small_reader
from jaxtyping import config

import regard
from regard.errors import OptionError
from regard.systems.read.evaluation import antecedent_scores
from regard.systems.read.model import Reading
from regard.trace import Axis, Map, Trace
from regard.worlds.stories import stories

STORIES = {story.text: story for story in islice(stories(split="test"), 30)}


def scores(direction, index):
    """The scores of a reader that always looks at position(link), and names what it looks at where it can know."""

    def reading(story):
        weights = np.zeros((len(story.words),) * 2)
        weights[story.link.position(direction), index(story.link)] = 1
        trace = Trace("reading", (Axis("words", "words", story.words),), (Map("reading", "words", "words", weights),))
        return Reading(story.text, story.words, tags=story.tags(direction), trace=trace)

    reader = SimpleNamespace(
        config=SimpleNamespace(direction=direction), read=lambda texts: [reading(STORIES[text]) for text in texts]
    )
    config.update("jaxtyping_disable", True)
    try:
        return antecedent_scores(reader, len(STORIES))
    finally:
        config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("direction", ["forward", "both"])
def test_a_reader_that_looks_at_the_antecedent_scores_100(direction):
    found = scores(direction, lambda link: link.antecedent)
    assert (found.attended, found.named, found.pronouns, found.agreement) == (100, 100, 100, 100)
    assert scores(direction, lambda link: 0).attended < 5
    assert scores(direction, lambda link: 0).named == 100


def test_files_of_each_task_are_evaluated(tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in READ_TEXTS))
    (tmp_path / "labelled.txt").write_text("".join(f"good\t{text}\n" for text in READ_TEXTS))
    (tmp_path / "pairs.txt").write_text("".join(f"yes\t{premise}\t{text}\n" for premise, text in READ_PAIRS))
    (tmp_path / "tagged.txt").write_text("the\t-\ncat\tNOUN\n")
    model = regard.evaluate(small_reader("lstm_model"), file=str(tmp_path / "lines.txt"))
    assert model["bits per word"] == pytest.approx(np.log2(model["perplexity"]))
    (tmp_path / "written.txt").write_text("The cat sat on the mat.\n\nIt slept\nthe mat\n" + f"{READ_TEXTS[3]}\n")
    written = regard.evaluate(small_reader("lstm_model"), file=str(tmp_path / "written.txt"))
    assert written["perplexity"] == pytest.approx(model["perplexity"]), "text is split as the vocabulary knows it"
    for kind, name in {"lstmn_classifier": "labelled", "deep": "pairs"}.items():
        report = regard.evaluate(small_reader(kind), file=str(tmp_path / f"{name}.txt"))
        right = sum(output["answer"] == output["label"][0] for output in report.outputs)
        assert report["accuracy"] == pytest.approx(100 * right / len(report.outputs))
        assert sum(row["sentences"] for row in report.tables["By class"]) == len(report.outputs)
    assert regard.evaluate(small_reader("tagger"), file=str(tmp_path / "tagged.txt"))["accuracy"] in (0, 100)


def test_tags_belong_to_the_words_of_the_file(tmp_path):
    model = small_reader("tagger")
    sentences = [("the", "``", "cat", "can't", "sleep"), ("mat",), ("the", "cat")]
    tags = model.tag([*sentences, ()])
    assert [len(each) for each in tags] == [5, 1, 2, 0]
    assert tags[2] == model.read("the cat").tags == model.tag([("the", "cat")])[0]
    rows = [
        "\n".join(f"{word}\t{tag}" for word, tag in zip(*pair, strict=True))
        for pair in zip(sentences, tags[:3], strict=True)
    ]
    (tmp_path / "tagged.txt").write_text("\n\n".join(rows) + "\n")
    report = regard.evaluate(model, file=str(tmp_path / "tagged.txt"))
    assert report["accuracy"] == 100, "what the model says itself is right"
    assert [output["answer"] for output in report.outputs] == [list(each) for each in tags[:3]]
    with pytest.raises(OptionError, match="Tagging is for readers with task tag"):
        small_reader("lstmn_model").tag([("the",)])


def test_what_cannot_be_evaluated_is_refused(tmp_path):
    with pytest.raises(OptionError, match="Give a test set: a file, or the world stories"):
        regard.evaluate(small_reader("tagger"))
    with pytest.raises(OptionError, match="scores readers with task tag"):
        regard.evaluate(small_reader("lstmn_model"), world="stories")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(OptionError, match="There are no sentences in"):
        regard.evaluate(small_reader("lstmn_model"), file=str(tmp_path / "empty.txt"))
