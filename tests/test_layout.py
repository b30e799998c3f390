"""A folder imports only what stands above it, so that the package can be read from the top."""

import ast
from pathlib import Path

import pytest

import regard

ROOT = Path(regard.__file__).parent
ORDER = [
    "errors", "trace", "kernels", "attention", "layers", "encoders", "decoders", "search", "metrics", "data", "worlds",
    "systems", "training", "viewing", "serving", "bench", "demo", "cli", "__main__",
]  # fmt: skip
FILES = sorted(ROOT.rglob("*.py"))


def imports_of(source: str) -> set[str]:
    """The parts of regard that a file imports, wherever in it; None of them for regard's own public names."""
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


@pytest.mark.parametrize("file", [file for file in FILES if file != ROOT / "__init__.py"], ids=lambda f: f.name)
def test_a_folder_imports_only_what_stands_above_it(file):
    place = file.relative_to(ROOT).parts[0].removesuffix(".py")
    assert place in ORDER, f"{file.name}: say in ORDER where {place!r} stands"
    wrong = offences(place, file.read_text())
    assert not wrong, f"{file.relative_to(ROOT)} imports {sorted(wrong)}, which do not stand above {place!r}"


def test_an_offender_is_found():
    assert offences("kernels", "from regard.attention.mask import causal") == {"attention"}
    assert offences("attention", "def f():\n    import regard.viewing.terminal") == {"viewing"}
    assert offences("attention", "from . import mask") == {"a relative import"}
    assert offences("viewing", "from regard.trace import Trace\nfrom regard import __version__") == set()


def test_rooms_have_names():
    nameless = {"utils", "util", "common", "helpers", "helper", "base", "registry", "misc"}
    assert not [file for file in FILES if nameless & set(file.relative_to(ROOT).with_suffix("").parts)]
