"""Packages that come with an extra: the table agrees with pyproject.toml, and a missing one is named with its extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers import only

import regard
from regard import demo
from regard.cli.serve import serve
from regard.errors import OptionError
from regard.extras import EXTRAS, require

TRACE = regard.Trace.from_weights(["a"], ["b"], [[1.0]])
PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


IMPORTED = {"markdown_it_py": "markdown_it"}
"""Packages that are imported under another name."""


def names(requirements):
    found = {re.split(r"[\[<>=; ]", each)[0].replace("-", "_") for each in requirements} - {"regard"}
    return {IMPORTED.get(name, name) for name in found}


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_table_of_extras_is_that_of_the_project(extra):
    assert names(PROJECT["optional-dependencies"][extra]) == set(EXTRAS[extra])
    assert not names(PROJECT["dependencies"]) & set(EXTRAS[extra])


def test_all_extras_but_those_of_other_services_are_in_all():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"[a-z]+", everything)[1:]) == set(EXTRAS) - {
        "ray",
        "timm",
        "wandb",
        "mlflow",
    }


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    says = r"^This network needs the package timm: pip install 'regard\[timm\]'. Or name another.$"
    with pytest.raises(OptionError, match=says):
        require("This network", "timm", instead="Or name another.")


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("sacrebleu", "train", lambda path: regard.train("babel-en-fr", out=path)),
        ("sacrebleu", "train", lambda path: regard.evaluate("en-fr")),
        ("matplotlib", "figures", lambda path: regard.view(TRACE).save(path / "a.png")),
        ("matplotlib", "figures", demo.run),
        ("sacrebleu", "train", demo.run),
        ("fastapi", "serve", lambda path: serve()),
    ],
)
def test_what_needs_a_missing_package_names_its_extra(package, extra, call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=rf"needs the package {package}: pip install 'regard\[{extra}\]'"):
        call(tmp_path)


ALONE = {
    "": """
import torch, regard
from regard.cli import main
regard.attend(torch.randn(2, 3, 5), torch.randn(2, 7, 5))
from PIL import Image
Image.new("L", (28, 28), 200).save("a.png")
for words in ("--help", "models", "translate hello --show -", "classify good", "read hello --json", "tape 01100110",
              "glimpse a.png", "recognize a.png", "caption -m scenes a.png --show a.html"):
    try:
        main(words.split())
    except SystemExit as ended:
        assert not ended.code, words
""",
    "figures": "import regard; regard.view(regard.load('en-fr').translate('hello')).save('a.pdf')",
    "train": """
import regard
data = {"world": "babel:en-fr", "examples": 30, "held_out": 3}
sizes = {"embedding": 4, "hidden": 4}
trained = regard.train(data=data, model=sizes, train={"epochs": 1}, progress=False)
open("a", "w").write("hello\\n")
regard.evaluate(trained.folder, source="a", reference="a", max_length=3)
""",
    "serve": "from regard.serving import create_app; create_app().openapi()",
    "efficientnet": "import regard; regard.load('photo-en')",
}


@pytest.mark.parametrize("extra", ALONE, ids=lambda extra: extra or "none")
def test_what_an_extra_promises_needs_no_other(extra, tmp_path):
    command = [sys.executable, Path(only.__file__), extra, ALONE[extra]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_package_that_is_there_is_returned():
    assert require("Training", "sacrebleu").__name__ == "sacrebleu"
