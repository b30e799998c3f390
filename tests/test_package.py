"""The package as a whole: its public names, what importing it costs, and its command line."""

import subprocess
import sys

import pytest

import regard


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def command(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "regard.cli", *arguments], capture_output=True, text=True, **options)


def test_every_public_name_is_there():
    assert sorted(regard.__all__) == regard.__all__
    assert dir(regard) == regard.__all__
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'atend'"):
        regard.atend  # noqa: B018


def test_importing_regard_imports_nothing_heavy():
    heavy = "{'torch', 'numpy', 'matplotlib', 'rich', 'cyclopts', 'jaxtyping'}"
    assert python(f"import sys, regard; print({heavy} & set(sys.modules))").strip() == "set()"


def test_help_and_version_answer_without_torch():
    for flag in ("--help", "--version"):
        code = f"import sys; sys.argv = ['regard', '{flag}']; from regard.cli import app; app(exit_on_error=False)"
        assert python(f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules))\n{code}").endswith(
            "False\n"
        )
    assert command("--version").stdout.strip() == regard.__version__
    assert "demo" in command("--help").stdout


def test_modules_that_are_public_names_are_reached_without_an_import():
    code = "import regard; print(regard.viewing.heat_map.__name__, regard.score.dot, regard.errors.ShapeError.__name__)"
    assert python(code).startswith("heat_map ")


def test_a_wrong_command_ends_with_an_error_not_a_traceback():
    result = command("dmeo")
    assert result.returncode != 0
    assert "demo" in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_the_demo_writes_its_images(tmp_path):
    result = command("demo", "--minutes", "0.05", "--out", str(tmp_path / "new" / "images"), check=True)
    assert "Where does 'it' look?" in result.stdout
    assert "alignment error rate" in result.stdout
    assert "Saying what a picture shows" in result.stdout
    for name in ("additive.png", "scores.png", "babel.png", "en-fr.png", "en-fr-lines.png"):
        assert (tmp_path / "new" / "images" / name).read_bytes().startswith(b"\x89PNG")
    trace = regard.Trace.from_json((tmp_path / "new" / "images" / "additive.json").read_text())
    assert trace.source[1] == "animal"


def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = command("demo", "--out", str(tmp_path / "file" / "images"))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "file") in result.stderr
