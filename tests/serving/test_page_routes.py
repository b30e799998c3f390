"""The routes of the pages Caption, Glimpse, Tape and Convolution answer what the functions behind them give."""

import json
from dataclasses import asdict

import pytest
from fastapi.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.systems.caption.inspection import caption_without
from regard.systems.glimpse.inspection import glimpse_at
from regard.systems.tape.inspection import length_scores, random_tape
from regard.trace import Trace
from regard.trace.data_uri import to_data_uri


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), base_url="http://localhost") as made:
        yield made


@pytest.fixture(scope="module")
def scene():
    from regard.systems.caption.examples import scene_examples

    example = scene_examples()[0]
    return example, to_data_uri(example.image)


def posted(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refusal(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code in (404, 422), answer.text
    return answer.json()["error"]["message"]


def test_a_part_of_an_image_is_hidden(client, scene):
    example, uri = scene
    box = dict(zip(("left", "top", "right", "bottom"), example.gold[3][0], strict=True))
    found = posted(client, "/v1/caption/hide", model="scenes", input=uri, boxes=[box], example=example.name)
    model = regard.load("scenes", device="cpu")
    from regard.serving.inputs import read_inputs
    from regard.serving.settings import ServerSettings

    (image,) = read_inputs(type(model), uri, ServerSettings())
    expected = caption_without(model, image, [example.gold[3][0]])
    assert (found["before"]["text"], found["after"]["text"]) == (expected.before.text, expected.after.text)
    assert found["change"] == pytest.approx(expected.change, abs=1e-3)
    assert [word["word"] for word in found["words"]] == [word.word for word in expected.words]
    assert found["before"]["trace"]["boxes"], "the gold boxes of the example"


def test_captions_are_given_and_drawn(client, scene):
    example, uri = scene
    plain = posted(client, "/v1/caption/look", model="scenes", input=uri)["caption"]
    assert plain["text"] == example.caption
    assert "boxes" not in plain["trace"] or not plain["trace"]["boxes"]
    given = posted(client, "/v1/caption/look", model="scenes", input=uri, text="a blue moon", example=example.name)
    assert Trace.from_dict(given["caption"]["trace"]).target == ("a", "blue", "moon")
    assert given["caption"]["score"] < plain["score"]
    assert given["unknown"] == []
    strange = posted(client, "/v1/caption/look", model="scenes", input=uri, text="a zzqx moon, zzqx")
    assert strange["unknown"] == ["zzqx", ","]
    one, same = (
        posted(client, "/v1/caption/look", model="photo-en-hard", input=uri, seed=seed)["caption"] for seed in (1, 1)
    )
    assert one == same
    assert "Only hard attention draws" in refusal(client, "/v1/caption/look", model="scenes", input=uri, seed=1)
    assert "not both" in refusal(client, "/v1/caption/look", model="scenes", input=uri, seed=1, text="a")


def test_glimpses_are_put_somewhere(client):
    example = client.get("/v1/glimpse/examples").json()["examples"][7]
    usual = posted(client, "/v1/glimpse/at", input=example["image"])
    assert usual["label"] == "7"
    forced = posted(client, "/v1/glimpse/at", input=example["image"], places=[{"glimpse": 1, "x": 0.9, "y": 0.1}])
    model = regard.load("glimpse-digits", device="cpu")
    from regard.systems.glimpse.examples import digit_examples

    expected = glimpse_at(model, digit_examples()[7].image, {1: (0.9, 0.1)})
    assert forced["beliefs"] == [pytest.approx(row, abs=1e-4) for row in expected.beliefs]
    assert len(forced["beliefs"]) == 4
    place = {"glimpse": 9, "x": 0.5, "y": 0.5}
    assert "from 0 to 3; got 9" in refusal(client, "/v1/glimpse/at", input=example["image"], places=[place])


def test_tapes_of_any_length(client):
    found = posted(client, "/v1/tape/random", length=31, seed=5)
    expected = random_tape(regard.load("tape-copy", device="cpu"), 31, seed=5)
    assert found["result"]["text"] == expected.text
    assert (found["trained"], found["longest"] > 100, found["unit"]) == ([1, 20], True, "vectors")
    assert found["slots"] == 128
    names = [series["name"] for series in found["result"]["trace"]["series"]]
    assert "write 1 gate" in names
    assert posted(client, "/v1/tape/random", model="tape-recall")["length"] == 6
    assert "of at most" in refusal(client, "/v1/tape/random", length=999)
    assert "shortest" in refusal(client, "/v1/tape/random", model="tape-recall", length=1)
    scores = posted(client, "/v1/tape/lengths", model="tape-recall", per_length=1)["scores"]
    assert [score["length"] for score in scores][:2] == [6, 12]
    assert all(0 <= score["exact"] <= score["bits_right"] <= 100 for score in scores)
    expected = length_scores(regard.load("tape-recall", device="cpu"), per_length=1)
    assert scores == [asdict(score) for score in expected]


def test_scores_of_lengths_are_streamed_one_by_one_and_count_as_one_request(client):
    def counted():
        lines = client.get("/metrics").text.splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if 'requests_total{status="ok",verb="tape/lengths"}' in line
        )

    body = {"model": "tape-recall", "per_length": 1}
    scores, before = posted(client, "/v1/tape/lengths", **body)["scores"], counted()
    answer = client.post("/v1/tape/lengths", json=body, headers={"accept": "text/event-stream"})
    events = [line.split("\n") for line in answer.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert names == ["progress", *["result", "progress"] * len(scores), "done"]
    found = [json.loads(data.removeprefix("data: ")) for _, data in events]
    assert [each["result"] for each in found if "result" in each] == scores
    assert [each["done"] for each in found if "done" in each] == list(range(len(scores) + 1))
    assert counted() == before + 1


def test_lists_of_layers_are_tabulated(client):
    found = posted(client, "/v1/convolution/table", layers=[{"kernel": 5, "filters": 6}])
    assert found["rows"] == [
        {"output": [6, 28, 28], "field": 5, "parameters": 456, "multiply_adds": 352800, "note": ""}
    ]
    assert found["problem"] is None
    found = posted(client, "/v1/convolution/table", layers=[{"kernel": 5}, {"kernel": 99}])
    assert len(found["rows"]) == 1
    assert found["problem"]["layer"] == 1
    assert "does not fit on 28 pixels" in found["problem"]["message"]
    assert "greater than or equal to 1" in refusal(client, "/v1/convolution/table", layers=[{"kernel": 0}])
    networks = client.get("/v1/convolution/networks").json()["networks"]
    assert [net["name"] for net in networks] == ["lenet5", "alexnet", "convnetjs_cifar", "vgg16"]
    vgg = networks[-1]
    size = {name: vgg[name] for name in ("channels", "height", "width")}
    assert posted(client, "/v1/convolution/table", **size, layers=vgg["layers"])["rows"][-1]["output"] == [512, 7, 7]


def test_the_maps_of_every_layer(client, scene):
    digits = client.get("/v1/convolution/examples").json()["examples"]
    found = posted(client, "/v1/convolution/maps", input=digits[3]["image"], max_maps=4)
    assert found["predictions"][0]["label"] == "3"
    assert [layer["shape"] for layer in found["layers"]][:3] == [[6, 28, 28], [6, 28, 28], [6, 14, 14]]
    assert all(len(layer["maps"]) <= 4 for layer in found["layers"])
    assert len(found["layers"][0]["filters"][0][0]) == 5
    encoder = posted(client, "/v1/convolution/maps", model="scenes", input=scene[1])
    assert (encoder["size"], encoder["predictions"]) == ([3, 64, 64], [])
    assert "no model 'en-fr' for this" in refusal(client, "/v1/convolution/maps", model="en-fr", input=scene[1])


def test_examples_name_models_that_are_served(client):
    served = {each["name"] for each in client.get("/v1/models").json()["models"]}
    for page in ("caption", "glimpse", "convolution"):
        examples = client.get(f"/v1/{page}/examples").json()["examples"]
        assert len(examples) >= 8
        assert {each["model"] for each in examples} <= served
        assert all(each["image"].startswith("data:image/") for each in examples)
