"""The page Tape: a machine at work on sequences of any length, or on bits of one's own."""

import json

import pytest
from browser.showing import answer_of, saved_trace, settle

VIEW = "attention-tape"
EVENTS = "text/event-stream"


def opened(visit, query="", **options):
    page = visit(f"/tape{query}", **options)
    page.locator(f"{VIEW} .picture svg").first.wait_for()
    settle(page)
    return page


def test_the_slider_goes_beyond_the_training_and_the_numbers_are_those_of_the_api(visit):
    page = opened(visit, "?model=tape-copy&length=5")
    slider = page.get_by_label("Length of the sequence")
    slider.focus()
    answer = answer_of(page, "/v1/tape/random", lambda: slider.fill("33"))
    page.get_by_text("1.6 times the longest of its training").wait_for()
    assert (answer["length"], answer["trained"]) == (33, [1, 20])
    assert page.get_by_text("Longer than anything in training, which ended at 20.").is_visible()
    assert float(page.locator(".verdict data").first.get_attribute("value")) == pytest.approx(answer["result"]["bits"])
    assert "length=33" in page.url
    trace = saved_trace(page, "tape")
    assert len(trace.axis("steps")) == 67
    assert {"write 1 gate", "read 1 shift"} <= {series.name for series in trace.series}
    texts = page.locator(f"{VIEW} .picture svg text").all_text_contents()
    assert {"gates", "shifts", "memory over time"} <= set(texts)


def test_keys_step_through_time_and_tell_the_gates(visit):
    page = opened(visit, "?length=4")
    page.locator(f"{VIEW} .picture").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    detail = page.locator(f"{VIEW} .detail").text_content()
    assert "Step 2" in detail
    assert "write 1 gate" in detail


def test_bits_of_ones_own_and_other_sequences(visit):
    page = opened(visit, "?length=3", allow="status of 422")
    page.get_by_label("Or bits of your own").fill("01100101 10010110")
    page.keyboard.press("Enter")
    page.get_by_text("All 16 bits right. 2 rows of your own.").wait_for()
    page.get_by_role("button", name="Another sequence").click()
    page.get_by_text("All 24 bits right. Task copy, 3 vectors").wait_for()
    page.get_by_label("Or bits of your own").fill("0110")
    # A refusal of the server is a failed request, which browsers report.
    with page.expect_console_message():
        page.keyboard.press("Enter")
    page.get_by_text("rows of 8 numbers").wait_for()
    # What the page showed before is not an answer to this.
    page.locator(f"{VIEW}, .trust, .verdict").first.wait_for(state="detached")


def test_bits_of_ones_own_take_the_slots_that_are_chosen(visit):
    page = opened(visit, "?rows=01100101", allow="status of 422")
    page.get_by_text("All 8 bits right. 1 row of your own.").wait_for()
    assert "20 vectors Within the lengths" in page.locator(".slider").text_content()
    page.get_by_label("Slots of the memory").select_option("64")
    page.wait_for_function(f"() => document.querySelector('{VIEW}')?.trace.axis('slots').labels.length === 64")
    assert "rows=01100101" in page.url
    page.get_by_label("Length of the sequence").fill("100")
    page.get_by_text("Take more slots, or a shorter sequence.").wait_for()
    page.reload()
    page.get_by_text("Take more slots, or a shorter sequence.").wait_for()
    assert "100 vectors Longer than" in page.locator(".slider").text_content()
    page.get_by_label("Slots of the memory").select_option("256")
    page.get_by_text("a memory of 256 slots").wait_for()


@pytest.mark.parametrize(("length", "shown"), [("99999", 200), ("2.5", 3), ("-4", 1)])
def test_a_length_in_the_address_that_is_not_allowed_becomes_the_nearest(visit, length, shown):
    page = opened(visit, f"?length={length}&seed=-1&slots=7")
    page.get_by_text(f"Task copy, {shown} vectors").wait_for()
    assert f"length={shown}" in page.url


def test_scores_by_length_come_one_by_one(visit, workbench):
    page = opened(visit, "?model=tape-recall", width=360)
    page.get_by_role("button", name="Measure").click()
    # Browsers do not keep the body of a stream, so that the server is asked once more.
    body = {"model": "tape-recall", "per_length": 8}
    scores = page.request.post(f"{workbench}/v1/tape/lengths", data=body).json()["scores"]
    cells = page.locator("tbody td:nth-child(3) data")
    cells.nth(len(scores) - 1).wait_for()
    shown = cells.evaluate_all("(all) => all.map((each) => Number(each.value))")
    assert len(shown) == 7
    assert shown == pytest.approx([score["bits_right"] for score in scores])
    page.get_by_role("button", name="12", exact=True).click()
    page.get_by_text("12 items, 2.0 times").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def answering(text):
    return lambda route: route.fulfill(body=text, content_type=EVENTS)


def test_a_measurement_that_breaks_off_keeps_its_scores_and_tries_again(visit):
    page = opened(visit, "?model=tape-copy&length=2")
    score = {"length": 20, "bits_right": 99.5, "exact": 90.0, "bits": 0.1}
    began = [("progress", {"done": 0, "of": 7}), ("result", {"number": 0, "result": score})]
    told = {"message": "The request waited longer than 30 seconds. Try again later."}
    for end, message in (([("error", told)], told["message"]), ([], "The server does not answer")):
        text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in began + end)
        page.route("**/v1/tape/lengths", answering(text))
        page.get_by_role("button", name="Measure" if end else "Try again").click()
        page.get_by_role("alert").get_by_text(message).wait_for()
        assert page.locator(".lengths td data").first.text_content() == "99.5 %"
        page.unroute("**/v1/tape/lengths")
    page.get_by_role("button", name="Try again").click()
    page.locator(".lengths tbody tr").nth(6).wait_for()
    assert page.get_by_role("alert").count() == 0


def test_on_a_phone_the_notes_of_the_panels_are_read_to_their_end(visit):
    page = opened(visit, "?length=5", width=360)
    picture = page.locator(f"{VIEW} .picture svg").bounding_box()
    boxes = [each.bounding_box() for each in page.locator(f"{VIEW} .picture svg text").all()]
    assert max(box["x"] + box["width"] for box in boxes) <= picture["x"] + picture["width"]
