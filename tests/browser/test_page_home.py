"""The frame of the workbench and its home page: models, navigation, light and dark, phone, errors."""

import math
from itertools import pairwise

import pytest
from browser.accessibility import serious_faults
from browser.showing import settle

PAGES = ["Translate", "Caption", "Recognize", "Classify", "Read", "Tape", "Glimpse"]


def test_the_home_page_lists_every_model_with_what_it_is_and_how_good(visit, workbench):
    page = visit("/")
    page.locator(".card").first.wait_for()
    models = page.request.get(f"{workbench}/v1/models").json()["models"]
    assert page.locator(".card h2").all_text_contents() == PAGES
    for model in models:
        line = page.locator(".modellist li", has=page.get_by_role("link", name=model["name"], exact=True))
        assert model["summary"] in line.text_content()
        assert model["headline"] in line.text_content()
        assert model["measured_on"] in line.text_content()
        card = page.locator(".card", has=line)
        assert model["scale"] in card.text_content(), "a number has a scale"


def test_the_home_page_says_where_to_start_and_shows_what_attention_is(visit):
    page = visit("/")
    page.locator(".start attention-matrix .picture svg").first.wait_for()
    assert "européen" in page.locator(".start svg").first.text_content()
    links = page.locator(".start li a")
    assert links.all_text_contents()[0] == "One step of attention"
    for place in range(links.count()):
        links.nth(place).click()
        page.locator("main h1").filter(has_not_text="Look inside").wait_for()
        assert page.get_by_role("heading", name="There is no such page").count() == 0
        page.go_back()
        page.get_by_role("heading", name="Start here").wait_for()


def test_a_page_loads_few_files_and_none_twice(visit):
    for path, part in (("/", ".card"), ("/translate", ".words"), ("/classify", ".word")):
        page = visit(path)
        page.locator(part).first.wait_for()
        names = page.evaluate("() => performance.getEntriesByType('resource').map((each) => each.name)")
        files = [name for name in names if "/v1/" not in name]
        assert len(files) == len(set(files))
        assert len(files) <= 50


def test_cards_fill_the_columns_evenly_and_do_not_overlap(visit):
    for width, columns in ((1240, 3), (800, 2), (390, 1)):
        page = visit("/", width=width)
        page.locator(".card").last.wait_for()
        settle(page)
        boxes = [each.bounding_box() for each in page.locator(".card").all()]
        ends = {box["x"]: box["y"] + box["height"] for box in sorted(boxes, key=lambda box: box["y"])}
        assert len(ends) == columns
        assert max(ends.values()) - min(ends.values()) < max(box["height"] for box in boxes) / 2
        for above, below in pairwise(sorted(boxes, key=lambda box: (box["x"], box["y"]))):
            assert above["x"] != below["x"] or above["y"] + above["height"] < below["y"]


def test_a_mistyped_address_has_a_way_home(visit):
    page = visit("/translat", allow="status of 404")
    page.get_by_role("heading", name="There is no such page").wait_for()
    assert "/translat" in page.get_by_text("Nothing is at").text_content()
    page.get_by_role("link", name="All pages and models").click()
    page.locator(".card").first.wait_for()
    assert serious_faults(page) == []


def test_the_switch_changes_light_to_dark_and_is_remembered(visit):
    page = visit("/")
    paper = "() => getComputedStyle(document.querySelector('.top')).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
    page.reload()
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"


def test_navigation_keeps_the_page_loaded_and_back_leads_back(visit):
    page = visit("/")
    page.get_by_role("link", name="reviews-en").click()
    page.get_by_role("heading", name="Which words decide?").wait_for()
    page.wait_for_url("**/classify")  # what is the default anyway is left out
    assert page.title() == "Classify · regard"
    page.evaluate("() => { window.still = true; }")
    page.get_by_role("navigation").get_by_role("link", name="Read").click()
    page.get_by_role("heading", name="Read word by word").wait_for()
    assert page.locator("[aria-current=page]").text_content() == "Read"
    page.go_back()
    page.get_by_role("heading", name="Which words decide?").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Look inside attention models").wait_for()
    assert page.evaluate("() => window.still")


def test_on_a_phone_the_navigation_shows_the_current_page(visit):
    page = visit("/recognize", width=360)
    current = page.locator("nav [aria-current=page]")
    current.wait_for()
    box = current.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_the_keyboard_reaches_the_content_at_once(visit):
    page = visit("/")
    page.locator(".card").first.wait_for()
    page.keyboard.press("Tab")
    assert page.locator(":focus").text_content() == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(":focus").text_content() == "One step of attention", "where to start"
    assert "#" not in page.url


def test_the_strip_about_trust_shows_the_numbers_of_the_api_and_explains_them(visit, workbench):
    page = visit("/read?model=reader-en&text=The+dog+is+running+over+the+bridge.")
    strip = page.locator(".trust")
    strip.locator(".measure").first.wait_for()
    asked = {"verb": "read", "model": "reader-en", "input": "The dog is running over the bridge."}
    found = page.request.post(f"{workbench}/v1/faithfulness", data=asked).json()
    assert strip.locator(".verdict").text_content() == found["sentence"]
    values = strip.locator("data").evaluate_all("(all) => all.map((each) => Number(each.value))")
    ablation = found["ablation"]
    assert values == pytest.approx([found["entropy"], found["variation"], ablation["attended"], ablation["random"]])
    focus = strip.get_by_role("group", name="Focus")
    width = focus.locator("i").evaluate("(bar) => parseFloat(bar.style.width)")
    assert width == pytest.approx(100 * math.exp(found["entropy"] - found["uniform_entropy"]), abs=0.6)
    assert ".0" not in focus.locator(".text").text_content()
    measure = strip.get_by_role("group", name="Faithfulness")
    assert not measure.locator(".tip").is_visible()
    measure.focus()
    assert measure.locator(".tip").text_content() == ablation["method"]
    assert measure.locator(".tip").is_visible()


def test_a_page_says_when_the_server_is_gone_and_tries_again(visit, workbench):
    page = visit("/classify", allow="ERR_FAILED")
    page.locator(".word").first.wait_for()
    page.route("**/v1/classify/without", lambda route: route.abort())
    page.get_by_role("button", name="Irony").click()
    page.get_by_role("alert").filter(has_text="The server does not answer").wait_for()
    page.unroute("**/v1/classify/without")
    page.get_by_role("button", name="Try again").click()
    page.locator(".word", has_text="sequel").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_a_server_with_a_token_asks_for_it(visit):
    def answer(route):
        if route.request.headers.get("authorization") == "Bearer secret":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": {"type": "unauthorized", "message": "Send the token."}})

    page = visit("/", allow="401")
    page.route("**/v1/models", answer)
    page.reload()
    page.get_by_role("alert").filter(has_text="Enter the token of this server.").wait_for()
    page.get_by_label("Token of this server").fill("wrong")
    page.get_by_role("button", name="Use it").click()
    page.get_by_role("alert").filter(has_text="This token is wrong.").wait_for()
    page.get_by_label("Token of this server").fill("secret")
    page.get_by_role("button", name="Use it").click()
    page.locator(".card").first.wait_for()
    assert not page.locator(".token").is_visible()
    page.unroute("**/v1/models")
