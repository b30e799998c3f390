"""The page Read: stepping through the words, their surprisal, and what was expected."""

from urllib.parse import urlencode

import pytest
from browser.showing import settle

TEXT = "The dog is running over the bridge."
ADDRESS = "/read?" + urlencode({"model": "reader-en", "text": TEXT, "word": 3})


def test_words_are_stepped_through_with_their_surprisal_and_what_was_expected(visit, workbench):
    page = visit(ADDRESS)
    page.locator(".expected li").first.wait_for()
    asked = {"model": "reader-en", "input": TEXT}
    reading = page.request.post(f"{workbench}/v1/read", data=asked).json()["results"][0]
    expected = page.request.post(f"{workbench}/v1/read/expected", data=asked).json()["expected"]

    def check(index):
        about = page.locator(".about-word")
        assert about.locator("b").text_content() == reading["words"][index]
        numbers = about.locator("data").evaluate_all("(all) => all.map((each) => Number(each.value))")
        assert numbers[0] == pytest.approx(reading["surprisals"][index], rel=1e-6)
        assert numbers[1:] == pytest.approx([each["probability"] for each in expected[index]], rel=1e-6)
        assert page.locator("attention-reading .detail b").first.text_content() == reading["words"][index]

    check(3)
    # Neither the word itself nor words that are yet to be read are counted among what it attends to.
    assert page.locator("attention-reading .detail li.quiet").all_text_contents() == []
    page.get_by_role("button", name="Next").click()
    check(4)
    assert "word=4" in page.url
    page.get_by_label("Word", exact=True).fill("2")
    check(1)
    page.locator("attention-reading .picture").focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    check(2)
    page.reload()
    page.locator(".expected li").first.wait_for()
    check(2)


def test_the_bars_are_explained_and_the_layout_is_kept_in_the_address(visit):
    page = visit(ADDRESS)
    page.locator("attention-reading .legend", has_text="bar below a word: how surprising it was").wait_for()
    page.get_by_label("Layout").select_option("lines")
    page.wait_for_function("() => location.search.includes('layout=lines')")
    page.reload()
    page.locator("attention-reading .picture svg").wait_for()
    assert page.get_by_label("Layout").input_value() == "lines"


def test_a_tagger_shows_what_a_word_refers_to_and_one_word_changes_it(visit):
    page = visit("/read")
    page.locator(".about-word", has_text="it is labelled animal.").wait_for()
    page.get_by_text("Labels: it → animal.").wait_for()
    assert page.locator("attention-reading .detail li").first.text_content().startswith("animal")
    page.locator(".trust", has_text="The attention matters here").wait_for()
    page.get_by_role("button", name="It was too wide").click()
    page.locator(".about-word", has_text="it is labelled street.").wait_for()
    assert page.get_by_role("button", name="A garden path").count() == 0, "it is for the language model"


def test_it_plays_to_the_end(visit):
    page = visit(ADDRESS)
    page.locator(".expected li").first.wait_for()
    page.get_by_label("Word", exact=True).fill("7")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_text("word 8 of 8").wait_for()
    page.get_by_role("button", name="Play").wait_for()


def test_what_cannot_be_read_is_explained(visit):
    page = visit("/read?model=reader-en&text=%1F", allow="422")
    page.get_by_role("alert").filter(has_text="There is no word to read").wait_for()
    page.get_by_label("Text to read").fill("")
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_text("Type a sentence, or take an example").wait_for()
    page.get_by_role("button", name="A garden path").click()
    page.locator(".expected li").first.wait_for()
