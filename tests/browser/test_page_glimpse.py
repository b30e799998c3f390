"""The page Glimpse: a path over an image, glimpses that are dragged or moved by keys, and what that changes."""

import json

import pytest
from browser.showing import saved_trace, settle
from PIL import Image

VIEW = "attention-glimpses"


def opened(visit, query="", **options):
    page = visit(f"/glimpse{query}", **options)
    page.locator(f"{VIEW} .picture svg image").first.wait_for()
    settle(page)
    return page


def locations(page):
    return json.loads(page.evaluate("() => new URLSearchParams(location.search).get('locations') ?? '[]'"))


def forced(page, act):
    """What the server answers after an action that forces a glimpse."""

    def is_forced(response):
        return response.url.endswith("/v1/glimpse/at") and "locations" in json.loads(response.request.post_data)

    with page.expect_response(is_forced) as found:
        act()
    answer = found.value.json()
    page.locator("caption", has_text="Probability of").wait_for()
    return answer


def test_a_digit_is_recognized_and_a_glimpse_dragged_elsewhere(visit):
    page = opened(visit, "?example=digit-7")
    page.get_by_text("It says 7").wait_for()
    page.locator(f"{VIEW} .picture").scroll_into_view_if_needed()
    image = page.locator(f"{VIEW} .picture svg").bounding_box()
    side = 340

    def drag():
        start = page.locator(VIEW).evaluate("(view) => [view.trace.values('x')[1], view.trace.values('y')[1]]")
        page.mouse.move(image["x"] + start[0] * side, image["y"] + start[1] * side)
        page.mouse.down()
        page.mouse.move(image["x"] + 0.9 * side, image["y"] + 0.2 * side, steps=5)
        page.mouse.up()

    answer = forced(page, drag)
    ((number, x, y),) = locations(page)
    assert (x, y) == pytest.approx((0.9, 0.2), abs=0.01)
    series = {each["name"]: each["values"] for each in answer["trace"]["series"]}
    assert series["x"][number] == pytest.approx(x, abs=1e-3)
    shown = page.locator("tbody tr td:nth-child(3) data").evaluate_all("(all) => all.map((each) => Number(each.value))")
    seven = answer["labels"].index("7")
    assert shown == pytest.approx([row[seven] for row in answer["beliefs"]], abs=1e-6)
    assert saved_trace(page, "glimpses").series[0].values[number] == pytest.approx(x, abs=1e-3)
    page.reload()
    page.get_by_role("button", name=f"Release glimpse {number + 1}").click()
    page.locator("caption", has_text="Probability of").wait_for(state="detached")
    assert locations(page) == []


def test_the_keys_choose_and_move_a_glimpse(visit):
    page = opened(visit, "?example=digit-3")
    page.locator(f"{VIEW} .picture").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    answer = forced(page, lambda: page.keyboard.press("Shift+ArrowLeft"))
    ((number, x, _),) = locations(page)
    assert number == 1
    assert len(answer["beliefs"]) == 4
    again = forced(page, lambda: page.keyboard.press("Shift+ArrowLeft"))
    assert locations(page)[0][1] == pytest.approx(x - 0.05, abs=2e-3)
    assert again["trace"] != answer["trace"]


def test_keys_that_are_pressed_faster_than_they_are_answered_all_count(visit):
    page = opened(visit, "?example=digit-3")
    page.locator(f"{VIEW} .picture").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    before = page.locator(VIEW).evaluate("(view) => view.trace.values('x')[1]")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowLeft")
    # Answers to the first keys may be given up for that to the last, so none of them is waited for.
    page.locator("caption", has_text="Probability of").wait_for()
    assert locations(page)[0][1] == pytest.approx(before - 0.15, abs=2e-3)


def test_more_glimpses_and_other_images(visit):
    page = opened(visit, "?glimpses=99")
    assert page.locator(VIEW).evaluate("(view) => view.trace.maps[0].height") == 12
    page = opened(visit, "?glimpses=6")
    assert page.locator(VIEW).evaluate("(view) => view.trace.maps[0].height") == 6
    page.get_by_role("button", name="Example: the digit 5").click()
    page.get_by_text("It says 5").wait_for()
    assert "example=digit-5" in page.url


def test_a_glimpse_that_was_moved_on_an_image_of_ones_own_stays_out_of_the_address(visit, tmp_path):
    page = opened(visit, "?example=digit-3")
    Image.new("RGB", (60, 60), "navy").save(tmp_path / "own.png")
    page.locator("input[type=file]").set_input_files(tmp_path / "own.png")
    page.wait_for_function("() => !location.search.includes('example')")
    page.locator(f"{VIEW} .picture").focus()
    page.keyboard.press("Home")
    forced(page, lambda: page.keyboard.press("Shift+ArrowLeft"))
    assert locations(page) == []
