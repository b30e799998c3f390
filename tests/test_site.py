"""The site of the documentation is built without a warning, and works without a network."""

import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, whose notebooks are not executed: their cells run in test_docs.py."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    command += ["-c", "docs", "-D", "nb_execution_mode=off"]
    command += ["-d", str(folder / "doctrees"), ".", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_part_of_the_site(site):
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("src/regard/pretrained/*/MODEL_CARD.md"), ROOT / "README.md"]
    missing = [page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()]
    assert missing == []


def test_the_site_loads_nothing_from_a_network(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for loaded in ('src="http', 'src="//', 'rel="stylesheet" href="http', "@import url(http"):
            assert loaded not in text, f"{page.relative_to(site)}: {loaded}"


def test_a_companion_is_also_a_notebook_with_its_pictures(site):
    for page in (ROOT / "docs/lectures").glob("*.md"):
        if "file_format: mystnb" in page.read_text(encoding="utf-8"):
            notebook = nbformat.read(site / f"docs/lectures/{page.stem}.ipynb", as_version=4)
            nbformat.validate(notebook)
            sources = "".join(cell.source for cell in notebook.cells)
            assert "](../images" not in sources
            assert ".md)" not in sources
            assert any("attachments" in cell for cell in notebook.cells)


def test_the_drawings_are_those_that_the_script_makes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    runpy.run_path(str(ROOT / "docs/drawings.py"))["write"](tmp_path)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/images/drawings/*.svg")} == drawn
