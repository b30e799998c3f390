"""regard classify: texts, files and pipes in, labels with their sentences out."""

import json
import subprocess
import sys

import pytest
from helpers.command_line import refused, regard
from helpers.models import small_document_classifier

TEXT = "The film was fine. I loved it!"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents") / "model"
    small_document_classifier().save(folder)
    return folder


def test_a_text_is_classified_with_what_carried_it(model):
    first, others, *carriers = regard("classify", "--model", model, TEXT, check=True).stdout.splitlines()
    result = small_document_classifier().classify(TEXT)
    (other,) = [label for label in result.probabilities if label != result.label]
    assert first == f"{result.label} {result.probability:.3f}"
    assert others == f"  other classes: {other} {result.probabilities[other]:.3f}"
    assert len(carriers) == 2
    strongest = max(result.sentences, key=lambda each: each.weight)
    assert strongest.text in carriers[0]


def test_files_lines_and_pipes(model, tmp_path):
    (tmp_path / "a.txt").write_text(f"{TEXT}\n\nMore of it.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("one\n", encoding="utf-8")
    said = regard("classify", "-m", model, "--file", tmp_path / "a.txt", tmp_path / "b.txt", check=True).stdout
    assert len(said.splitlines()) == 2
    said = regard("classify", "-m", model, "--input", tmp_path / "a.txt", check=True).stdout
    first, blank, last = said.splitlines()
    assert first == regard("classify", "-m", model, TEXT, check=True).stdout.splitlines()[0]
    assert blank == ""
    assert last
    assert said == regard("classify", "-m", model, "--lines", input=f"{TEXT}\n\nMore of it.\n", check=True).stdout
    piped = regard("classify", "-m", model, input=TEXT, check=True).stdout
    assert piped == regard("classify", "-m", model, TEXT, check=True).stdout


def test_json_and_views(model, tmp_path):
    (line,) = regard("classify", "-m", model, TEXT, "--json", check=True).stdout.splitlines()
    result = json.loads(line)
    assert set(result) >= {"label", "probability", "probabilities", "sentences", "trace"}
    assert result["trace"]["kind"] == "document"
    shown = regard("classify", "-m", model, TEXT, "--show", "-", check=True).stdout
    assert "▓" in shown
    assert shown.count(f"{result['label']} {result['probability']:.3f}") == 1
    regard("classify", "-m", model, TEXT, "--show", tmp_path / "a.html", check=True)
    assert ">loved<" in (tmp_path / "a.html").read_text()
    regard("classify", "-m", model, TEXT, "--show", tmp_path / "a.svg", "--raw", check=True)
    assert "loved" in (tmp_path / "a.svg").read_text()
    regard("classify", "-m", model, TEXT, "--json", "--traces", "none", "-o", tmp_path / "a.json", check=True)
    assert json.loads((tmp_path / "a.json").read_text())["trace"] is None


def test_lines_are_classified_as_they_arrive(model):
    """An endless pipe gives results before its end."""
    command = [sys.executable, "-m", "regard", "classify", "-m", str(model), "--lines", "--json", "--traces", "none"]
    lines = "".join(f"{TEXT} {number}\n" for number in range(600))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        running.stdin.write(lines)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["label"]
        running.kill()


def test_mistakes_are_explained(model, tmp_path):
    assert "needs at least one word" in refused("classify", "-m", model, " ")
    assert "not both" in refused("classify", "-m", model, TEXT, "--file", tmp_path / "a.txt")
    assert "There is no file" in refused("classify", "-m", model, "--file", tmp_path / "a.txt")
    assert "--show needs the weights" in refused("classify", "-m", model, TEXT, "--show", "-", "--traces", "none")
    assert "is for one document" in refused("classify", "-m", model, "--lines", "--show", tmp_path / "a.png")
    assert "is for one input; got 2" in refused("classify", "-m", model, TEXT, "x", "--show", tmp_path / "a.png")


def test_evaluation_prints_the_faithfulness_with_a_sentence(model):
    said = regard(
        "evaluate", model, "--world", "reviews", "--count", 5, "--faithfulness", 2, "--shuffles", 3, check=True
    )
    for part in ("accuracy", "decisive sentence", "comprehensiveness", "By class", "random"):
        assert part in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= 80
