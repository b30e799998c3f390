"""regard align: words linked line by line, drawn, saved and measured."""

import json

import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import small_translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small models: one with attention, one without."""
    folder = tmp_path_factory.mktemp("models")
    small_translator().save(folder / "model")
    small_translator(architecture="plain").save(folder / "plain")
    return folder


def test_words_are_linked_line_by_line(folder, tmp_path):
    files = [
        write_lines(tmp_path / name, lines) for name, lines in (("a", ["two dogs", "", "two"]), ("b", ["x y", "", "z"]))
    ]
    lines = regard("align", folder / "model", *files, check=True).stdout.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    assert {link.split("-")[1] for link in lines[0].split()} == {"0", "1"}, "each target word has a link"
    assert lines[2] == "0-0"
    out = tmp_path / "links.jsonl"
    assert regard("align", folder / "model", *files, "--json", "-o", out, check=True).stdout == ""
    assert [json.loads(line)["source"] for line in out.read_text().splitlines()] == [["two", "dogs"], [], ["two"]]
    assert "SOURCE and TARGET" in refused("align", folder / "model")
    assert "no attention to align words with" in refused("align", folder / "plain", *files)


def test_the_attention_between_aligned_words_is_shown(folder, tmp_path):
    files = [
        write_lines(tmp_path / name, lines) for name, lines in (("a", ["", "two dogs", "two"]), ("b", ["", "x y", "z"]))
    ]
    drawn = regard("align", folder / "model", *files, "--show", "-", check=True).stdout
    assert all(word in drawn for word in ("dogs", "y", "z"))
    page = tmp_path / "first.html"
    done = regard("align", folder / "model", *files, "--show", page, check=True)
    assert done.stdout == regard("align", folder / "model", *files, check=True).stdout
    assert done.stderr == f"Wrote {page}\nIt shows pair 2 of 3.\n"
    assert "<title>two dogs → x y</title>" in page.read_text(encoding="utf-8")
    blank = write_lines(tmp_path / "blank", ["", "", ""])
    none = regard("align", folder / "model", files[0], blank, "--show", tmp_path / "none.html", check=True)
    assert "No pair has links: " in none.stderr
    assert not (tmp_path / "none.html").exists()


def test_how_right_an_alignment_is_stands_once_below_all_pairs(tmp_path):
    model, measured = small_translator(), "Error rate 0.1 on 7 sentences."
    model.metrics = {"attention_measured": measured}
    model.save(tmp_path / "model")
    files = [write_lines(tmp_path / name, lines) for name, lines in (("a", ["two dogs", "two"]), ("b", ["x y", "z"]))]
    drawn = regard("align", tmp_path / "model", *files, "--show", "-", check=True).stdout
    assert drawn.count(measured) == 1
    assert drawn.rstrip().endswith(measured)
    done = regard("align", tmp_path / "model", *files, "--show", tmp_path / "two.html", check=True)
    assert done.stderr == f"Wrote {tmp_path / 'two.html'}\nIt shows pair 1 of 2.\n"
    assert measured in (tmp_path / "two.html").read_text(encoding="utf-8")


def test_gold_links_give_an_alignment_error(folder, tmp_path):
    gold = [{"src": ["two", "dogs"], "tgt": ["a", "house"], "sure": [[0, 0], [1, 1]], "possible": []}]
    path = write_lines(tmp_path / "gold.jsonl", map(json.dumps, gold))
    model = folder / "model"
    assert regard("align", model, "--gold", path, "--reverse", model, check=True).stdout.startswith("AER ")
    assert "AER" in regard("evaluate", model, "--gold", path, check=True).stdout
