"""The page of a new system, which lies in its folder, works in the workbench without further changes."""

import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from browser.accessibility import serious_faults
from test_new_system import registered, trained  # noqa: F401

from regard.serving.app import create_app


@pytest.fixture
def address(registered, trained) -> Iterator[str]:  # noqa: F811
    server = uvicorn.Server(uvicorn.Config(create_app(folders=[str(trained.folder)]), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_new_system_is_listed_and_its_page_asks_its_model(workbench_tab, address):
    page, problems = workbench_tab
    problems.clear()
    page.goto(address)
    page.get_by_role("link", name="Pick", exact=True).last.click()
    page.get_by_role("heading", name="Pick the largest").wait_for()
    numbers = page.locator(".picked data")
    assert float(numbers.get_attribute("value")) == pytest.approx(3, abs=1)
    assert page.locator(".picked").text_content().endswith(" metres")
    page.locator("attention-matrix .picture svg").wait_for()
    page.locator(".trust .verdict").wait_for()
    page.get_by_label("Numbers", exact=True).fill("-3 -1")
    page.get_by_role("button", name="Pick").click()
    page.wait_for_function("() => Number(document.querySelector('.picked data')?.value) < 1")
    assert "text=-3+-1" in page.url
    assert serious_faults(page) == []
    page.get_by_label("Numbers", exact=True).fill("one two")
    page.get_by_role("button", name="Pick").click()
    page.get_by_role("alert").wait_for()
    page.goto("about:blank")
    assert [each for each in problems if address not in each and "422" not in each] == []
