"""Opening one element with a trace, and reading what it shows."""

import json
from typing import Any

from regard import Trace
from regard.viewing.page import component, page


def html_of(trace: Trace, *elements: str, **options: Any) -> str:
    """A page with these elements for a trace."""
    return page(component(trace, elements, options=options), title="A page")


def show(open_page: Any, name: str, trace: Trace, **options: Any) -> Any:
    """Open a page with one element, and wait until it is drawn."""
    page = open_page(html_of(trace, name, **options))
    page.wait_for_selector(f"attention-{name} .picture :is(svg, canvas)")
    settle(page)
    return page


def settle(page: Any) -> None:
    """Wait for two frames, so that everything that was scheduled is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def set_options(page: Any, name: str, **options: Any) -> None:
    """Set options of an element as a control does."""
    page.locator(f"attention-{name}").evaluate("(element, values) => element.setOptions(values)", options)
    settle(page)


def texts(page: Any, name: str) -> list[str]:
    """All texts of a picture."""
    return page.locator(f"attention-{name} .picture svg text").all_text_contents()


def shown_numbers(page: Any, name: str) -> dict[str, float]:
    """The numbers of the current row: label -> value, as exact as the page has them."""
    items = page.locator(f"attention-{name} .detail .chips li:has(data)")
    found = items.evaluate_all(
        "(all) => all.map((each) => [each.querySelector('bdi').textContent, each.querySelector('data').value])"
    )
    return {label: float(value) for label, value in found}


def saved(page: Any, name: str, form: str) -> bytes:
    """The file that the menu Save gives."""
    element = page.locator(f"attention-{name}")
    element.locator("summary", has_text="Save").click()
    with page.expect_download() as download:
        element.get_by_role("button", name=form, exact=True).click()
    element.locator("summary", has_text="Save").click()
    assert download.value.suggested_filename == f"attention-{name}.{form.lower()}"
    return download.value.path().read_bytes()


def saved_trace(page: Any, name: str) -> Trace:
    """The trace in the JSON that the menu Save gives."""
    return Trace.from_dict(json.loads(saved(page, name, "JSON")))


def answer_of(page, path, act):
    """What the server answers for a path because of an act."""
    with page.expect_response(lambda response: response.url.endswith(path) and response.ok) as found:
        act()
    return found.value.json()
