"""The server: a route for each verb, typed requests and answers, and errors that say what to do."""

import base64
import io
import json

import pytest
from PIL import Image
from starlette.testclient import TestClient

import regard
from regard import Trace
from regard.errors import ModelError, OptionError
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings
from regard.systems.registry import SYSTEMS
from regard.systems.translate.model import Translator

TEXT = "He is happy."


def data_uri(image, form="png"):
    stream = io.BytesIO()
    image.save(stream, form)
    return f"data:image/{form};base64,{base64.b64encode(stream.getvalue()).decode()}"


def test_there_is_a_route_for_each_verb(client):
    document = client.get("/openapi.json").json()
    for verb in SYSTEMS:
        assert f"/v1/{verb}" in document["paths"]
    request = document["components"]["schemas"]["TranslateRequest"]["properties"]
    assert request["model"]["default"] == "en-fr", "the same as on the command line"
    options = document["components"]["schemas"]["TranslationOptions"]["properties"]
    assert options["beam"]["description"].startswith("Number of hypotheses")
    assert (options["beam"]["minimum"], options["beam"]["maximum"]) == (1, 16)
    answer = document["components"]["schemas"]["Translation"]["properties"]
    assert answer["score"]["type"] == "number"


def test_answers_are_those_of_the_model(client):
    model = regard.load("en-fr", device="cpu")
    texts = [TEXT, "A dog is running."]
    answer = client.post("/v1/translate", json={"input": texts, "trace": True, "options": {"beam": 3, "nbest": 2}})
    assert answer.status_code == 200
    expected = model.translate(texts, beam=3, nbest=2)
    for found, one in zip(answer.json()["results"], expected, strict=True):
        assert found["text"] == one.text
        assert found["score"] == pytest.approx(one.score, abs=1e-5)
        assert Trace.from_dict(found["trace"]).source == one.trace.source
        assert [each["text"] for each in found["alternatives"]] == [each.text for each in one.alternatives]
    without = client.post("/v1/translate", json={"input": TEXT}).json()["results"]
    assert [each["trace"] for each in without] == [None], "traces are sent on request"


def test_images_and_tapes_are_taken(client):
    image = Image.new("L", (28, 28), 0)
    found = client.post("/v1/recognize", json={"input": data_uri(image), "options": {"top": 2}}).json()
    assert len(found["results"][0]["predictions"]) == 2
    assert found["model"] == "digits"
    rows = [[0, 1, 1, 0, 0, 1, 0, 1], [1, 0, 0, 1, 0, 1, 1, 0]]
    answers = [
        client.post("/v1/tape", json={"input": given}).json()["results"][0]["text"]
        for given in (rows, "01100101 10010110", [rows])
    ]
    assert answers == ["01100101 10010110"] * 3, "rows are one input, a list of rows are several"


def test_large_images_are_refused():
    image = data_uri(Image.new("L", (1001, 1000), 0))
    with TestClient(create_app(ServerSettings(max_megapixels=1)), base_url="http://localhost") as strict:
        for route in ("recognize", "caption", "caption/inspect", "glimpse/at", "recognize/maps"):
            answer = strict.post(f"/v1/{route}", json={"input": image})
            assert answer.status_code == 422
            assert "1001 x 1000 pixels, and at most 1,000,000" in answer.json()["error"]["message"]


def test_results_are_streamed_with_the_progress(client):
    body = {"input": [TEXT] * 10, "options": {"beam": 1}}
    answer = client.post("/v1/translate", json=body, headers={"accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [dict(line.split(": ", 1) for line in each.splitlines()) for each in answer.text.strip().split("\n\n")]
    names = [each["event"] for each in events]
    assert names[0] == "progress"
    assert names.count("result") == 10
    assert names[-1] == "done"
    assert json.loads(events[-2]["data"]) == {"done": 10, "of": 10}


def test_a_fault_while_results_are_streamed_ends_them_with_an_error(client, monkeypatch, caplog):
    def fails(self, inputs, options):
        raise RuntimeError("out of memory in /secret/place")

    monkeypatch.setattr(Translator, "answer", fails)
    answer = client.post("/v1/translate", json={"input": TEXT}, headers={"accept": "text/event-stream"})
    *_, last = answer.text.strip().split("\n\n")
    assert last.startswith('event: error\ndata: {"message": "Something went wrong in the server; its log says more.')
    assert "/secret/place" not in answer.text
    assert "/secret/place" in caplog.text


def test_a_body_that_is_not_json_is_explained(client):
    answer = client.post("/v1/translate", content=b"{bad", headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("The body is not JSON: Expecting property name")


@pytest.mark.parametrize(
    ("route", "body", "status", "says"),
    [
        ("translate", {"input": TEXT, "options": {"beam": 99}}, 422, "options.beam: Input should be less than"),
        ("translate", {"input": TEXT, "options": {"nbest": 9}}, 422, "nbest must not exceed beam"),
        ("translate", {"input": TEXT, "options": {"baem": 1}}, 422, "options.baem: Extra inputs are not permitted"),
        ("translate", {"input": []}, 422, "input"),
        ("translate", {}, 422, "input: Field required"),
        ("translate", {"input": "x" * 20_001}, 422, "at most 20000 characters"),
        (
            "translate",
            {"input": [TEXT] * 65},
            422,
            "at most 64 items after validation, not 65 (the server's --max-inputs)",
        ),
        (
            "translate",
            {"input": TEXT, "model": "/etc/passwd"},
            422,
            "model: Input should be 'babel', 'en-de', 'en-fr' or 'fa-en'",
        ),
        ("translate", {"input": TEXT, "model": "digits"}, 422, "model: Input should be"),
        ("recognize", {"input": "/etc/passwd"}, 422, "input"),
        ("recognize", {"input": "data:image/png;base64,AAAA"}, 422, "The image of input 1 is not an image"),
        ("tape", {"input": "012"}, 422, ""),
        ("nothing", {}, 404, "Not Found"),
    ],
)
def test_what_cannot_be_answered_is_explained(client, route, body, status, says):
    answer = client.post(f"/v1/{route}", json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert says in error["message"]
    assert "/src/" not in error["message"]
    assert "Traceback" not in error["message"]


def test_health_models_and_metrics(client):
    assert client.get("/health").json()["status"] == "ok"
    listed = {each["name"]: each for each in client.get("/v1/models").json()["models"]}
    assert listed["en-fr"]["verb"] == "translate"
    assert "BLEU" in listed["en-fr"]["headline"]
    client.post("/v1/translate", json={"input": TEXT})
    loaded = {each["name"]: each["loaded"] for each in client.get("/v1/models").json()["models"]}
    assert loaded["en-fr"]
    assert not loaded["fa-en"], "models are loaded when they are first asked for"
    text = client.get("/metrics").text
    assert 'regard_requests_total{status="ok",verb="translate"}' in text
    client.post("/v1/translate/align", json={"source": "He is", "target": "Il est"})
    assert 'regard_requests_total{status="ok",verb="translate/align"} ' in client.get("/metrics").text
    assert "regard_model_bytes" in text
    assert client.get("/web/index.js").headers["content-type"].startswith("text/javascript")


def test_weights_that_are_not_asked_for_are_not_computed(client, monkeypatch):
    monkeypatch.setattr("regard.systems.classify.model.weighted_sentences", lambda *_: pytest.fail("of no use"))
    (found,) = client.post("/v1/classify", json={"input": "A fine film.", "options": {"traces": "all"}}).json()[
        "results"
    ]
    assert (found["sentences"], found["trace"]) == ([], None)


def test_models_are_unloaded_when_memory_runs_short():
    with TestClient(create_app(ServerSettings(memory=1)), base_url="http://localhost") as small:
        for name in ("tape-copy", "tape-recall"):
            small.post("/v1/tape", json={"input": "", "model": name})
        assert len(small.app.state.backend.models.loaded) == 2
        small.post("/v1/translate", json={"input": TEXT, "options": {"beam": 1}})
        assert list(small.app.state.backend.models.loaded) == ["en-fr"]


def test_a_model_folder_is_served_under_its_name(tmp_path):
    from helpers.models import small_translator

    scores = {"test_bleu": 12.34, "test_sentences": 1500, "test_signature": "tok:13a"}
    small_translator().save(tmp_path / "mine", metrics=scores, card="# mine\n\nA to B.\n\n- more")
    with TestClient(create_app(folders=[str(tmp_path / "mine")]), base_url="http://localhost") as served:
        answer = served.post("/v1/translate", json={"input": "a dog", "model": "mine", "options": {"max_length": 3}})
        assert answer.status_code == 200
        assert answer.json()["model"] == "mine"
        (listed,) = (each for each in served.get("/v1/models").json()["models"] if each["name"] == "mine")
        assert (listed["summary"], listed["headline"]) == ("A to B.", "BLEU 12.3")
        assert listed["measured_on"] == "1,500 test sentences"
        assert "from 0 to 100" in listed["scale"]
    small_translator().save(tmp_path / "plain")
    with TestClient(create_app(folders=[str(tmp_path / "plain")]), base_url="http://localhost") as served:
        listed = next(each for each in served.get("/v1/models").json()["models"] if each["name"] == "plain")
        assert [listed[name] for name in ("summary", "headline", "scale", "measured_on")] == [""] * 4
    with TestClient(create_app(folders=[str(tmp_path / "mine")]), base_url="http://localhost") as served:
        (tmp_path / "mine" / "model.safetensors").write_bytes(b"broken")
        answer = served.post("/v1/translate", json={"input": "a dog", "model": "mine"})
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text, "errors say nothing about the server's files"
    with pytest.raises(ModelError, match="is damaged"):
        create_app(folders=[str(tmp_path / "mine")])


def test_two_folders_of_the_same_name_are_refused(tmp_path):
    from helpers.models import small_translator

    folders = [str(tmp_path / run / "model") for run in ("first", "second")]
    for folder in folders:
        small_translator().save(folder)
    with pytest.raises(OptionError, match=r"first/model and .*second/model would both be served as 'model'"):
        create_app(folders=folders)
