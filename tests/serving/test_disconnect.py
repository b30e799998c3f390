"""A client that closes its connection: nothing of what it asked for waits, counts or is answered."""

import json
import threading
import time
from contextlib import closing
from http.client import HTTPConnection

import pytest
import uvicorn

from regard.serving.app import create_app
from regard.systems.tape.model import TuringMachine

TAPE = "01100101 10010110"


@pytest.fixture
def batches(monkeypatch):
    """The number of inputs of each batch; the model waits for `gate` before it answers."""
    sizes, gate, answer = [], threading.Event(), TuringMachine.answer

    def gated(self, inputs, options):
        sizes.append(len(inputs))
        gate.wait(600)
        return answer(self, inputs, options)

    monkeypatch.setattr(TuringMachine, "answer", gated)
    yield sizes, gate
    gate.set()


@pytest.fixture
def served(batches):
    """A running server: its port and its backend."""
    app = create_app()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1], app.state.backend
    batches[1].set()
    server.should_exit = True
    thread.join(600)
    assert not thread.is_alive()


def until(condition):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def ask(port, *, path="/v1/tape", count=1, events=False):
    """A connection that has sent a request, and has read nothing."""
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"content-type": "application/json"} | ({"accept": "text/event-stream"} if events else {})
    body = {"input": [TAPE] * count} if path == "/v1/tape" else {}
    connection.request("POST", path, json.dumps(body), headers)
    return connection


@pytest.mark.parametrize(
    "request_of",
    [{"count": 3}, {"count": 3, "events": True}, {"path": "/v1/tape/lengths"}, {"path": "/v1/tape/random"}],
    ids=str,
)
def test_what_waits_for_a_client_that_leaves_is_forgotten(served, batches, request_of):
    (port, backend), (sizes, gate) = served, batches
    with closing(ask(port)) as first:
        until(lambda: sizes == [1])
        with closing(ask(port, **request_of)):
            until(lambda: backend.batcher.waiting)
        until(lambda: not backend.batcher.waiting)
        gate.set()
        assert first.getresponse().status == 200
    with closing(ask(port)) as last:
        assert last.getresponse().status == 200
    assert sizes == [1, 1]


def test_the_rest_of_an_abandoned_stream_is_not_answered(served, batches):
    (port, backend), (sizes, gate) = served, batches
    with closing(ask(port, count=64, events=True)) as stream:
        until(lambda: sizes == [8])
        answer = stream.getresponse()
        assert answer.readline() == b"event: progress\n"
        answer.close()
    until(lambda: b'verb="tape"' in backend.metrics.text())
    gate.set()
    with closing(ask(port)) as last:
        assert last.getresponse().status == 200
    assert sizes == [8, 1]
