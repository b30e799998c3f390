"""Build the distributions regard and regard-runtime into dist/, and optionally try the second in an empty environment.

    python packaging/wheels.py
    python packaging/wheels.py --try EXPORTED 'A sentence.'

The second form installs regard-runtime into a new environment, runs an exported translator there, away from the
sources, and prints the size of what was installed. It needs a package index.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MEBIBYTE = 2**20


def build(folder: Path) -> None:
    """Build the wheel of a source tree."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", DIST, folder], check=True
    )


def build_all() -> list[Path]:
    """Build both wheels."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("regard*.whl"):
        old.unlink()
    build(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("pretrained", "__pycache__"))
        (folder / "src/regard/pretrained").mkdir(exist_ok=True)
        shutil.copy(ROOT / "LICENSE", folder)
        shutil.copy(Path(__file__).with_name("runtime.toml"), folder / "pyproject.toml")
        build(folder)
    return sorted(DIST.glob("regard*.whl"))


def try_runtime(model: Path, text: str) -> None:
    """Install regard-runtime into an empty environment, and translate a text there with an exported model."""
    (wheel,) = DIST.glob("regard_runtime-*.whl")
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        python = Path(name) / "bin/python"
        places = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        )
        packages = Path(places.stdout.strip())
        before = _size(packages)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", wheel], check=True)
        print(f"installed: {(_size(packages) - before) / MEBIBYTE:.0f} MiB")
        for each in sorted(packages.iterdir(), key=_size, reverse=True)[:8]:
            print(f"  {each.name}: {_size(each) / MEBIBYTE:.1f} MiB")
        command = [Path(name) / "bin/regard", "translate", "--model", model.absolute(), "--show", "-", text]
        subprocess.run(command, check=True, cwd=name)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def main() -> None:
    """Build, and try what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--try", nargs=2, dest="tried", metavar=("EXPORTED", "TEXT"))
    tried = parser.parse_args().tried
    for wheel in build_all():
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / MEBIBYTE:.1f} MiB")
    if tried:
        try_runtime(Path(tried[0]), tried[1])


if __name__ == "__main__":
    main()
