"""The models of a server: loaded once, in a thread of their own, while everything else goes on."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from regard.errors import ModelError
from regard.serving.app import create_app
from regard.serving.models import Models

TAPE = {"input": "01100101 10010110"}


@pytest.fixture
def app(monkeypatch):
    """An application whose models are loaded only once its gate is open; it counts how often they are."""
    made = create_app()
    made.state.gate, made.state.loads = threading.Event(), []
    models = made.state.backend.models
    load = models._load

    def slow(served):
        made.state.loads.append(served.name)
        made.state.gate.wait(600)
        return load(served)

    monkeypatch.setattr(models, "_load", slow)
    return made


def test_nothing_waits_while_a_model_loads_and_it_is_loaded_once(app):
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(client.post, "/v1/tape", json=TAPE) for _ in range(3)]
        while not app.state.loads:
            time.sleep(0.01)
        for path in ("/health", "/v1/models", "/tape", "/web/index.js"):
            assert client.get(path).status_code == 200, path
        assert not any(each.done() for each in asked)
        app.state.gate.set()
        assert [each.result().status_code for each in asked] == [200] * 3
    assert app.state.loads == ["tape-copy"]


def test_a_model_that_failed_to_load_is_tried_again(app, monkeypatch):
    app.state.gate.set()
    with TestClient(app, base_url="http://localhost") as client:
        with monkeypatch.context() as patch:
            patch.setattr("regard.serving.models.load", lambda *_, **__: _fail())
            refused = client.post("/v1/tape", json=TAPE)
        assert refused.status_code == 503
        assert "secret" not in refused.text, "a path of the server is its own business"
        assert client.post("/v1/tape", json=TAPE).status_code == 200


def _fail():
    raise ModelError("/secret/path is damaged")


def test_a_model_that_requests_wait_for_is_unloaded_for_good_only_after_them():
    models = Models(device="cpu", memory=1)
    copy, recall = (models.find(name, "tape") for name in ("tape-copy", "tape-recall"))

    async def ask():
        waited_for = await models.get(copy)
        await models.get(recall)
        assert await models.get(copy) is waited_for, "no second copy is loaded"
        assert set(models.loaded) <= {"tape-copy", "tape-recall"}
        del waited_for
        await models.get(recall)
        gc.collect()
        assert set(models.loaded) == {"tape-recall"}

    asyncio.run(ask())
