"""The package as a whole: its public names, what importing it costs, and its command line."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import command_line

import regard


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_every_public_name_is_there():
    assert sorted(regard.__all__) == regard.__all__
    assert dir(regard) == regard.__all__
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'atend'"):
        regard.atend  # noqa: B018


def test_type_checkers_see_the_modules_of_the_public_names():
    block = next(part for part in ast.parse(Path(regard.__file__).read_text()).body if isinstance(part, ast.If))
    seen = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for name in line.names:
            assert name.asname == name.name, "an import `x as x` is public for type checkers"
            is_module = (
                find_spec(f"{line.module}.{name.name}") if hasattr(import_module(line.module), "__path__") else None
            )
            seen[name.name] = f"{line.module}.{name.name}" if is_module else line.module
    assert seen == regard._MODULES


@pytest.mark.parametrize("module", [regard.align, regard.mask, regard.score], ids=lambda module: module.__name__)
def test_a_public_module_completes_to_its_own_names(module):
    assert dir(module) == sorted(module.__all__)
    assert not {"nn", "math", "torch"} & set(dir(module))


def test_importing_regard_imports_nothing_heavy():
    heavy = "{'torch', 'numpy', 'matplotlib', 'rich', 'cyclopts', 'jaxtyping', 'msgspec', 'lightning_fabric'}"
    assert python(f"import sys, regard; print({heavy} & set(sys.modules))").strip() == "set()"


def test_modules_that_are_public_names_need_no_import_of_their_own():
    code = "import regard; print(regard.viewing.save.__name__, regard.errors.ShapeError.__name__)"
    assert python(code) == "save ShapeError\n"


def test_a_recipe_of_any_system_is_checked_without_torch():
    code = "import sys, importlib\nfrom regard.systems.registry import MODULES\nfor name in MODULES:\n    "
    code += "importlib.import_module(f'regard.systems.{name}.config')\nprint('torch' in sys.modules)"
    assert python(code).strip() == "False"


def test_loading_a_model_imports_no_training():
    code = "import sys, regard; regard.load('digits', device='cpu')\n"
    code += "print({'lightning_fabric', 'matplotlib'} & set(sys.modules))"
    assert python(code) == "set()\n"


def test_help_and_version_answer_without_torch():
    for flag in ("--help", "--version"):
        code = f"from regard.cli import main; main(['{flag}'])"
        assert python(f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules))\n{code}").endswith(
            "False\n"
        )
    for module in ("regard", "regard.cli"):
        command = [sys.executable, "-m", module, "--version"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert said.strip() == regard.__version__
    assert "demo" in command_line.regard("--help", check=True).stdout


def test_every_command_explains_itself():
    said = command_line.regard("--help", check=True).stdout
    for name in (
        "translate",
        "align",
        "caption",
        "gallery",
        "layers",
        "recognize",
        "train",
        "evaluate",
        "view",
        "models",
        "data",
    ):
        assert name in said
        shown = command_line.regard(name, "--help", check=True).stdout
        assert f"regard {name}" in shown
        assert "Parameters\n" not in shown, "docstrings are parsed"
        assert max(map(len, shown.splitlines())) <= 80


def test_a_wrong_command_ends_with_an_error_not_a_traceback():
    done = command_line.regard("dmeo")
    assert done.returncode == 2
    assert "demo" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_demo_writes_its_figures(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.demo.translation.TEST_SENTENCES", 20)
    done = command_line.regard("demo", "--out", tmp_path / "new" / "figures", check=True)
    assert "What 'it' attends to with each score" in done.stdout
    assert "alignment error rate" in done.stdout
    assert "Captioning images" in done.stdout
    for name in ("additive.png", "scores.png", "babel.png", "en-fr.png", "en-fr-lines.png"):
        assert (tmp_path / "new" / "figures" / name).read_bytes().startswith(b"\x89PNG")
    trace = regard.Trace.from_json((tmp_path / "new" / "figures" / "additive.json").read_text())
    assert trace.source[1] == "animal"


def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in command_line.refused("demo", "--out", tmp_path / "file" / "figures")
