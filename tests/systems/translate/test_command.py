"""regard translate and regard align: texts, files and pipes; scores, JSON, figures, and errors."""

import json

import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import TEXTS, TRANSFORMER, small_translator

TWO = ["A dog is running.", "Good night."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small models: one with attention, one without, a Transformer, and one of somebody's own code."""
    folder = tmp_path_factory.mktemp("models")
    small_translator().save(folder / "model")
    small_translator(architecture="plain").save(folder / "plain")
    small_translator(**TRANSFORMER).save(folder / "transformer")
    small_translator().save(folder / "own")
    config = folder / "own" / "config.json"
    config.write_text(config.read_text().replace('"score": "additive"', '"score": "regard.attention.score:MLP"'))
    return folder


def test_a_pipe_a_file_and_arguments_translate_the_same(tmp_path):
    piped = regard("translate", input="\n".join(TWO) + "\n", check=True).stdout
    assert piped == regard("translate", *TWO, check=True).stdout
    assert piped == regard("translate", "--input", write_lines(tmp_path / "t.txt", TWO), check=True).stdout
    assert piped.splitlines()[0] == "Un chien court."
    out = tmp_path / "new" / "out.txt"
    done = regard("translate", "-i", tmp_path / "t.txt", "--output", out, check=True)
    assert done.stdout == ""
    assert out.read_text(encoding="utf-8") == piped


def test_a_file_has_a_progress_bar_on_a_terminal(folder, tmp_path, monkeypatch):
    command = ["translate", "-m", folder / "model", "--max-length", 3, "-o", tmp_path / "out.txt"]
    command += ["-i", write_lines(tmp_path / "t.txt", TEXTS[:2])]
    assert regard(*command, check=True).stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if stderr were a terminal
    done = regard(*command, check=True)
    assert "Translating" in done.stderr
    assert "2 lines" in done.stderr
    assert done.stdout == ""


def test_nbest_prints_scores(folder):
    lines = regard("translate", "Good night.", "--nbest", 3, check=True).stdout.splitlines()
    scores = [float(line.split("\t")[0]) for line in lines]
    assert len(lines) == 3
    assert scores == sorted(scores, reverse=True)
    sampled = ["translate", "-m", folder / "model", "a dog", "--sample", "--nbest", 4, "--seed", 3, "--max-length", 6]
    first, again = (regard(*sampled, check=True).stdout for _ in range(2))
    assert first == again
    assert len(first.splitlines()) == 4


def test_json_carries_score_alternatives_and_attention(folder):
    done = regard("translate", "-m", folder / "model", "--nbest", 2, "--json", *TEXTS[:2], check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["source"] for line in lines] == TEXTS[:2]
    for line in lines:
        assert line["score"] >= line["alternatives"][0]["score"]
        for result in (line, *line["alternatives"]):
            axes = {axis["name"]: axis["labels"] for axis in result["trace"]["axes"]}
            assert len(result["trace"]["maps"][0]["weights"]) == len(axes["target"])
    plain = json.loads(regard("translate", "-m", folder / "plain", "--json", "a", check=True).stdout)
    assert plain["trace"] is None
    every = regard("translate", "-m", folder / "transformer", "--json", "--traces", "all", "a dog", check=True).stdout
    assert len(json.loads(every)["trace"]["maps"]) == 1 + 3 * 2 * 2


def test_the_json_output_can_be_viewed(folder, tmp_path):
    options = ["--traces", "all", "--max-length", 5]
    lines = regard("translate", "-m", folder / "transformer", "--json", *options, *TEXTS[:2], check=True).stdout
    (tmp_path / "t.json").write_text(lines, encoding="utf-8")
    assert "dog" in regard("view", tmp_path / "t.json", check=True).stdout
    assert "two" in regard("view", tmp_path / "t.json", "--line", 2, check=True).stdout
    regard("view", tmp_path / "t.json", "--layer", 2, "--head", 1, "-o", tmp_path / "t.png", check=True)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert "--line must be from 1 to 2" in refused("view", tmp_path / "t.json", "--line", 3)
    assert "no map with layer=9" in refused("view", tmp_path / "t.json", "--layer", 9)


@pytest.mark.parametrize(("name", "begins"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml"), ("x.pdf", b"%PDF")])
def test_show_saves_a_figure(folder, tmp_path, name, begins):
    done = regard("translate", "-m", folder / "model", "a dog .", "--show", tmp_path / name, check=True)
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert len(done.stdout.splitlines()) == 1, "the translation alone"
    assert f"Wrote {tmp_path / name}" in done.stderr


def test_show_draws_in_the_terminal(folder):
    for show in (["--show", "-"], ["--show=-"]):
        done = regard("translate", "-m", folder / "model", "a dog .", "--max-length", 4, *show, check=True)
        lines = done.stdout.splitlines()
        assert len(lines) > 3
        assert max(map(len, lines)) <= 80


def test_what_is_wrong_is_explained(folder, tmp_path):
    model = ["translate", "-m", folder / "model"]
    for arguments, says in (
        (["a", "--beam", 0], "beam"),
        (["a", "--beam", 0], "from 1 to 1000; got 0"),
        (["a", "--beam", "many"], "beam"),
        (["a", "--nbest", 9], "nbest must not exceed beam, 5"),
        (["a", "--temperature", "nan", "--sample"], "temperature"),
        (["a", "--traces", "every"], "traces"),
        (["a", "--bem", 3], "--bem"),
        (["a", "--show", tmp_path / "x.bmp"], ".png, .svg, .pdf"),
        (["a", "b", "--show", tmp_path / "x.png"], "is for one input; got 2"),
        (["a", "-i", tmp_path / "f"], "Give the inputs themselves, or files of inputs with --input, not both"),
        (["-i", tmp_path / "no.txt"], "no.txt"),
        (["a", "--device", "gpu"], "device must be such as 'cpu'"),
    ):
        message = refused(*model, *arguments)
        assert says in message, message
    assert "has no attention to show" in refused("translate", "-m", folder / "plain", "a", "--show", "-")
    assert not (tmp_path / "x.png").exists()


def test_somebodys_own_code_runs_only_with_trust(folder):
    assert "loading it runs that code" in refused("translate", "-m", folder / "own", "a")
    done = regard("translate", "-m", folder / "own", "a", "--trust")
    assert done.returncode == 2, "the parameters are of another score"
    assert "do not fit its config" in done.stderr


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
    assert f"Wrote {page} (pair 2 of 3)\n" in done.stderr
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
    assert f"Wrote {tmp_path / 'two.html'} (pair 1 of 2)\n" in done.stderr
    assert measured in (tmp_path / "two.html").read_text(encoding="utf-8")


def test_gold_links_give_an_alignment_error(folder, tmp_path):
    gold = [{"src": ["two", "dogs"], "tgt": ["a", "house"], "sure": [[0, 0], [1, 1]], "possible": []}]
    path = write_lines(tmp_path / "gold.jsonl", map(json.dumps, gold))
    model = folder / "model"
    assert regard("align", model, "--gold", path, "--reverse", model, check=True).stdout.startswith("AER ")
    assert "AER" in regard("evaluate", model, "--gold", path, check=True).stdout
