"""The page Caption: words over the image, hidden parts, a second model, captions of one's own, images from a file."""

import base64
import json

import pytest
from browser.showing import answer_of, saved_trace, shown_numbers
from PIL import Image

from regard.data.images import open_image

RESULT = ".page-caption attention-image"


def opened(visit, query="", **options):
    page = visit(f"/caption{query}", **options)
    page.locator(f"{RESULT} .picture svg image").first.wait_for()
    return page


def test_words_are_shown_over_an_example_and_their_numbers_are_those_of_the_api(visit):
    page = opened(visit)
    pick = page.get_by_role("button", name="Example: a yellow ring right of")
    caption = answer_of(page, "/v1/caption/inspect", pick.click)["caption"]
    page.locator(".caption", has_text=caption["text"]).wait_for()
    assert "example=scene-7" in page.url
    box = page.locator(f"{RESULT} .picture")
    box.focus()
    page.keyboard.press("Home")
    weights = caption["trace"]["maps"][0]["weights"][0]
    numbers = shown_numbers(page, "image")
    assert max(numbers.values()) == pytest.approx(max(weights), abs=1e-5)
    assert saved_trace(page, "image").target == tuple(caption["text"].split())
    assert caption["trace"]["boxes"], "scenes have gold boxes"
    assert page.get_by_text("Blue frame:").count() == 1


def test_a_model_is_shown_an_image_of_the_kind_that_it_knows(visit, tmp_path):
    page = opened(visit, "?model=photo-en")
    page.wait_for_function("() => location.search.includes('example=astronaut')")
    assert page.locator(".mismatch").text_content() == ""
    page.get_by_label("Model", exact=True).select_option("scenes")
    page.get_by_text("scenes was trained on generated shapes, and this is a photo").wait_for()
    Image.new("RGB", (60, 40), "navy").save(tmp_path / "own.png")
    page.locator("input[type=file]").set_input_files(tmp_path / "own.png")
    page.wait_for_function("() => location.search.includes('model=photo-en')")
    assert page.locator(".mismatch").text_content() == "", "an image of one's own is taken for a photograph"
    page.locator(".foreign", has_text="This image is unlike those that the model knows").wait_for()


def test_a_part_is_hidden_by_dragging_and_by_keys(visit):
    page = opened(visit, "?example=scene-1")
    boxer = page.locator(".boxer")
    boxer.scroll_into_view_if_needed()
    place = boxer.bounding_box()

    def drag():
        page.mouse.move(place["x"] + 0.01 * place["width"], place["y"] + 0.35 * place["height"])
        page.mouse.down()
        page.mouse.move(place["x"] + 0.25 * place["width"], place["y"] + 0.65 * place["height"], steps=4)
        page.mouse.up()

    found = answer_of(page, "/v1/caption/hide", drag)
    page.locator(".edits del").first.wait_for()
    assert "star" in found["before"]["text"]
    assert "star" not in found["after"]["text"]
    shown = float(page.locator(".change").get_attribute("value"))
    assert shown == pytest.approx(found["change"])
    assert json.loads(page.evaluate("() => new URLSearchParams(location.search).get('box')"))[0] == pytest.approx(
        0.01, abs=0.01
    )
    boxer.focus()
    page.keyboard.press("Delete")
    page.locator(".edits").wait_for(state="detached")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    again = answer_of(page, "/v1/caption/hide", lambda: page.keyboard.press("Enter"))
    page.locator(".edits").wait_for()
    assert again["before"]["text"] == found["before"]["text"]


def test_hard_attention_stands_beside_soft_and_draws_again(visit):
    page = opened(visit, "?example=scene-1&model=scenes&other=scenes-hard")
    page.get_by_role("button", name="Draw again").wait_for()
    assert page.locator(RESULT).count() == 2
    first = answer_of(page, "/v1/caption/inspect", lambda: page.get_by_role("button", name="Draw again").click())
    page.get_by_text("Cells drawn with seed 1").wait_for()
    assert "seed=1" in page.url
    assert page.locator(".caption").nth(1).text_content() == first["caption"]["text"]
    page.get_by_role("button", name="Most probable cells").click()
    page.get_by_text("The most probable cell for each word").wait_for()


def test_a_caption_of_ones_own_and_an_image_of_ones_own(visit, tmp_path):
    page = opened(visit, "?example=scene-1")
    page.get_by_role("button", name="Use the right caption").click()
    number = page.locator(".number").last
    number.wait_for()
    right = float(number.get_attribute("value"))
    page.get_by_label("Your caption").fill("a zzqx moon, zzqx")
    page.keyboard.press("Enter")
    page.get_by_text("scenes does not know “zzqx”, “,”.").wait_for()
    page.get_by_label("Your caption").fill("a yellow moon")
    found = answer_of(page, "/v1/caption/inspect", lambda: page.keyboard.press("Enter"))["caption"]
    page.locator(".caption", has_text="a yellow moon").wait_for()
    log = next(each["values"] for each in found["trace"]["series"] if each["name"] == "log_prob")
    assert float(number.get_attribute("value")) == pytest.approx(sum(log), abs=1e-4)
    assert sum(log) < right
    assert page.get_by_text("does not know").count() == 0
    Image.new("RGB", (1500, 900), "navy").save(tmp_path / "own.png")
    page.get_by_label("Model", exact=True).select_option("scenes")
    page.locator("input[type=file]").set_input_files(tmp_path / "own.png")
    # Images stay out of the address.
    page.wait_for_function("() => !location.search.includes('example')")
    (tmp_path / "text.png").write_text("no image")
    page.locator("input[type=file]").set_input_files(tmp_path / "text.png")
    page.get_by_text("is not an image that the browser can open").wait_for()
    # What belongs to an image of one's own is not applied to an example by a reload.
    page.locator(".boxer").focus()
    page.keyboard.press("Enter")
    page.locator(".edits").wait_for()
    assert "box" not in page.url
    page.locator(".thumbnails button").first.click()
    assert page.get_by_text("is not an image that the browser can open").count() == 0


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_an_image_is_dropped_or_pasted(visit, way):
    page = opened(visit, "?example=scene-1")
    give = """async (way) => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 30 });
        canvas.getContext("2d").fillRect(5, 5, 20, 10);
        const blob = await new Promise((done) => canvas.toBlob(done));
        const data = new DataTransfer();
        data.items.add(new File([blob], "own.png", { type: "image/png" }));
        const [root, event] = way === "drop"
            ? [document.querySelector(".dropzone"), new DragEvent("drop", { dataTransfer: data, cancelable: true })]
            : [document, new ClipboardEvent("paste", { clipboardData: data })];
        root.dispatchEvent(event);
    }"""
    caption = answer_of(page, "/v1/caption/inspect", lambda: page.evaluate(give, way))
    assert caption["model"] == "photo-en"
    page.locator(".caption", has_text=caption["caption"]["text"]).wait_for()
    assert page.locator(".thumbnails [aria-pressed=true]").count() == 0


def test_what_is_transparent_in_an_image_of_ones_own_is_white(visit, tmp_path):
    page = opened(visit, "?example=scene-1")
    Image.new("RGBA", (300, 200), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    with page.expect_request("**/v1/caption/inspect") as sent:
        page.locator("input[type=file]").set_input_files(tmp_path / "clear.png")
    image = open_image(base64.b64decode(sent.value.post_data_json["input"].partition(",")[2]))
    assert image.getextrema() == ((255, 255), (255, 255), (255, 255))


def test_all_views_of_an_image_wait_for_it_and_few_images_are_kept(visit):
    page = opened(visit, "?example=scene-1")
    called, kept = page.evaluate(
        """async () => {
            const { decoded } = await import("/web/image.js");
            const uri = (shade) => {
                const canvas = document.createElement("canvas");
                canvas.getContext("2d").fillStyle = `rgb(${shade}, 9, 9)`;
                canvas.getContext("2d").fillRect(0, 0, 300, 150);
                return canvas.toDataURL();
            };
            const ready = (shade) => new Promise((done) => decoded(uri(shade), done));
            const late = new Promise((_, fail) => setTimeout(() => fail(new Error("not all are told")), 60000));
            await Promise.race([Promise.all([ready(0), ready(0), ready(0)]), late]);
            const first = decoded(uri(0), () => {});
            for (let shade = 1; shade <= 40; shade++) await ready(shade);
            return [first instanceof Image, [0, 40].map((shade) => decoded(uri(shade), () => {}) instanceof Image)];
        }"""
    )
    assert called
    assert kept == [False, True]
