"""regard read: surprisal, labels, tags, pairs, generated text, figures and JSON."""

import json

import pytest
from helpers.command_line import refused, regard
from helpers.models import READ_PAIRS, READ_TEXTS, small_reader


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for kind in ("lstmn_model", "lstmn_classifier", "tagger", "deep"):
        small_reader(kind).save(root / kind)
    return root


def test_a_language_model_prints_perplexity_and_bits(folders):
    done = regard("read", "--model", folders / "lstmn_model", "The cat sat.", check=True)
    perplexity, words = done.stdout.strip().split("\t")
    reading = small_reader("lstmn_model").read("The cat sat.")
    assert float(perplexity) == pytest.approx(reading.perplexity, abs=0.1)
    assert [each.split("/")[0] for each in words.split()] == ["The", "cat", "sat", "."]


def test_unknown_words_are_marked(folders):
    done = regard("read", "--model", folders / "lstmn_model", "the zebra sat", check=True)
    assert [each.split("/")[0] for each in done.stdout.split()[1:]] == ["the", "zebra(unknown)", "sat"]


def test_lines_of_a_pipe_are_labelled_in_order(folders):
    done = regard("read", "--model", folders / "lstmn_classifier", input="\n\n".join(READ_TEXTS), check=True)
    lines = done.stdout.splitlines()
    assert lines[1::2] == [""] * (len(READ_TEXTS) - 1), "a blank line stays blank"
    rows = [line.split("\t") for line in lines[::2]]
    assert [row[2] for row in rows] == READ_TEXTS
    assert {row[0] for row in rows} <= {"bad", "good"}


def test_tags_and_pairs(folders, tmp_path):
    tagged = regard("read", "--model", folders / "tagger", "the cat", check=True).stdout.split()
    assert [each.partition("/")[0] for each in tagged] == ["the", "cat"]
    one = regard("read", "--model", folders / "deep", *READ_PAIRS[0], check=True).stdout
    (tmp_path / "pairs.tsv").write_text("".join(f"{premise}\t{text}\n\n" for premise, text in READ_PAIRS))
    many = regard("read", "--model", folders / "deep", "--input", tmp_path / "pairs.tsv", check=True).stdout
    assert many.splitlines()[0] == one.strip()
    assert [bool(line) for line in many.splitlines()] == [True, False] * len(READ_PAIRS)


def test_text_is_generated(folders):
    words = regard("read", "--model", folders / "lstmn_model", "--generate", "the cat", "--max-length", "3", check=True)
    assert words.stdout.split()[:2] == ["the", "cat"]
    several = ["--sample", "--nbest", "3", "--seed", "1", "--max-length", "4"]
    drawn = regard("read", "--model", folders / "lstmn_model", "--generate", *several, check=True).stdout
    assert len(drawn.splitlines()) == 3


def test_attention_is_shown_and_saved(folders, tmp_path):
    shown = regard("read", "--model", folders / "lstmn_model", "--show", "-", "the cat sat", check=True).stdout
    assert "[sat]" in shown
    regard("read", "--model", folders / "lstmn_model", "--show", tmp_path / "a.png", "the cat sat", check=True)
    assert (tmp_path / "a.png").stat().st_size > 1000
    written = regard("read", "--model", folders / "lstmn_model", "--json", "the cat sat", check=True).stdout
    result = json.loads(written)
    assert result["trace"]["kind"] == "reading"
    assert len(result["surprisals"]) == 3
    (tmp_path / "a.json").write_text(written)
    assert "[sat]" in regard("view", tmp_path / "a.json", check=True).stdout


def test_mistakes_are_explained(folders):
    assert "PREMISE HYPOTHESIS; got 1" in refused("read", "--model", folders / "deep", "one")
    assert "A line should be premise<TAB>hypothesis; got 'one'" in refused(
        "read", "--model", folders / "deep", input="one\n"
    )
    assert "only for language models" in refused("read", "--model", folders / "tagger", "--generate", "the")
    assert "is for one input; got 2" in refused("read", "--model", folders / "tagger", "a", "b", "--show", "x.png")
