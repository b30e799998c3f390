"""Models go to a hub and come back, here to a stand-in that keeps files in memory."""

import base64
import hashlib
import http.server
import json
import re
import threading
from typing import ClassVar

import huggingface_hub
import pytest
import torch
from helpers.models import small_classifier, small_translator
from huggingface_hub import constants

import regard
from regard.errors import ModelError
from regard.systems.hub import hub_card

COMMIT = "a" * 40


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the API of a hub as an upload and a download need."""

    files: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *_):
        pass

    def reply(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        repository = f"http://{self.headers['host']}/me/small"
        if self.path == "/api/repos/create":
            self.reply({"url": repository, "id": "me/small"})
        elif self.path == "/api/validate-yaml":
            self.reply({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            listed = json.loads(body)["files"]
            self.reply(
                {"files": [{"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in listed]}
            )
        else:
            for each in map(json.loads, body.splitlines()):
                if each["key"] == "file":
                    self.files[each["value"]["path"]] = base64.b64decode(each["value"]["content"])
            self.reply({"success": True, "commitOid": COMMIT, "commitUrl": f"{repository}/commit/{COMMIT}"})

    def do_GET(self):
        path = self.path.partition("?")[0]
        if file := re.fullmatch("/me/small/resolve/[^/]+/(.*)", path):
            content = self.files[file[1]]
            self.reply(content, X_Repo_Commit=COMMIT, ETag=f'"{hashlib.sha1(content).hexdigest()}"')  # noqa: S324
        elif "/tree/" in path:
            self.reply(
                [{"type": "file", "path": name, "size": len(each), "oid": COMMIT} for name, each in self.files.items()]
            )
        elif path.startswith("/api/models/me/small/"):
            self.reply({"id": "me/small", "sha": COMMIT, "siblings": [{"rfilename": name} for name in self.files]})
        else:
            self.reply({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setattr(Hub, "files", {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield Hub
        server.shutdown()


def test_a_model_goes_to_a_hub_and_comes_back(hub):
    model = small_translator()
    model.metrics = {"test_bleu": 12.5, "test_sentences": 40}
    address = model.push_to_hub("me/small", token="hf_secret")  # noqa: S106
    assert address.endswith(f"/me/small/commit/{COMMIT}")
    assert {"config.json", "model.safetensors", "README.md"} <= set(hub.files)
    again = regard.Translator.from_pretrained("me/small", device="cpu")
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert again.translate("a dog", max_length=5).text == model.translate("a dog", max_length=5).text
    assert again.metrics == model.metrics


def test_a_hub_reads_the_card(hub):
    model = small_translator()
    model.metrics, model.card = {"test_bleu": 12.5, "test_sentences": 40}, "# mine\n\nIt translates.\n"
    card = huggingface_hub.ModelCard(hub_card(model, "mine"))
    assert (card.data.library_name, card.data.pipeline_tag) == ("regard", "translation")
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_value, result.dataset_name) == ("bleu", 12.5, "40 test sentences")
    assert card.text.strip().endswith("It translates.")
    assert huggingface_hub.ModelCard(hub_card(small_classifier(), "x")).data.eval_results is None


def test_what_is_not_on_the_hub_is_explained(hub):
    with pytest.raises(ModelError, match="me/none cannot be read from the hub, http:"):
        regard.Translator.from_pretrained("me/none")
    with pytest.raises(ModelError, match="cannot be written to the hub"):
        small_translator().push_to_hub("a/b/c")


def test_a_hub_that_cannot_be_reached_is_explained(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="cannot be written to the hub"):
        small_translator().push_to_hub("me/small", token="hf_secret")  # noqa: S106
    with pytest.raises(ModelError, match="cannot be read from the hub"):
        regard.Translator.from_pretrained("me/small")


def test_what_is_here_needs_no_hub(tmp_path):
    small_translator().save(tmp_path / "model")
    assert regard.Translator.from_pretrained(str(tmp_path / "model"), device="cpu")
    with pytest.raises(ModelError, match="no shipped model named 'none'"):
        regard.Translator.from_pretrained("none")
