"""The companions of the lectures run from top to bottom, and their exercises can be solved."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.lessons import check, curves, pictures

FOLDER = Path(__file__).parent.parent / "docs/lectures"
COMPANIONS = sorted(path for path in FOLDER.glob("*.md") if "file_format: mystnb" in path.read_text(encoding="utf-8"))
CELL = r"^```\{code-cell\} python\n(?P<tags>:tags: [^\n]*\n)?(?P<cell>.*?)^```"
SOLUTION = r"^<details><summary>Solution</summary>(?P<solution>.*?)^</details>"
PART = re.compile(f"{CELL}|{SOLUTION}", flags=re.DOTALL | re.MULTILINE)


def is_open(value: ast.expr | None) -> bool:
    """Whether an expression stands for an answer that is still missing: `...`, None, or several of them."""
    if isinstance(value, ast.Tuple):
        return all(map(is_open, value.elts))
    return isinstance(value, ast.Constant) and value.value in (..., None)


def checks_of(cell: str) -> ast.Module:
    """A cell of an exercise without the variables and functions that the reader is to fill in."""
    tree = ast.parse(cell)
    answers = [
        line
        for line in tree.body
        if (isinstance(line, ast.Assign) and is_open(line.value))
        or (
            isinstance(line, ast.FunctionDef) and isinstance(line.body[-1], ast.Return) and is_open(line.body[-1].value)
        )
    ]
    assert answers, f"There is nothing to answer in {cell!r}"
    tree.body = [line for line in tree.body if line not in answers]
    return tree


@pytest.mark.parametrize("page", COMPANIONS, ids=lambda page: page.stem)
def test_a_companion_runs_and_its_exercises_can_be_solved(page, as_a_user, tmp_path, monkeypatch, capsys):
    """In its small form: trainings are shorter than for readers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_SMALL", "1")
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests of this process keep theirs
    text, names = page.read_text(encoding="utf-8"), {"__name__": page.stem}
    exercise, solved = "", 0
    for part in PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        place = f"{page.name}:{line}"
        if cell := part["cell"]:
            assert not exercise, f"{place}: the exercise before has no solution"
            exec(compile(cell, place, "exec"), names)  # noqa: S102
            if "exercise" in (part["tags"] or ""):
                exercise = cell
                assert "Not answered yet." in capsys.readouterr().out, place
        else:
            assert exercise, f"{place}: a solution without an exercise"
            for code in re.findall(r"^```python\n(.*?)^```", part["solution"], flags=re.DOTALL | re.MULTILINE):
                exec(compile(code, place, "exec"), names)  # noqa: S102
            capsys.readouterr()
            exec(compile(checks_of(exercise), place, "exec"), names)  # noqa: S102
            said = capsys.readouterr().out
            assert "Right." in said, f"{place}: {said}"
            assert "Not yet" not in said, f"{place}: {said}"
            exercise, solved = "", solved + 1
    assert 5 <= solved <= 9


def test_an_answer_is_right_wrong_or_missing(capsys):
    def said(*args, **options):
        check(*args, **options)
        return capsys.readouterr().out.strip()

    assert said(..., 1, "Hint.") == said(None, 1, "Hint.") == "Not answered yet."
    assert said([1, ...], [1, 2], "Hint.") == "Not answered yet."
    assert said(2, 1, "Hint.") == "Not yet: Hint."
    assert said(1 / 3, torch.tensor(0.33333), "Hint.") == "Right."
    assert said(0.34, 1 / 3, "Hint.") == "Not yet: Hint."
    assert said(0.34, 1 / 3, "Hint.", within=0.05) == "Right."
    assert said(" Marin ", "marin", "Hint.") == "Right."
    assert said("it", 3, "Hint.") == "Not yet: this is of type str. Hint."
    assert said([1, 2], np.ones(3), "Hint.") == "Not yet: the shape is (2,), and should be (3,). Hint."
    assert said(torch.ones(2, requires_grad=True), [1, 1], "Hint.") == "Right."
    assert said(4, lambda answer: answer % 2 == 0, "Hint.") == "Right."
    assert said(5, lambda answer: answer % 2 == 0, "Hint.") == "Not yet: Hint."


def test_the_figures_of_the_companions_are_drawn():
    figure = curves({"plain": [1, 2, 4], "attending": torch.ones(3)}, x="words", y="BLEU", start=10, step=10)
    assert [line.get_xdata().tolist() for line in figure.axes[0].lines] == [[10, 20, 30]] * 2
    assert figure._repr_png_().startswith(b"\x89PNG")
    drawn = pictures({"first": torch.ones(3, 3), "second": np.zeros((2, 2)), "third": np.zeros((2, 2, 3))}, columns=2)
    assert [axes.get_title() for axes in drawn.axes] == ["first", "second", "third", ""]
