"""The README and every page of docs run as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_of(page: str) -> str:
    """The Python of a page, on the lines where it stands there, so that a failure points to the page."""
    code, inside = [], False
    for line in page.splitlines():
        fence = re.match(r"```(\w*)", line)
        inside = fence[1] == "python" if fence else inside
        code.append("" if fence or not inside else line)
    return "\n".join(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_runs(page, as_a_user):
    code = python_of(page.read_text())
    assert code.strip(), f"{page.name} shows no Python"
    exec(compile(code, page, "exec"), {})  # noqa: S102


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_snippet_is_about_ten_lines():
    snippet = python_of((ROOT / "README.md").read_text()).split("from regard import Trace")[0]
    assert 8 <= sum(1 for line in snippet.splitlines() if line.strip() and not line.startswith("#")) <= 12
