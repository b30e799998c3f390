"""A real Chromium: the system's, or the one that Playwright installed. Tests are skipped where there is none.

With REGARD_BROWSER=required, as CI sets it, they fail instead.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.models import TRANSFORMER, small_translator

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
TIMEOUT = 120_000
"""Milliseconds after which a condition counts as never met: long enough for a machine that does other work too."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests last: the event loop of Playwright stays in this thread, where asyncio cannot start another."""
    items.sort(key=lambda item: Path(__file__).parent in item.path.parents)


def find_chromium() -> str | None:
    """The path of a Chromium, or nothing; $CHROMIUM names one."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with an empty profile."""
    missing = "Install Chromium (Debian: apt-get install chromium) or run: playwright install chromium"
    refuse = pytest.fail if os.environ.get("REGARD_BROWSER") == "required" else pytest.skip
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        refuse("Playwright is not installed: pip install -e '.[dev]'")
    with sync_playwright() as playwright:
        path = find_chromium() or playwright.chromium.executable_path
        if not Path(path).exists():
            refuse(f"There is no Chromium. {missing}")
        try:
            context = playwright.chromium.launch_persistent_context(
                tmp_path_factory.mktemp("profile"), executable_path=path, args=list(FLAGS), accept_downloads=True
            )
        except Error as error:
            refuse(f"{path} does not start: {error}. {missing}")
        context.set_default_timeout(TIMEOUT)
        yield context
        context.close()


@pytest.fixture(scope="session")
def tab(browser: Any) -> tuple[Any, list[str]]:
    """One page for all tests, which is faster than a new one for each, and what went wrong in it."""
    problems: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("request", lambda request: problems.append(f"request: {request.url}") if leaves(request.url) else None)

    def refuse(dialog: Any) -> None:
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    return page, problems


@pytest.fixture
def open_page(tab: tuple[Any, list[str]], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open HTML as a file. Nothing may be printed to the console, asked of the network, or run from a token."""
    page, problems = tab
    problems.clear()

    def open_html(html: str) -> Any:
        page.bring_to_front()  # a page behind another one is drawn once a second, if at all
        page.set_viewport_size({"width": 1000, "height": 800})
        page.emulate_media(color_scheme="light")
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8")
        page.goto(file.as_uri())
        return page

    yield open_html
    page.goto("about:blank")
    assert problems == []


def leaves(url: str) -> bool:
    """Whether a request goes to the network."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `regard serve`, which serves the workbench, without a slash at its end.

    Beside the models that come with regard it serves a small Transformer, which has heads to look at.
    """
    folder = tmp_path_factory.mktemp("server")
    log, transformer = folder / "stderr.txt", folder / "small-transformer"
    small_translator(**TRANSFORMER).save(transformer)
    command = [sys.executable, "-m", "regard", "serve", str(transformer), "--port", "0", "--device", "cpu"]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())  # type: ignore[union-attr]
        assert found, log.read_text()
        yield found[0]
        process.terminate()
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="session")
def workbench_tab(browser: Any, workbench: str) -> tuple[Any, list[str]]:
    """One page for all tests of the workbench, and what went wrong in it."""
    problems: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))

    def check(request: Any) -> None:
        if leaves(request.url) and not request.url.startswith(f"{workbench}/"):
            problems.append(f"request: {request.url}")

    page.on("request", check)
    return page, problems


@pytest.fixture
def visit(workbench_tab: tuple[Any, list[str]], workbench: str) -> Iterator[Callable[..., Any]]:
    """Open a path of the workbench. Nothing may be printed to the console but what `allow` names, and no request may
    leave the origin."""
    page, problems = workbench_tab
    problems.clear()
    allowed: list[str] = []

    def go(path: str, *, width: int = 1200, scheme: str = "light", allow: str = "") -> Any:
        allowed.extend([allow] if allow else [])
        page.bring_to_front()
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.goto(workbench + path)
        return page

    yield go
    page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    page.goto("about:blank")
    assert [each for each in problems if not any(part in each for part in allowed)] == []
