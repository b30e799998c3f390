"""Each element draws its trace, tells its numbers, and can be used by keyboard and on a phone."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from browser.accessibility import serious_faults
from browser.showing import set_options, settle, show, shown_numbers, texts
from helpers.traces import EVERY_KIND, caption, document, glimpses, hostile, persian, reading, tape, translation
from PIL import Image

from regard.metrics.alignment import merge_subwords
from regard.trace import Series, Trace
from regard.viewing.image import attention_field, image_pixels, overlaid

LABELS = {
    "matrix": ["The", "zone"],
    "lines": ["area", "éenne"],
    "heads": ["layer 2", "head 3", "cross 1.1"],
    "image": ["star", "red"],
    "document": ["Good", "sound"],
    "reading": ["animal", "tired"],
    "tape": ["write 1", "memory"],
    "glimpses": ["1", "one  0.90"],
}


def point_at(page, label, name):
    """Move the pointer to a word of a picture."""
    page.locator(f"attention-{name} .picture svg text", has_text=label).first.hover(force=True)
    settle(page)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_an_element_draws_its_trace_also_on_a_phone(open_page, name):
    page = show(open_page, name, EVERY_KIND[name]())
    assert set(LABELS[name]) <= set(texts(page, name))
    assert page.locator(f"attention-{name} [role=alert]").count() == 0
    page.set_viewport_size({"width": 360, "height": 740})
    settle(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    assert set(LABELS[name]) - {"head 3"} <= set(texts(page, name)), "labels of heads are short there"


@pytest.mark.parametrize("name", EVERY_KIND)
def test_axe_finds_no_serious_fault_in_light_and_dark(open_page, name):
    page = show(open_page, name, EVERY_KIND[name]())
    page.get_by_role("button", name="Table").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        classes = page.locator(f"attention-{name} .frame").get_attribute("class")
        assert ("dark" in classes) == (scheme == "dark")
        assert serious_faults(page) == []


def test_a_matrix_shows_its_weights_in_the_cells_and_beside_them(open_page):
    trace = translation()
    page = show(open_page, "matrix", trace)
    numbers = [text for text in texts(page, "matrix") if text.replace(".", "").isdigit()]
    assert numbers == [f"{weight:.2f}" for weight in trace.weights.flat if weight >= 0.005]
    point_at(page, "zone", "matrix")
    written = trace.to_dict()["maps"][0]["weights"][1]
    assert shown_numbers(page, "matrix") == dict(zip(trace.source, written, strict=True))
    point_at(page, "area", "matrix")
    column = [row[3] for row in trace.to_dict()["maps"][0]["weights"]]
    assert shown_numbers(page, "matrix") == dict(zip(trace.target, column, strict=True)), (
        "of a column, who attends to it"
    )


def test_right_links_are_outlined_in_a_matrix(open_page):
    trace = translation()
    links = {"sure": [[0, 0], [2, 1]], "possible": [[0, 0], [2, 1], [1, 1]]}
    page = show(open_page, "matrix", replace(trace, extras={**trace.extras, "links": links}))
    boxes = page.locator("attention-matrix .picture rect.sure, attention-matrix .picture rect.possible")
    found = boxes.evaluate_all("(all) => all.map((each) => [each.getAttribute('class'), each.x.baseVal.value])")
    assert [name for name, _ in found] == ["possible", "sure", "sure"]
    (_, second), (_, first), (_, third) = found
    assert first < second < third, "in the columns of the source words"
    set_options(page, "matrix", words=True)
    assert boxes.count() == 3


def test_a_click_pins_and_keys_step(open_page):
    page = show(open_page, "matrix", translation())
    picture = page.locator("attention-matrix .picture")
    current = page.locator("attention-matrix .detail b")
    point_at(page, "zone", "matrix")
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(5, 5)
    settle(page)
    assert current.all_text_contents() == ["zone"], "what was clicked stays when the pointer leaves"
    picture.focus()
    for key, expected in (("ArrowDown", "europ"), ("End", "</s>"), ("ArrowDown", "</s>"), ("Home", "La")):
        page.keyboard.press(key)
        assert current.all_text_contents() == [expected]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("attention-matrix .chips .chosen bdi").all_text_contents() == ["Europe"]
    page.keyboard.press("Escape")
    assert current.count() == 0
    positions = page.evaluate(
        """() => new Promise((done) => {
            document.addEventListener("attention-position", (event) => done(event.detail), { once: true });
            document.querySelector("attention-view").shown.shadowRoot.querySelector(".picture")
                .dispatchEvent(new KeyboardEvent("keydown", { key: "End", composed: true }));
        })"""
    )
    assert positions == {"row": 4, "column": None}, "a page is told what is pinned"


def test_heads_are_chosen_one_by_one_or_as_mean_or_maximum(open_page):
    trace = translation()
    heads = {(each.layer, each.head): each.weights for each in trace.maps[1:]}
    expected = {
        (1, 2): heads[1, 2],
        ("all", 3): np.mean([heads[1, 3], heads[2, 3]], axis=0),
        (2, "mean"): np.mean([heads[2, head] for head in (1, 2, 3)], axis=0),
        (2, "max"): np.max([heads[2, head] for head in (1, 2, 3)], axis=0),
        ("all", "max"): np.max(list(heads.values()), axis=0),
    }
    page = show(open_page, "matrix", trace)
    page.get_by_label("Map", exact=True).select_option(label="cross, by head")
    for (layer, head), weights in expected.items():
        page.get_by_label("Layer", exact=True).select_option(label=str(layer))
        page.get_by_label("Head", exact=True).select_option(label=str(head))
        settle(page)
        point_at(page, "zone", "matrix")
        shown = shown_numbers(page, "matrix")
        assert shown == pytest.approx(dict(zip(trace.source, weights[1], strict=True)), abs=2e-6)


def test_subwords_are_joined_to_words_and_back(open_page):
    trace = translation()
    page = show(open_page, "matrix", trace)
    page.locator("summary", has_text="Options").click()
    page.get_by_label("Join subwords to words").check()
    settle(page)
    merged = merge_subwords(trace.weights.astype(np.float64), [0, 1, 1, 2, 3], [0, 1, 2, 2, 3])
    page.locator("attention-matrix .picture").focus()
    for row, label in enumerate(["La", "zone", "européenne", "</s>"]):
        page.keyboard.press("ArrowDown" if row else "Home")
        assert page.locator("attention-matrix .detail b").text_content() == label
        words = ["The", "European", "area", "</s>"]
        assert shown_numbers(page, "matrix") == pytest.approx(dict(zip(words, merged[row], strict=True)), abs=2e-6)
    page.get_by_label("Join subwords to words").uncheck()
    settle(page)
    assert "éenne" in texts(page, "matrix")


def test_hidden_special_tokens_leave_the_sum_of_each_row(open_page):
    trace = translation()
    page = show(open_page, "matrix", trace, hideSpecial=True)
    assert "</s>" not in texts(page, "matrix")
    point_at(page, "zone", "matrix")
    kept = trace.weights[1, :4] / trace.weights[1, :4].sum() * trace.weights[1].sum()
    assert shown_numbers(page, "matrix") == pytest.approx(dict(zip(trace.source[:4], kept, strict=True)), abs=2e-6)


def test_the_legend_tells_the_scale(open_page):
    trace = translation()
    page = show(open_page, "matrix", trace)
    legend = page.locator("attention-matrix .legend text")
    assert legend.all_text_contents()[:2] == ["0", "1.00"]
    strongest = page.locator("attention-matrix .picture rect").evaluate_all(
        "(all) => all.map((each) => each.getAttribute('fill'))"
    )
    set_options(page, "matrix", scale="row")
    assert legend.all_text_contents()[:2] == ["0", "largest of the row"]
    fills = page.locator("attention-matrix .picture rect").evaluate_all(
        "(all) => all.map((each) => each.getAttribute('fill'))"
    )
    assert fills != strongest
    darkest = [fills[5 * row + int(trace.weights[row].argmax())] for row in range(5)]
    assert set(darkest) == {"rgb(8,48,107)"}, "each row reaches the end of the colours"


def test_the_legend_of_a_difference_has_room_for_both_ends(open_page):
    trace = translation()
    signed = replace(trace, maps=(replace(trace.maps[0], weights=0.05 * (trace.maps[0].weights - 0.5)),))
    page = show(open_page, "matrix", signed)
    legend = page.locator("attention-matrix .legend svg")
    low, high = (each.text_content() for each in legend.locator("text").all()[:2])
    assert low == f"\N{MINUS SIGN}{high}"
    assert legend.locator("text").first.bounding_box()["x"] >= legend.bounding_box()["x"]


def test_lines_show_the_numbers_of_a_word_on_either_side(open_page):
    trace = translation()
    page = show(open_page, "lines", trace)
    written = trace.to_dict()["maps"][0]["weights"]
    point_at(page, "zone", "lines")
    assert shown_numbers(page, "lines")["Europe"] == written[1][1]
    point_at(page, "area", "lines")
    assert shown_numbers(page, "lines")["zone"] == written[1][3]


def test_heads_show_how_sharp_each_is(open_page):
    trace = translation()
    page = show(open_page, "heads", trace)
    page.locator("attention-heads .picture").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.locator("attention-heads .detail b").text_content() == "cross 2.2"
    weights = trace.map("cross 2.2").weights.astype(np.float64)
    entropy = -(weights * np.log2(weights.clip(1e-30))).sum(1).mean()
    values = page.locator("attention-heads .detail data").evaluate_all("(all) => all.map((each) => Number(each.value))")
    assert values == pytest.approx([weights.max(1).mean(), entropy], abs=1e-5)


def test_an_image_shows_where_a_word_looks(open_page):
    page = show(open_page, "image", caption())
    assert page.locator("attention-image .detail b").text_content() == "red", "sharp, and let through by its gate"
    point_at(page, "star", "image")
    assert shown_numbers(page, "image") == {"row 3, column 4": 0.7, "row 2, column 3": 0.1} | dict.fromkeys(
        [f"row 1, column {column}" for column in (1, 2, 3, 4)], 0.0
    )
    overlays = page.locator("attention-image .picture image")
    assert overlays.count() == 2
    before = overlays.last.get_attribute("href")
    set_options(page, "image", overlay="magma", cells=True)
    point_at(page, "star", "image")
    assert overlays.last.get_attribute("href") != before
    set_options(page, "image", layout="all")
    assert page.locator("attention-image .picture image").count() == 3


def test_an_overlay_on_a_page_is_that_of_a_figure(open_page):
    """A photograph with a black part, a dark one and a bright one, of which each is attended to once."""
    ramp = np.linspace(0, 1, 480)[None, :, None] * np.array([1.0, 0.8, 0.6])
    pixels = (np.repeat(ramp, 360, 0) * 160).astype(np.uint8)
    pixels[:, 400:] = 230
    trace = Trace.from_image(pixels, ["a", "b", "c"], np.eye(12)[[4, 5, 7]], grid=(3, 4))
    page = show(open_page, "image", trace)
    # The image as the page draws it, larger than it is.
    photograph = image_pixels(trace, 560)
    for row, word in enumerate(trace.target):
        point_at(page, word, "image")
        uri = page.locator("attention-image .picture image").last.get_attribute("href")
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))), dtype=float)
        expected = overlaid(photograph, attention_field(trace, row, photograph.shape[:2]))
        assert drawn.shape == expected.shape
        assert np.abs(drawn - expected).mean() < 2
        assert np.percentile(np.abs(drawn - expected), 99) < 10


@pytest.mark.parametrize("layout", ["word", "all"])
def test_beside_a_word_stands_its_probability_or_without_one_its_largest_weight(open_page, layout):
    probabilities = Series("log_prob", "target", np.log([0.25, 0.5, 0.75]))
    certain = replace(caption(), series=(*caption().series, probabilities))
    for trace, numbers, named in (
        (caption(), {"0.90", "0.80", "0.70"}, "its largest weight."),
        (certain, {"0.25", "0.50", "0.75"}, "its probability under the model."),
    ):
        page = show(open_page, "image", trace)
        set_options(page, "image", layout=layout)
        assert {text for text in texts(page, "image") if re.fullmatch(r"\d\.\d\d", text)} == numbers
        assert named in " ".join(page.locator("attention-image").locator("svg").all_text_contents())


def test_a_document_shows_sentences_and_words(open_page):
    page = show(open_page, "document", document())
    assert page.locator("attention-document .bar b").text_content() == "positive"
    assert "0.875" in page.locator("attention-document .bar").text_content()
    assert {"0.600", "0.300", "0.100"} <= set(texts(page, "document"))
    point_at(page, "sound", "document")
    assert shown_numbers(page, "document") == {"Bad": 0.5, "sound": 0.4, ".": 0.1}
    assert page.locator("attention-document .chosen bdi").text_content() == "sound"
    page.mouse.move(5, 5)
    page.locator("attention-document .picture").focus()
    for key in ("Home", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert page.locator("attention-document .detail b").text_content() == "Sentence 3"


def test_a_reading_shows_what_the_current_word_attends_to(open_page):
    trace = reading()
    page = show(open_page, "reading", trace)
    page.locator("attention-reading .picture").focus()
    page.keyboard.press("End")
    assert page.locator("attention-reading .detail b").text_content() == "tired"
    written = trace.to_dict()["maps"][0]["weights"][4]
    expected = {word: weight for word, weight in zip(trace.target, written, strict=True) if weight >= 0.0005}
    assert shown_numbers(page, "reading") == expected
    assert "9.5 bits" in texts(page, "reading")
    tops = page.locator("attention-reading .picture path").evaluate_all("(all) => all.map((each) => each.getBBox().y)")
    assert min(tops) > 2, "arcs are not cut off"
    page.keyboard.press("ArrowLeft")
    assert page.locator("attention-reading .detail b").text_content() == "too"
    set_options(page, "reading", layout="lines")
    assert texts(page, "reading").count("The") == 5


def test_a_reader_without_attention_shows_its_surprisal(open_page):
    whole = reading()
    page = show(open_page, "reading", type(whole)("reading", whole.axes, (), whole.series))
    page.locator("attention-reading .picture").focus()
    page.keyboard.press("Home")
    assert "1.5 bits" in texts(page, "reading")


def test_a_tape_shows_where_its_heads_are(open_page):
    page = show(open_page, "tape", tape())
    assert "8 of 9 bits right" in page.locator("attention-tape .bar").text_content()
    assert page.locator("attention-tape .picture path").count() == 1, "the wrong bit is crossed out"
    page.locator("attention-tape .picture").focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert shown_numbers(page, "tape") == {"reads from slot 4": 1.0, "writes to slot 6": 1.0, "bits lost": 2.5}
    slots = [text for text in texts(page, "tape") if text in ("1", "2", "6", "7")]
    assert "7" not in slots, "slots that no head used are left out"
    set_options(page, "tape", allSlots=True, vectors=True)
    assert "adds 1" in texts(page, "tape")


def test_glimpses_show_the_belief_after_each(open_page):
    page = show(open_page, "glimpses", glimpses())
    page.locator("attention-glimpses .picture").focus()
    page.keyboard.press("Home")
    assert shown_numbers(page, "glimpses") == {"zero": 0.5, "one": 0.3, "two": 0.2}
    assert page.locator("attention-glimpses .picture image").count() == 1 + 3 * 2, "the image, and a patch per scale"
    page.set_viewport_size({"width": 360, "height": 740})
    settle(page)
    frame = page.locator("attention-glimpses .picture svg > g:last-child rect").last
    assert frame.evaluate("(frame) => frame.getBBox().x") > 0, "the frame of the current glimpse is not cut off"


def test_keys_that_are_quicker_than_an_answer_move_a_glimpse_on(open_page):
    trace = glimpses()
    page = show(open_page, "glimpses", trace, movable=True)
    told = page.locator("attention-glimpses").evaluate(
        """(element) => {
            const told = [];
            element.addEventListener("attention-glimpse", ({ detail }) => told.push([detail.x, detail.y]));
            element.pinned = { row: 1, column: null };
            for (const key of ["ArrowLeft", "ArrowLeft", "ArrowDown"]) {
                const event = new KeyboardEvent("keydown", { key, shiftKey: true, composed: true, bubbles: true });
                element.shadowRoot.querySelector(".picture").dispatchEvent(event);
            }
            return told;
        }"""
    )
    x, y = trace.values("x")[1], trace.values("y")[1]
    expected = [(x - 0.05, y), (x - 0.1, y), (x - 0.1, y + 0.05)]
    assert [value for position in told for value in position] == pytest.approx(
        [v for position in expected for v in position]
    )


@pytest.mark.parametrize("name", ["matrix", "lines"])
def test_hostile_tokens_are_shown_as_text(open_page, name):
    trace = hostile()
    page = show(open_page, name, trace)
    page.get_by_role("button", name="Table").click()
    settle(page)
    names = page.locator(f"attention-{name} tbody th").all_text_contents()
    expected = [word.replace("\u202e", "\ufffd").replace("\t", "⇥").replace("\n", "⏎") for word in trace.target]
    assert names == expected
    assert page.locator(f"attention-{name}").locator("b, img, script").filter(has_text="bold").count() == 0


def test_right_to_left_inputs_begin_at_the_right(open_page):
    page = show(open_page, "matrix", persian())
    first, last = (page.locator("attention-matrix text", has_text=word).first.bounding_box() for word in ("این", "است"))
    assert first["x"] > last["x"]
    page.locator("attention-matrix .picture").focus()
    for key in ("Home", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    chosen = page.locator("attention-matrix .chosen bdi").text_content()
    assert chosen == "کتاب", "the left arrow leads to the next word"


def test_what_cannot_be_shown_is_explained(open_page):
    page = open_page("<!DOCTYPE html><title>t</title><attention-tape></attention-tape>")
    from regard.viewing.page import script

    page.add_script_tag(content=script())
    for given, says in (
        (translation().to_json(), "has nothing to show as <attention-tape>"),
        ('{"version": 1}', "has version 1; this viewer reads version 3"),
        ('{"trace": null}', "has no attention to show"),
    ):
        page.evaluate("(text) => { document.querySelector('attention-tape').trace = text; }", given)
        settle(page)
        assert says in page.locator("attention-tape [role=alert]").text_content()
