"""A static site: models in a real browser, from a disk and from a static host, answer as in Python."""

import functools
import http.server
import json
import os
import threading

import numpy as np
import pytest

import regard
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.site.build import build_site
from regard.site.runtime import FILES, runtime_folder
from regard.systems import registry
from regard.systems.folder import find_model
from regard.systems.translate.examples import BABEL
from regard.trace.data_uri import to_data_uri

MODELS = ("babel", "reviews-en", "digits", "scenes-hard")
TEXTS = [
    "I don't know where you bought that book.", "L'homme n'a   pas\n vu (le) chat... C'est John's 3.5!",
    "naïve 東京 😀👍🏽", "the dog 's 'tis rock'n'roll ''quoted'' --- ???",
    "A\u200cB \u00adsoft e\u0301 ﬁ İstanbul \u017f's '\u017f", "", "  ",
    "من این کتاب را دیروز خریدم.", "<s> </s> <unk> <0x41>",
]  # fmt: skip
SENTENCES = (
    *BABEL,
    "the cat sleeps .",
    "a woman who reads will see the big city of the king .",
    "they do not know us .",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    try:
        runtime_folder()
    except OptionError as error:
        refuse = pytest.fail if os.environ.get("REGARD_BROWSER") == "required" else pytest.skip
        refuse(f"The runtime of the browser cannot be had here: {error}")
    return build_site(tmp_path_factory.mktemp("site") / "site", MODELS, precision="float32")


@pytest.fixture(scope="module")
def page(browser, site):
    opened, problems = browser.new_page(), []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
    opened.goto((site / "index.html").as_uri())
    yield opened
    opened.close()
    assert problems == []


def answer(page, model, given, options=None):
    """What a model answers in the page, for a text or an image as a data URI."""
    return page.evaluate(
        """async ([name, given, options]) => {
          const image = given.startsWith("data:") && Object.assign(new Image(), { src: given });
          if (image) await image.decode();
          return (await modelOf(name)).answer(image ? await canvasOf(image) : given, options ?? {});
        }""",
        [model, given, options],
    )


def assert_same_trace(found, right, tolerance):
    right = json.loads(right.to_json())
    assert found["axes"] == right["axes"]
    for one, other in zip(found["maps"], right["maps"], strict=True):
        assert {**one, "weights": 0} == {**other, "weights": 0}
        np.testing.assert_allclose(one["weights"], other["weights"], atol=tolerance)
    assert [each["name"] for each in found["series"]] == [each["name"] for each in right["series"]]
    for one, other in zip(found["series"], right["series"], strict=True):
        np.testing.assert_allclose(one["values"], other["values"], atol=10 * tolerance)


@pytest.mark.parametrize("name", ["en-fr", "fa-en", "reviews-en", "babel"])
def test_tokenizers_give_the_same_ids(page, name, tmp_path):
    own = next(find_model(name).glob("*tokenizer.json"))
    tokenizer = Tokenizer.load(own)
    written = json.loads(own.read_text(encoding="utf-8"))
    engine = written["engine"] | {"normalizer": {"type": "Lowercase"} if written["lowercase"] else None}
    found = page.evaluate(
        """([engine, texts]) => {
          const tokenizer = new Tokenizer(engine);
          return texts.map((text) => tokenizer.encode(text)).map((ids) => [ids, tokenizer.decode(ids)]);
        }""",
        [engine, TEXTS],
    )
    assert found == [[tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text))] for text in TEXTS]


@pytest.mark.parametrize("beam", [1, 5])
def test_translations_are_those_of_python(page, beam):
    model = regard.load("babel", device="cpu")
    for text in SENTENCES:
        (found,) = answer(page, "babel", text, {"beam": beam})
        right = model.translate(text, beam=beam)
        assert found["text"] == right.text
        assert_same_trace(found["trace"], right.trace, 1e-4)


def test_captions_are_those_of_python(page):
    model = regard.load("scenes-hard", device="cpu")
    for example in registry.entry("caption").examples()[:3]:
        (found,) = answer(page, "scenes-hard", to_data_uri(example.image))
        assert found["text"] == model.caption(example.image).text
        assert found["trace"]["image"].startswith("data:image/jpeg")


def test_digits_and_reviews_are_those_of_python(page):
    digits, reviews = regard.load("digits", device="cpu"), regard.load("reviews-en", device="cpu")
    for example in registry.entry("recognize").examples():
        (found,) = answer(page, "digits", to_data_uri(example.image))
        right = digits.recognize(example.image).predictions[0]
        assert found["text"] == right.label
        assert found["classes"][0][1] == pytest.approx(right.probability, abs=1e-3)
    for example in registry.entry("classify").examples():
        (found,) = answer(page, "reviews-en", example.text)
        right = reviews.classify(example.text)
        assert dict(found["classes"]) == pytest.approx(right.probabilities, abs=1e-3)
        assert_same_trace(found["trace"], right.trace, 1e-3)


def test_a_visitor_translates_draws_and_sees_attention(page):
    page.locator("nav button", has_text="babel").click()
    page.locator("textarea").fill(SENTENCES[0])
    page.get_by_role("button", name="Translate", exact=True).click()
    page.locator("section[data-answers] attention-view").wait_for()
    assert page.locator("attention-view").evaluate("view => view.shown.localName") == "attention-matrix"
    page.locator("nav button", has_text="digits").click()
    canvas = page.locator("canvas").bounding_box()
    page.mouse.move(canvas["x"] + 140, canvas["y"] + 40)
    page.mouse.down()
    page.mouse.move(canvas["x"] + 140, canvas["y"] + 240, steps=8)
    page.mouse.up()
    page.get_by_role("button", name="Recognize").click()
    page.locator("section[data-answers] .answer").wait_for()
    assert page.locator("main .answer").text_content() == "1"
    page.locator("nav button", has_text="reviews-en").click()
    page.get_by_role("button", name="Example 2").click()
    page.locator("section[data-answers] attention-view").wait_for()


def test_a_static_host_serves_the_same(browser, site):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened = browser.new_page()
        opened.goto(f"http://127.0.0.1:{server.server_address[1]}/#babel")
        (found,) = answer(opened, "babel", SENTENCES[0])
        opened.close()
        server.shutdown()
    assert found["text"] == regard.load("babel", device="cpu").translate(SENTENCES[0]).text


def test_a_site_replaces_only_a_site(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(DataError, match="holds no site of regard"):
        build_site(tmp_path, ["digits"], runtime=str(runtime_folder()))


def test_another_runtime_is_refused(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text("other")
    with pytest.raises(OptionError, match="is not that of onnxruntime-web"):
        runtime_folder(str(tmp_path))
    with pytest.raises(OptionError, match=r"holds no ort.wasm.min.js"):
        runtime_folder(str(tmp_path / "none"))


def test_a_model_that_pages_cannot_run_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"models that tape do not run in a page yet|cannot be exported|not exported"):
        build_site(tmp_path / "out", ["tape-copy"], runtime=str(runtime_folder()))
