"""Files that describe the project to others agree with the code."""

import re
import tomllib
from pathlib import Path

import regard

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version_and_licence():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"version: {regard.__version__}\n" in citation
    assert f"license: {project['license']}\n" in citation


def test_the_workflow_runs_what_decides_over_a_change_on_every_supported_version():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "bash .ci/run" in workflow
    versions = re.findall(r'"(3\.\d+)"', workflow)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f">={versions[0]}" == project["requires-python"]
    assert {f"Programming Language :: Python :: {version}" for version in versions} <= set(project["classifiers"])
