"""The routes of endpoints answer what their functions give, and explain what they refuse."""

import json

import pytest
from helpers.models import TRANSFORMER, small_translator
from starlette.testclient import TestClient

import regard
from regard.search.options import Search
from regard.serving import limits
from regard.serving.app import create_app
from regard.serving.inputs import read_image
from regard.serving.schemas import PIXEL, plain
from regard.serving.settings import ServerSettings
from regard.systems import registry
from regard.systems.caption.examples import examples as scenes
from regard.systems.recognize.inspection import LayerSpec
from regard.systems.translate.changes import Change
from regard.systems.translate.config import MAX_ALIGNED_TOKENS, MAX_SENTENCE_TOKENS
from regard.systems.translate.inspection import force_word, inspect, move_attention
from regard.trace import Trace
from regard.trace.data_uri import to_data_uri

TEXT = "He is happy."
SCENE = to_data_uri(scenes()[0].image)
DIGIT = to_data_uri(registry.entry("glimpse").examples()[7].image)
SHORT = Search(max_length=4)
BOXES = ((0.1, 0.1, 0.5, 0.5),)
MODELS: dict[str, regard.Translator] = {}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    small_translator(**TRANSFORMER).save(folder)
    MODELS["small"] = regard.load(folder, device="cpu")
    with TestClient(create_app(folders=[str(folder)]), base_url="http://localhost") as made:
        yield made


def model_of(name):
    return MODELS.get(name) or MODELS.setdefault(name, regard.load(name, device="cpu"))


def posted(client, path, **body):
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def assert_close(found, expected):
    """Equal, but for the rounding of numbers."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_close(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        assert found == (pytest.approx(expected, abs=1e-3) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("path", "model", "body", "arguments"),
    [
        ("read/expected", "reader-en", {"input": "The dog is running.", "top": 3}, {"text": "The dog is running."}),
        ("classify/without", "reviews-en", {"input": "I loved it. It was awful.", "removed": [1]}, {}),
        ("caption/inspect", "scenes", {"input": SCENE}, {}),
        ("caption/inspect", "scenes", {"input": SCENE, "text": "a zzqx moon, zzqx"}, {}),
        ("caption/inspect", "scenes-hard", {"input": SCENE, "seed": 1, "beam": 2}, {}),
        ("caption/hide", "scenes", {"input": SCENE, "boxes": [[*BOXES[0]]], "example": "scene-1"}, {"boxes": BOXES}),
        ("caption/maps", "scenes", {"input": SCENE, "max_maps": 2}, {}),
        ("glimpse/at", "glimpse-digits", {"input": DIGIT}, {}),
        (
            "glimpse/at",
            "glimpse-digits",
            {"input": DIGIT, "locations": {"1": [0.9, 0.1]}},
            {"locations": {1: (0.9, 0.1)}},
        ),
        ("tape/random", "tape-copy", {"length": 31, "seed": 5}, {}),
        ("tape/random", "tape-recall", {}, {}),
        ("recognize/table", None, {"layers": [{"kernel": 5}]}, {"layers": [LayerSpec(kernel=5)]}),
        ("recognize/networks", None, None, {}),
        ("recognize/maps", "digits", {"input": DIGIT, "max_maps": 4}, {}),
        ("translate/inspect", "en-fr", {"input": f"{TEXT} She sleeps.", "sentence": 1}, {}),
        (
            "translate/inspect",
            "small",
            {"input": "a dog", "search": {"max_length": 4}},
            {"search": SHORT},
        ),
        ("translate/change", "en-fr", {"input": TEXT, "change": {"align": "hard"}}, {"change": Change(align="hard")}),
        (
            "translate/change",
            "small",
            {"input": "a dog", "change": {"heads": ["cross 1.1"]}, "search": {"max_length": 4}, "words": 0},
            {"change": Change(heads=("cross 1.1",)), "search": SHORT},
        ),
        ("translate/tree", "en-fr", {"input": TEXT, "search": {"beam": 3}}, {"search": Search(beam=3)}),
        (
            "translate/compare",
            "en-fr",
            {"input": TEXT, "second": "fa-en", "second_change": {"heads": ["cross 1.2"]}},
            {"second_change": Change(heads=("cross 1.2",))},
        ),
        ("translate/gold", "en-fr", {"direction": "en-fr", "number": 3}, {}),
        ("translate/align", "en-fr", {"source": "He is happy .", "target": "Il est heureux ."}, {}),
    ],
)
def test_a_route_answers_what_its_function_gives(client, path, model, body, arguments):
    verb, name = path.split("/")
    function = next(each for each in registry.entry(verb).endpoints if each.endpoint.name == name)
    if body is None:
        found = client.get(f"/v1/{path}").json()
    else:
        found = posted(client, path, **body, **({"model": model} if model else {}))
    given = {key: value for key, value in (body or {}).items() if key not in ("second", "input")} | arguments
    if "input" in (body or {}):
        taken = body["input"]
        is_image = taken.startswith("data:")
        given[function.endpoint.input] = read_image(taken, "input", ServerSettings()) if is_image else taken
    models = [model_of(each) for each in (model, (body or {}).get("second")) if each]
    expected = plain(function(*models, **given))
    expected = {function.endpoint.answer: expected} if function.endpoint.answer else expected
    assert_close(found, ({"model": model} if model else {}) | json.loads(json.dumps(expected)))


def test_changes_of_a_translation_are_those_of_the_functions(client):
    model, path = model_of("en-fr"), "translate/change"
    found = inspect(model, TEXT)
    spoken = [token for word in found.words for token in word.tokens]
    for change in (force_word(model, found, 2, "triste"), move_attention(model, found, 1, {0: 1.0})):
        attention = {str(step): list(row) for step, row in change.attention.items()}
        body = {"input": TEXT, "change": {"prefix": list(change.prefix), "word": change.word, "attention": attention}}
        answer, known = posted(client, path, **body), posted(client, path, **body, before=spoken)
        assert_close(known, answer)
        after = inspect(model, TEXT, change)
        assert (answer["after"]["text"], answer["after"]["tokens"]) == (after.text, list(after.tokens))
        assert answer["after"]["log_prob"] == pytest.approx(after.log_prob, abs=1e-4)
        assert Trace.from_dict(answer["after"]["trace"]).kind == "translation"


def test_an_example_brings_its_gold_boxes(client):
    plain_one = posted(client, "caption/inspect", model="scenes", input=SCENE)["caption"]
    assert plain_one["text"] == scenes()[0].caption
    assert not plain_one["trace"].get("boxes")
    given = posted(client, "caption/inspect", model="scenes", input=SCENE, text="a blue star", example="scene-1")
    assert Trace.from_dict(given["caption"]["trace"]).boxes
    assert given["caption"]["score"] < plain_one["score"]


def test_values_that_take_long_are_streamed_one_by_one_and_count_as_one_request(client):
    def counted():
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if 'total{status="ok",verb="tape/lengths"}' in line)

    body = {"model": "tape-recall", "per_length": 1}
    scores, before = posted(client, "tape/lengths", **body)["scores"], counted()
    lengths = registry.entry("tape").part("inspection").length_scores(model_of("tape-recall"), per_length=1)
    assert_close(scores, json.loads(json.dumps(plain(lengths))))
    answer = client.post("/v1/tape/lengths", json=body, headers={"accept": "text/event-stream"})
    events = [line.split("\n") for line in answer.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert names == ["progress", *["result", "progress"] * len(scores), "done"]
    found = [json.loads(data.removeprefix("data: ")) for _, data in events]
    assert [each["result"] for each in found if "result" in each] == scores
    assert [each["done"] for each in found if "done" in each] == list(range(len(scores) + 1))
    assert counted() == before + 1


def test_examples_name_models_that_are_served(client):
    served = {each["name"] for each in client.get("/v1/models").json()["models"]}
    brought = [each for each in registry.entries() if each.examples is not None]
    assert len(brought) >= 3
    for each in brought:
        found = client.get(f"/v1/{each.name}/examples").json()["examples"]
        assert found == json.loads(json.dumps(plain(each.examples())))
        assert {one["model"] for one in found if one.get("model")} <= served
        assert all(one["image"].startswith("data:image/") and one["caption"] for one in found if "image" in one)


def test_faithfulness_is_that_of_the_function(client):
    body = {"verb": "translate", "input": "He is happy .", "options": {"beam": 2}}
    expected = regard.faithfulness(model_of("en-fr"), "He is happy .", beam=2)
    assert_close(posted(client, "faithfulness", **body), {"model": "en-fr", **plain(expected)})
    assert posted(client, "faithfulness", verb="tape", input=[])["model"] == "tape-copy", "an empty tape is one"


HEADS, STEP = {"heads": ["cross 1.1"]}, {"attention": {"1": [1.0]}}


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("translate/inspect", {"input": "  "}, "nothing to translate"),
        ("translate/inspect", {"input": TEXT, "sentence": 3}, "1 sentence, counted from 0"),
        ("translate/inspect", {"input": TEXT, "model": "digits"}, "model: Input should be 'babel', 'en-de'"),
        ("translate/inspect", {"input": "dog " * 200, "model": "small"}, "at most 128 tokens"),
        ("translate/inspect", {"input": TEXT, "search": {"sample": True}}, "searches with a beam"),
        ("translate/change", {"input": TEXT, "change": HEADS}, "Only a Transformer has heads"),
        ("translate/change", {"input": TEXT, "change": STEP}, "The attention of step 1 needs"),
        ("translate/change", {"input": TEXT, "change": {"prefix": [999_999]}}, "target vocabulary"),
        ("translate/change", {"input": TEXT, "change": {}, "before": [999_999]}, "target vocabulary"),
        ("translate/tree", {"input": TEXT, "search": {"beam": 17}}, "search.beam: Input should be less"),
        ("translate/gold", {"direction": "en-en"}, "two of the languages"),
        ("translate/align", {"source": " ", "target": "a"}, "Both sentences need a word"),
        ("caption/inspect", {"input": SCENE, "model": "scenes", "seed": 1}, "Only hard attention draws"),
        ("caption/inspect", {"input": SCENE, "seed": 1, "text": "a"}, "not both"),
        ("caption/hide", {"input": SCENE, "boxes": []}, "boxes: List should have at least 1 item"),
        ("glimpse/at", {"input": DIGIT, "locations": {"9": [0.5, 0.5]}}, "from 0 to 3; got 9"),
        ("glimpse/at", {"input": DIGIT, "locations": {"x": [0.5, 0.5]}}, "should match pattern"),
        ("tape/random", {"length": 999}, "at most 200 vectors"),
        ("tape/random", {"model": "tape-recall", "length": 1}, "shortest"),
        ("recognize/table", {"layers": [{"kernel": 0}]}, "greater than or equal to 1"),
        ("recognize/maps", {"input": SCENE, "model": "scenes"}, "model: Input should be 'digits'"),
        ("classify/without", {"input": "A film.", "removed": [9]}, "there is no word 9"),
        ("read/expected", {"input": "A dog.", "top": 51}, "less than or equal to 50"),
        ("faithfulness", {"verb": "translate", "input": TEXT, "model": "photo-en"}, "model: Input should be"),
        ("faithfulness", {"verb": "translate", "input": ["He", "she"]}, "valid string"),
        ("faithfulness", {"verb": "translate", "input": TEXT, "options": {"beams": 2}}, "Extra inputs"),
        ("faithfulness", {"verb": "tape", "input": [[0, 1]]}, "bits"),
        ("faithfulness", {"verb": "tape", "input": "0110"}, "bits"),
        ("faithfulness", {"verb": "classify", "input": " "}, "word"),
        ("faithfulness", {"verb": "read", "input": {"premise": "A dog.", "hypothesis": "It."}}, ""),
        ("faithfulness", {"verb": "caption", "input": "data:image/png;base64,AAAA"}, "not an image"),
    ],
)
def test_what_cannot_be_answered_is_explained(client, path, body, says):
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 422, answer.text[:300]
    assert says in answer.json()["error"]["message"]


def numbers_without_bound(schema, parts, place=""):
    """The locations of a request that take a number, a text or a list of any size."""
    if "$ref" in schema:
        yield from numbers_without_bound(parts[schema["$ref"].rpartition("/")[2]], parts, place)
        return
    kind, is_chosen = schema.get("type"), any(name in schema for name in ("enum", "const", "pattern"))
    limit = {"integer": "maximum", "number": "maximum", "string": "maxLength", "array": "maxItems"}.get(kind)
    if limit and not is_chosen and limit not in schema and f"exclusive{limit.capitalize()}" not in schema:
        yield place
    if (
        kind == "object"
        and "additionalProperties" in schema
        and "properties" not in schema
        and "maxProperties" not in schema
    ):
        yield place
    for name, each in schema.get("properties", {}).items():
        yield from numbers_without_bound(each, parts, f"{place}.{name}")
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from numbers_without_bound(each, parts, place)


def test_every_number_of_a_request_has_a_bound_which_the_document_names(client):
    document = client.get("/openapi.json").json()
    parts = document["components"]["schemas"]
    for path, route in document["paths"].items():
        if "post" in route:
            body = route["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert not list(numbers_without_bound(body, parts, path))
    for name, largest in limits.LARGEST.items():
        assert f"`{name}` {largest:,}" in document["info"]["description"]
    assert PIXEL in json.dumps(parts["CaptionHideRequest"]["examples"])
    for name in ("inspect", "change", "tree", "compare"):
        about = document["paths"][f"/v1/translate/{name}"]["post"]["description"]
        assert f"at most {MAX_SENTENCE_TOKENS} tokens" in about
    assert f"above {MAX_ALIGNED_TOKENS} tokens" in document["paths"]["/v1/translate/align"]["post"]["description"]


def test_documents_and_word_links_are_answered(client):
    page = "<p>The <b>red</b> house.</p>"
    found = posted(client, "translate", input=page, options={"markup": "html"})["results"][0]
    assert found["text"] == "<p>La maison <b>rouge</b>.</p>"
    assert found["note"] == ""
    links = posted(client, "translate", input="The red house.", options={"links": True})["results"][0]
    assert (links["links"], links["trace"]) == ([[0, 0], [1, 2], [2, 1]], None)
