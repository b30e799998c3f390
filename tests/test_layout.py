"""A folder imports only what stands above it, so that the package can be read from the top."""

import ast
from pathlib import Path

import pytest

import regard

ROOT = Path(regard.__file__).parent
ORDER = [
    "errors", "work", "files", "bounds", "config", "arguments", "extras", "parts", "trace", "kernels", "attention",
    "layers", "encoders", "decoders", "search", "runtime",
    "metrics", "data", "graphs", "worlds", "viewing", "training", "jobs", "systems", "site", "serving", "bench", "demo",
    "lessons", "cli",
    "__main__",
]  # fmt: skip
COMMANDS = "extra_commands.py"
"""The file of a system with commands of its own, which stands where all commands stand."""
FILES = sorted(ROOT.rglob("*.py"))


def imports_of(source: str) -> set[str]:
    """The parts of regard that a file imports, wherever in it; none for regard's own public names."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.add("a relative import")
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name.split(".")[1] for name in found if name.startswith("regard.") and name.count(".") >= 1} | {
        name for name in found if name == "a relative import"
    }


def offences(place: str, source: str) -> set[str]:
    above = ORDER[: ORDER.index(place) + 1]
    return {name for name in imports_of(source) if name not in above and name != "__version__"}


@pytest.mark.parametrize(
    "file", [file for file in FILES if file != ROOT / "__init__.py"], ids=lambda f: str(f.relative_to(ROOT))
)
def test_a_folder_imports_only_what_stands_above_it(file):
    place = "cli" if file.name == COMMANDS else file.relative_to(ROOT).parts[0].removesuffix(".py")
    assert place in ORDER, f"{file.name}: say in ORDER where {place!r} stands"
    wrong = offences(place, file.read_text())
    assert not wrong, f"{file.relative_to(ROOT)} imports {sorted(wrong)}, which do not stand above {place!r}"


def test_an_offender_is_found():
    assert offences("kernels", "from regard.attention.mask import causal") == {"attention"}
    assert offences("attention", "def f():\n    import regard.viewing.matrix") == {"viewing"}
    assert offences("attention", "from . import mask") == {"a relative import"}
    assert offences("viewing", "from regard.trace import Trace\nfrom regard import __version__") == set()


@pytest.mark.parametrize("place", ["viewing", "training"])
def test_viewing_and_training_know_no_system(place):
    assert "systems" in offences(place, "from regard.systems.system import System")
    assert not [file for file in (ROOT / place).rglob("*.py") if "systems" in imports_of(file.read_text())]


def test_a_system_knows_no_other_system():
    families = [folder for folder in (ROOT / "systems").iterdir() if (folder / "__init__.py").is_file()]
    assert len(families) >= 3
    for folder in families:
        for file in folder.rglob("*.py"):
            others = [f"regard.systems.{other.name}" for other in families if other != folder]
            assert not [other for other in others if other in file.read_text()], file


def test_each_system_has_the_same_files():
    for folder in (ROOT / "systems").iterdir():
        if (folder / "__init__.py").is_file():
            names = {file.stem for file in folder.glob("*.py")}
            assert {"config", "model", "data", "training", "evaluation", "inspection"} <= names, folder.name


def test_rooms_have_names():
    nameless = {"utils", "util", "common", "helpers", "helper", "base", "misc"}
    assert not [file for file in FILES if nameless & set(file.relative_to(ROOT).with_suffix("").parts)]


@pytest.mark.parametrize("file", [file for file in FILES if "kernels" not in file.parts], ids=lambda f: f.name)
def test_a_file_is_read_in_one_sitting(file):
    assert len(file.read_text().splitlines()) <= 600
