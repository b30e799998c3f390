"""The two distributions ask for the same versions of the packages that both need."""

import re
import tomllib
from pathlib import Path

import regard

ROOT = Path(__file__).parents[1]


def requirements(path):
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *project.get("optional-dependencies", {}).get("onnx", ())]
    return dict(re.fullmatch(r"([\w-]+)(.*)", each).groups() for each in listed)


def test_the_runtime_asks_for_the_same_versions_and_not_for_torch():
    whole, runtime = requirements(ROOT / "pyproject.toml"), requirements(ROOT / "packaging/runtime.toml")
    assert runtime.items() <= whole.items()
    assert set(whole) - set(runtime) == {"torch", "safetensors", "onnx"}


def test_both_have_the_version_of_the_package_and_the_command():
    for path in ("pyproject.toml", "packaging/runtime.toml"):
        content = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))
        assert content["project"]["scripts"] == {"regard": "regard.cli:main"}
        version = (ROOT / content["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
        assert f'__version__ = "{regard.__version__}"' in version
