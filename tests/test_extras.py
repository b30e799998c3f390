"""Packages that come with an extra: the table agrees with pyproject.toml, and a missing one is named with its extra."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import regard
from regard import demo
from regard.cli.serve import serve
from regard.errors import OptionError
from regard.extras import EXTRAS, require

TRACE = regard.Trace.from_weights(["a"], ["b"], [[1.0]])
PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements):
    return {re.split(r"[\[<>=; ]", each)[0].replace("-", "_") for each in requirements} - {"regard"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_table_of_extras_is_that_of_the_project(extra):
    assert names(PROJECT["optional-dependencies"][extra]) == set(EXTRAS[extra])
    assert not names(PROJECT["dependencies"]) & set(EXTRAS[extra])


def test_all_extras_but_those_of_other_services_are_in_all():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"[a-z]+", everything)[1:]) == set(EXTRAS) - {"ray", "timm", "wandb", "mlflow"}


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


def test_a_package_that_is_there_is_returned():
    assert require("Training", "sacrebleu").__name__ == "sacrebleu"
