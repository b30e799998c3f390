"""What is selected can be taken elsewhere: SVG with real text, PNG, JSON, and a table for a spreadsheet."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from browser.showing import saved, saved_trace, set_options, settle, show
from helpers.traces import EVERY_KIND, hostile, large, translation
from PIL import Image

from regard.trace import Trace

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", EVERY_KIND)
def test_files_hold_what_is_shown(open_page, name):
    trace = EVERY_KIND[name]()
    page = show(open_page, name, trace)
    picture = ElementTree.fromstring(saved(page, name, "SVG"))  # noqa: S314
    texts = {each.text for each in picture.iter(f"{SVG}text")}
    on_screen = set(page.locator(f"attention-{name} .picture svg text").all_text_contents())
    assert on_screen <= texts, "the text of an SVG is text"
    assert not [each for each in picture.iter() if "foreignObject" in each.tag or "script" in each.tag]
    with Image.open(io.BytesIO(saved(page, name, "PNG"))) as image:
        assert image.format == "PNG"
        assert image.width == pytest.approx(2 * float(picture.get("width")), abs=2)
        assert len(image.convert("RGB").resize((64, 64)).getcolors(4096)) > 10, "it is not blank"
    assert isinstance(saved_trace(page, name), Trace)
    table = saved(page, name, "TSV").decode().splitlines()
    assert len({line.count("\t") for line in table}) == 1
    assert len(table) > 3


def test_json_and_tables_hold_the_numbers_of_the_selection(open_page):
    trace = translation()
    page = show(open_page, "matrix", trace)
    assert saved_trace(page, "matrix") == Trace(trace.kind, trace.axes, trace.maps[:1], trace.series)
    set_options(page, "matrix", map="cross, by head", layer=2, head=1, hideSpecial=True)
    written = saved_trace(page, "matrix")
    kept = trace.map("cross 2.1").weights[:4]
    expected = kept[:, :4] / kept[:, :4].sum(1, keepdims=True) * kept.sum(1, keepdims=True)
    assert written.main.name == "cross 2.1"
    assert written.source == trace.source[:4]
    assert written.weights == pytest.approx(expected, abs=2e-6)
    assert written.values("log_prob") == trace.values("log_prob")[:4]
    lines = [line.split("\t") for line in saved(page, "matrix", "TSV").decode().splitlines()]
    assert lines[0] == ["target \\ source", *trace.source[:4], "log_prob"]
    assert np.array([line[1:5] for line in lines[1:]], dtype=float) == pytest.approx(expected, abs=2e-6)


def test_the_table_has_all_numbers_and_can_be_copied(open_page, browser):
    trace = translation()
    page = show(open_page, "matrix", trace)
    page.get_by_role("button", name="Table").click()
    settle(page)
    rows = page.locator("attention-matrix tbody tr").evaluate_all(
        "(all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => Number(cell.textContent)))"
    )
    assert [row[:5] for row in rows] == trace.to_dict()["maps"][0]["weights"]
    assert page.locator("attention-matrix tbody th").all_text_contents() == list(trace.target)
    page.locator("summary", has_text="Save").click()
    page.get_by_role("button", name="Copy the table").click()
    page.get_by_text("Copied.").wait_for()


def test_hostile_tokens_survive_every_file(open_page):
    trace = hostile()
    page = show(open_page, "matrix", trace)
    assert saved_trace(page, "matrix").source == trace.source
    ElementTree.fromstring(saved(page, "matrix", "SVG"))  # noqa: S314
    assert len(saved(page, "matrix", "TSV").decode().splitlines()) == 9, "a line break in a token is no new row"


def test_of_a_large_map_the_visible_part_is_drawn_and_all_numbers_are_saved(open_page):
    trace = large(300)
    page = show(open_page, "matrix", trace)
    page.locator("attention-matrix .scroller").evaluate("(box) => box.scrollTo(1600, 3200)")
    settle(page)
    picture = ElementTree.fromstring(saved(page, "matrix", "SVG"))  # noqa: S314
    texts = {each.text for each in picture.iter(f"{SVG}text")}
    assert {"in100", "out200"} <= texts
    assert not {"in0", "out0"} & texts
    assert saved_trace(page, "matrix").weights == pytest.approx(trace.weights, rel=1e-5, abs=1e-9)
