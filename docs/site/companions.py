"""The companions of the lectures as notebooks and as slides, from the pages that they are."""

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx

FOLDER = "docs/lectures/"
HEADING = re.compile(r"(<h1>.*?</h1>)", flags=re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.(?:png|webp|svg))\)")
KINDS = {".png": "image/png", ".webp": "image/webp", ".svg": "image/svg+xml"}


def is_companion(path: Path) -> bool:
    """Whether a page is executed, and so has a notebook."""
    return path.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb\n")


def notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook of a page, with its pictures inside; links lead to the pages of the site."""
    made = read_myst_markdown_notebook(path.read_text(encoding="utf-8"), path=path)
    for number, cell in enumerate(made.cells, 1):
        cell.id = f"{path.stem}-{number}"  # the same notebook every time
        if cell.cell_type == "markdown":
            _attach_pictures(cell, path.parent)
            cell.source = re.sub(r"\]\(([^):]+)\.md([#)])", r"](\1.html\2", cell.source)
    return made


def _attach_pictures(cell: nbformat.NotebookNode, folder: Path) -> None:
    """Put the pictures that a cell shows into it."""
    for picture in (folder / found[2] for found in PICTURE.finditer(cell.source)):
        content = base64.b64encode(picture.read_bytes()).decode()
        cell.setdefault("attachments", {})[picture.name] = {KINDS[picture.suffix]: content}
    cell.source = PICTURE.sub(lambda found: f"![{found[1]}](attachment:{Path(found[2]).name})", cell.source)


def write_notebooks(app: Sphinx, failure: Exception | None) -> None:
    """Write the notebook of each companion beside its page."""
    if failure is None and app.builder.name == "html":
        for path in sorted((Path(app.srcdir) / FOLDER).glob("*.md")):
            if is_companion(path):
                place = Path(app.outdir) / FOLDER / f"{path.stem}.ipynb"
                place.write_text(nbformat.writes(notebook(path)) + "\n", encoding="utf-8")


def add_links(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Below the heading of a companion, link to its notebook and its slides."""
    path = Path(app.srcdir) / f"{page}.md"
    if page.startswith(FOLDER) and is_companion(path):
        links = f'<p class="forms"><a href="{path.stem}.ipynb" download>Notebook</a> <a href="?slides">Slides</a></p>'
        context["body"] = HEADING.sub(lambda found: found[1] + links, context["body"], count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the notebooks after the pages, and show slides by a script."""
    app.connect("html-page-context", add_links)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
