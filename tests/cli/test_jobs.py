"""Files of inputs, for every command that answers them: to the standard output, to a file, and into a folder."""

import gzip
import json

import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import TEXTS


def commands(models):
    """Each command with its model, lines of inputs, and how many lines it writes for each input."""
    images = [models / "red.png", "", models / "blue.png"]
    pairs = ["two dogs\ta house", "", "a dog\tx"]
    return {
        "translate": (["-m", models / "translate", "--max-length", 5], TEXTS[:3], 1),
        "nbest": (["-m", models / "translate", "--max-length", 5, "--nbest", 2], TEXTS[:3], 2),
        "caption": (["-m", models / "caption", "--max-length", 5], images, 1),
        "recognize": (["-m", models / "recognize"], images, 1),
        "classify": (["-m", models / "classify"], ["one two", "", "three"], 1),
        "align": ([models / "translate"], pairs, 1),
        "read": (["-m", models / "pairs"], pairs, 1),
    }


@pytest.mark.parametrize("name", ["translate", "nbest", "caption", "recognize", "classify", "align", "read"])
def test_a_folder_holds_what_the_standard_output_would_say(name, models, tmp_path, one_process):
    options, lines, answers = commands(models)[name]
    verb = "translate" if name == "nbest" else name
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.txt", lines)
    (tmp_path / "in" / "b.txt.gz").write_bytes(gzip.compress(f"{lines[0]}\n".encode()))
    said = regard(verb, *options, "--input", tmp_path / "in" / "a.txt", check=True).stdout
    assert len(said.splitlines()) == answers * len(lines)
    assert said.splitlines()[0]
    done = regard(verb, *options, "--input", tmp_path / "in" / "*", "--output", tmp_path / "out", check=True)
    assert done.stdout == ""
    assert f"Wrote 2 files with {len(lines) + 1} lines to {tmp_path / 'out'}." in done.stderr
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == said
    first = gzip.decompress((tmp_path / "out" / "b.txt.gz").read_bytes()).decode()
    assert first.splitlines() == said.splitlines()[:answers]
    again = regard(verb, *options, "--input", tmp_path / "in" / "*", "--output", tmp_path / "out", check=True)
    assert "complete already: 2" in again.stderr


def test_one_file_with_one_line_is_counted_as_such(models, tmp_path, one_process):
    command = ["translate", "-m", models / "translate", "-i", write_lines(tmp_path / "a.txt", ["one"])]
    done = regard(*command, "--output", f"{tmp_path / 'out'}/", check=True)
    assert f"Wrote 1 file with 1 line to {tmp_path / 'out'}/." in done.stderr


@pytest.mark.parametrize("name", ["translate", "caption", "recognize", "classify", "read"])
def test_json_keeps_the_lines_in_order(name, models, tmp_path, one_process):
    options, lines, _ = commands(models)[name]
    write_lines(tmp_path / "a.txt", lines)
    files = ["--input", tmp_path / "a.txt", "--json"]
    said = regard(name, *options, *files, check=True).stdout
    results = [json.loads(line) for line in said.splitlines()]
    assert [result is None for result in results] == [not line for line in lines]
    regard(name, *options, *files, "--output", f"{tmp_path / 'out'}/", check=True)
    assert (tmp_path / "out" / "a.jsonl").read_text(encoding="utf-8") == said


def test_processes_share_the_work_and_a_rerun_continues(models, tmp_path):
    texts = [f"{text} {number}" for number in range(360) for text in TEXTS[:3]]
    path = write_lines(tmp_path / "long.txt", texts)
    options = ["-m", models / "translate", "--max-length", 4, "--beam", 1, "--input", path]
    said = regard("translate", *options, check=True).stdout
    folder = ["--output", tmp_path / "out/", "--workers", 2]
    (tmp_path / "out").mkdir()
    regard("translate", *options, *folder, check=True)
    assert (tmp_path / "out" / "long.txt").read_text(encoding="utf-8") == said
    message = refused("translate", *options, *folder, "--min-length", 2)
    assert "other settings: min_length 0 -> 2. Choose another folder" in message


def test_what_cannot_be_answered_ends_the_job_or_is_left_empty(models, tmp_path, one_process):
    (tmp_path / "broken.png").write_bytes(b"no image")
    lines = [models / "red.png", tmp_path / "broken.png", models / "blue.png"]
    options = ["-m", models / "recognize", "--input", write_lines(tmp_path / "list.txt", lines)]
    assert "list.txt, lines 1 to 3" in refused("recognize", *options, "--output", f"{tmp_path / 'out'}/")
    done = regard("recognize", *options, "--output", f"{tmp_path / 'out'}/", "--skip-errors", check=True)
    assert "left out: list.txt, line 2" in done.stderr
    assert "Inputs left out: 1." in done.stderr
    assert [bool(line) for line in (tmp_path / "out" / "list.txt").read_text().splitlines()] == [True, False, True]
    done = regard("recognize", *options, "--output", f"{tmp_path / 'json'}/", "--skip-errors", "--json", check=True)
    errors = [json.loads(line).get("error") for line in (tmp_path / "json" / "list.jsonl").read_text().splitlines()]
    assert [bool(error) for error in errors] == [False, True, False]


def test_mistakes_are_explained(models, tmp_path):
    path = write_lines(tmp_path / "a.txt", TEXTS[:1])
    model = ["translate", "-m", models / "translate"]
    for arguments, says in (
        (["a", "--output", f"{tmp_path}/"], "is a folder: name the files to read with --input"),
        (["--input", path, "--workers", 2], "are for an output folder, such as --output out/"),
        (["--input", path, "--workers", -1], "workers must be a whole number, 0 or more; got -1"),
        (["--input", path, "--output", f"{tmp_path}/", "--engine", "spark"], "spark"),
        (["--input", path, "--output", f"{tmp_path}/"], "is both an input and an output"),
        (
            ["--input", path, "--output", f"{tmp_path}/out/", "--show", "x.png"],
            "is not for an output folder",
        ),
    ):
        message = refused(*model, *arguments)
        assert says in message, message
    no_model = refused("translate", "-m", "no", "--input", path, "--output", f"{tmp_path}/out/")
    assert "no shipped model named 'no'" in no_model
