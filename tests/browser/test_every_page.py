"""Every page of the workbench: no serious fault of accessibility in light and dark, all of it on the width of a phone;
what belongs to a text that is too long for the address stays out of it; and links to models that are not served."""

from urllib.parse import urlencode

import pytest
from browser.accessibility import serious_faults
from browser.showing import settle

REVIEW = urlencode({"text": "I loved this film. The music was awful. A wonderful story.", "removed": "[1]"})
SENTENCE = urlencode({"text": "The dog is running over the bridge.", "word": 3})
PAGES = {
    "/": [".card"],
    "/attention?heads=2": [".step .sum"],
    "/caption?example=scene-1&box=[0.05,0.3,0.3,0.7]": [".edits", ".trust .verdict"],
    f"/classify?{REVIEW}": [".measure"],
    f"/read?model=reader-en&{SENTENCE}": [".measure", ".expected li"],
    "/tape?model=tape-copy&length=2": [".trust .verdict"],
    "/glimpse?locations=[[1,0.9,0.1]]": ["text=Release glimpse 2", ".trust .verdict"],
    "/recognize?layers=c6k5s1p0_c6k99s1p0": [".layergroup", "tr.impossible"],
    "/translate?text=He+is+happy.&at=1&tab=beam": [".sliders", ".tree .node"],
}
"""Pages with what is waited for."""


@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_no_serious_fault_and_a_phone_needs_no_sideways_scrolling(visit, address):
    page = visit(address, width=360)
    for part in PAGES[address]:
        page.locator(part).first.wait_for()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        assert serious_faults(page) == []


@pytest.mark.parametrize(
    ("address", "label", "text", "change", "shown"),
    [
        ("/classify", "Text to classify", "It was a very long film. " * 310, ".word:text('very')", "Without 1 of 1860"),
        ("/translate?at=1", "Sentence", "He is happy. " * 370, ".candidate[aria-pressed=false]", "You changed it"),
    ],
)
def test_what_belongs_to_a_text_too_long_for_the_address_stays_out_of_it(visit, address, label, text, change, shown):
    page = visit(address)
    page.get_by_label(label, exact=True).fill(text)
    page.locator(".tools button").click()
    page.locator(change).first.click()
    page.get_by_text(shown).wait_for()
    assert "?" not in page.url


@pytest.mark.parametrize("name", ["translate", "caption", "classify", "read", "tape", "glimpse", "recognize"])
def test_a_link_to_a_model_that_is_not_served_shows_another(visit, name):
    page = visit(f"/{name}?model=of-somebody-else&text=He+is+happy.")
    elements = ("view", "image", "document", "reading", "tape", "glimpses")
    shown = ", ".join(["main .layergroup", *(f"main attention-{element}" for element in elements)])
    page.locator(shown).first.wait_for(state="attached")
    assert page.get_by_role("alert").count() == 0
