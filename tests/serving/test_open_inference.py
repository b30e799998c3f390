"""The Open Inference Protocol: Triton's client asks a server, and mistakes are explained."""

import io
import json
import threading
import time

import numpy as np
import pytest
import uvicorn
from tritonclient import http
from tritonclient.utils import InferenceServerException

import regard
from regard.serving.app import create_app
from regard.serving.open_inference import HEADER
from regard.systems import registry

TEXTS = ["He is happy.", "The red house."]


@pytest.fixture(scope="module")
def triton():
    server = uvicorn.Server(uvicorn.Config(create_app(), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with http.InferenceServerClient(f"127.0.0.1:{port}", network_timeout=120) as made:
        yield made
    server.should_exit = True
    thread.join()


def tensor(elements, *, binary=False):
    given = http.InferInput("input", [len(elements)], "BYTES")
    given.set_data_from_numpy(np.array(elements, dtype=object), binary_data=binary)
    return given


def test_a_client_finds_server_and_models(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("en-fr")
    assert not triton.is_model_ready("none")
    assert triton.get_server_metadata()["name"] == "regard"
    about = triton.get_model_metadata("digits")
    assert (about["platform"], about["inputs"][0]["datatype"]) == ("regard_recognize", "BYTES")


@pytest.mark.parametrize("binary", [False, True])
def test_a_client_gets_what_the_model_answers(triton, binary):
    wanted = [
        http.InferRequestedOutput("text", binary_data=binary),
        http.InferRequestedOutput("json", binary_data=False),
    ]
    asked = {"beam": 3, "links": True}
    found = triton.infer("en-fr", [tensor(TEXTS, binary=binary)], outputs=wanted, parameters=asked, request_id="7")
    right = regard.load("en-fr", device="cpu").translate(TEXTS, beam=3, links=True)
    assert found.as_numpy("text").tolist() == [each.text for each in right]
    whole = [json.loads(each) for each in found.as_numpy("json")]
    assert [each["links"] for each in whole] == [[list(link) for link in each.links] for each in right]
    assert whole[0]["trace"] is None
    assert found.get_response()["id"] == "7"


def test_images_are_sent_as_files(triton):
    image = registry.entry("glimpse").examples()[7].image
    content = io.BytesIO()
    image.save(content, "PNG")
    found = triton.infer("digits", [tensor([content.getvalue()], binary=True)])
    assert found.as_numpy("text")[0].startswith(regard.load("digits", device="cpu").recognize(image).label)


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("none", {"inputs": [tensor(TEXTS)]}, "There is no model 'none'"),
        ("en-fr", {"inputs": [tensor(TEXTS)], "parameters": {"beam": 99}}, "options.beam: .*less than or equal to 16"),
        ("en-fr", {"inputs": [tensor(TEXTS)], "parameters": {"beem": 1}}, "options.beem"),
        ("en-fr", {"inputs": [tensor(["a"] * 65)]}, r"at most 64 items .*--max-inputs"),
        (
            "digits",
            {"inputs": [tensor([b"\xff\xff"], binary=True)]},
            "neither a text in UTF-8 nor the file of an image",
        ),
        ("en-fr", {"inputs": [tensor(TEXTS)], "outputs": [http.InferRequestedOutput("x")]}, "no output 'x'"),
    ],
)
def test_mistakes_are_explained(triton, name, given, says):
    with pytest.raises(InferenceServerException, match=says):
        triton.infer(name, **given)


@pytest.mark.parametrize(
    ("body", "header", "says"),
    [
        ("{", None, "The body is not JSON"),
        ('{"inputs": []}', None, "at least 1"),
        ('{"inputs": [{"name": "input", "shape": [2], "data": ["a"]}]}', None, "has 2 elements; the data has 1"),
        ('{"inputs": [{"name": "input", "shape": [1], "datatype": "FP32", "data": [1]}]}', None, "datatype BYTES"),
        (
            '{"inputs": [{"name": "input", "shape": [1], "parameters": {"binary_data_size": 2}}]}ab',
            84,
            "inside a length",
        ),
        (
            '{"inputs": [{"name": "input", "shape": [1], "parameters": {"binary_data_size": 9}}]}ab',
            84,
            "2 bytes follow",
        ),
        (
            '{"id": "' + "a" * 1001 + '", "inputs": [{"name": "input", "shape": [0]}]}',
            None,
            "id: String should have at most",
        ),
        ('{"inputs": [{"name": "input", "shape": [1000001]}]}', None, "less than or equal to 1000000"),
        (
            '{"inputs": [{"name": "input", "shape": [0]}], "outputs": [' + ", ".join(['{"name": "json"}'] * 3) + "]}",
            None,
            "outputs: List should have at most 2 items",
        ),
    ],
)
def test_damaged_requests_are_explained(client, body, header, says):
    headers = {} if header is None else {HEADER: str(header)}
    answer = client.post("/v2/models/en-fr/infer", content=body.encode(), headers=headers)
    assert answer.status_code == 422
    assert says in answer.json()["error"]
