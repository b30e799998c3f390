"""The page Classify: probabilities, bars and shades, and what happens when words are removed."""

import json
from urllib.parse import urlencode

import pytest
from browser.showing import answer_of

TEXT = "I loved this film. The music was awful. A wonderful story."
ADDRESS = "/classify?" + urlencode({"text": TEXT})


def shown(page):
    """The probabilities on the page, by class."""
    rows = page.locator(".class").evaluate_all(
        "(all) => all.map((each) => [each.querySelector('b').textContent, each.querySelector('data').value])"
    )
    return {name: float(value) for name, value in rows}


def answer(page, workbench, removed=()):
    body = {"model": "reviews-en", "input": TEXT, "removed": list(removed)}
    return page.request.post(f"{workbench}/v1/classify/without", data=body).json()


def test_a_click_removes_a_word_or_a_sentence_and_the_probability_moves(visit, workbench):
    page = visit(ADDRESS)
    page.locator(".word").first.wait_for()
    assert page.locator(".word").all_text_contents() == TEXT.split()
    whole = answer(page, workbench)
    assert shown(page) == pytest.approx(whole["after"])
    widths = page.locator(".number i").evaluate_all("(all) => all.map((each) => parseFloat(each.style.width))")
    largest = max(whole["sentence_weights"])
    assert widths == pytest.approx([100 * each / largest for each in whole["sentence_weights"]], abs=0.6)

    page.get_by_role("button", name="loved", exact=True).click()
    page.get_by_text("Without 1 of 11 words").wait_for()
    assert shown(page) == pytest.approx(answer(page, workbench, [1])["after"])
    page.get_by_role("button", name="Sentence 3", exact=False).click()
    page.get_by_text("Without 4 of 11 words").wait_for()
    assert shown(page) == pytest.approx(answer(page, workbench, [1, 8, 9, 10])["after"])
    assert "removed=%5B1%2C8%2C9%2C10%5D" in page.url

    page.reload()
    page.get_by_text("Without 4 of 11 words").wait_for()
    page.get_by_role("button", name="Put everything back").click()
    page.get_by_text("nothing removed").wait_for()
    assert shown(page) == pytest.approx(whole["after"])
    assert "removed" not in page.url


def test_trust_is_measured_again_for_what_is_left(visit, workbench):
    page = visit(ADDRESS)
    page.locator(".trust .measure").first.wait_for()
    sentence = page.get_by_role("button", name="Sentence 3", exact=False)
    found = answer_of(page, "/v1/faithfulness", sentence.click)
    asked = {"verb": "classify", "input": "I loved this film. The music was awful."}
    assert page.request.post(f"{workbench}/v1/faithfulness", data=asked).json() == found


def test_clicks_that_are_quicker_than_the_server_all_count(visit):
    page = visit(ADDRESS)
    page.locator(".word").first.wait_for()
    page.evaluate("() => [1, 6, 9].forEach((index) => document.querySelectorAll('.word')[index].click())")
    page.get_by_text("Without 3 of 11 words").wait_for()
    assert "removed=%5B1%2C6%2C9%5D" in page.url


def test_what_does_not_move_the_probability_has_no_sign(visit):
    page = visit(ADDRESS)
    answer = {
        "model": "reviews-en", "words": ["Good.", "Film."], "sentences": [0, 1], "removed": [0], "label": "positive",
        "before": {"positive": 0.9}, "after": {"positive": 0.89996}, "word_weights": [0, 1], "sentence_weights": [0, 1],
        "sentence_drops": [0.2, 0.0001],
    }  # fmt: skip
    page.route("**/v1/classify/without", lambda route: route.fulfill(json=answer))
    page.reload()
    page.get_by_text("moves by less than 0.1 points").wait_for()
    assert page.locator(".sentence .number").last.text_content() == "20.0"
    page.unroute("**/v1/classify/without")


def test_words_are_removed_by_keyboard(visit):
    page = visit(ADDRESS)
    page.locator(".word[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.get_by_text("Without 1 of 11 words").wait_for()
    focused = page.evaluate("() => [document.activeElement.textContent, document.activeElement.ariaPressed]")
    assert focused == ["awful.", "true"], "the focus stays on the word"
    page.keyboard.press("Enter")
    page.get_by_text("nothing removed").wait_for()


def test_all_numbers_can_be_saved(visit, workbench):
    page = visit(ADDRESS)
    page.get_by_text("All numbers, and files to save").click()
    element = page.locator("attention-document")
    element.locator("summary", has_text="Save").click()
    with page.expect_download() as download:
        element.get_by_role("button", name="JSON", exact=True).click()
    saved = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert saved["maps"][1]["weights"][0] == pytest.approx(answer(page, workbench)["word_weights"], abs=1e-5)


def test_an_example_is_one_click_away_and_an_empty_text_is_explained(visit):
    page = visit("/classify?text=")
    page.get_by_text("Paste a text, or take an example").wait_for()
    page.get_by_role("button", name="Irony").click()
    page.locator(".word", has_text="sequel").wait_for()
    assert "sequel" in page.get_by_label("Text to classify").input_value()
    assert "sequel" in page.url
