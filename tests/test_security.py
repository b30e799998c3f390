"""What SECURITY.md promises: files from strangers run no code, write nowhere else, and take no more than they may."""

import ast
import os
import pickle
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import refused
from helpers.files import image_bytes, npz, tar, zipped
from helpers.models import small_translator
from PIL import Image

import regard
from regard import Trace
from regard.data.documents import read_documents
from regard.data.images import Images, open_image
from regard.data.public.datasets import DATASETS
from regard.data.public.download import SCHEMES
from regard.data.word_vectors import read_vectors
from regard.encoders.image_networks import TimmNet
from regard.errors import DataError, OptionError, RegardError
from regard.serving.app import create_app
from regard.systems.report import Measure, Report
from regard.systems.run import evaluate, train
from regard.viewing.view import view

SOURCE = Path(regard.__file__).parent
PICKLES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "pandas"}
BETWEEN_WORKERS = "jobs/cluster.py"
"""The one module that pickles: what the workers of one job send each other."""
HOSTILE = "<img src=x onerror=alert(1)>\"'&</script><script>alert(1)</script>"


class Evil:
    """Unpickling this would create a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@cache
def parsed() -> dict[str, list[ast.AST]]:
    """Every module of the package: its path, and all that it consists of."""
    paths = sorted(SOURCE.rglob("*.py"))
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return {path: list(ast.walk(tree)) for path, tree in trees.items()}


@cache
def all_calls() -> list[tuple[str, str, ast.Call]]:
    """Every call in the package: its file, what is called, and the call."""
    nodes = [(path, node) for path, nodes in parsed().items() for node in nodes if isinstance(node, ast.Call)]
    return [(path, ast.unparse(node.func), node) for path, node in nodes]


def calls(name: str) -> list[tuple[str, ast.Call]]:
    """Every call of a function or method of this name, with its file."""
    return [(path, call) for path, called, call in all_calls() if f".{called}".endswith(f".{name}")]


def test_nothing_is_unpickled():
    for path, nodes in parsed().items():
        for node in nodes:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = {name.split(".")[0] for name in names} & PICKLES
            assert not found or path == BETWEEN_WORKERS, f"{path} imports {found}"
    loads = list(calls("torch.load"))
    assert loads, "checkpoints are read by torch.load"
    for path, call in loads:
        assert any(each.arg == "weights_only" and ast.unparse(each.value) == "True" for each in call.keywords), path
    for path, call in calls("np.load"):
        assert any(each.arg == "allow_pickle" and ast.unparse(each.value) == "False" for each in call.keywords), path


def test_what_runs_or_writes_what_others_say_is_not_called():
    for name in ("os.system", "os.popen", "extractall", "yaml.load", "urlopen", "unpack_archive"):
        assert not calls(name), name
    assert not {"eval", "exec"} & {called for _, called, _ in all_calls()}


def test_only_downloads_reach_the_network():
    assert {path for path, _ in calls("requests.get")} == {"data/public/download.py"}
    assert SCHEMES == ("https",)
    for dataset in DATASETS.values():
        for file in dataset.files:
            assert file.url is None or file.url.startswith("https://")
            assert file.max_bytes < 10**10
            assert file.sha256 is not None or file.member is not None or file.url is None


def test_pickles_are_refused_and_not_run(tmp_path):
    mark = tmp_path / "mark"
    payload = pickle.dumps(Evil(mark))
    small_translator().save(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(payload)
    torch.save({"state_dict": Evil(mark)}, tmp_path / "model" / "best.ckpt")
    objects = np.array([Evil(mark)], dtype=object)
    (tmp_path / "vectors.npz").write_bytes(npz(vectors=objects, words=np.array("a")))
    (tmp_path / "trace.json").write_bytes(payload)
    attempts = [
        lambda: regard.load(tmp_path / "model"),
        lambda: regard.load(tmp_path / "model" / "best.ckpt"),
        lambda: read_vectors(tmp_path / "vectors.npz", ["a"]),
        lambda: Trace.load(tmp_path / "trace.json"),
    ]
    for attempt in attempts:
        with pytest.raises(RegardError):
            attempt()
    assert not mark.exists()
    pickle.loads(payload)  # noqa: S301
    assert mark.exists(), "it would have run"


def test_archives_write_nothing_anywhere(tmp_path):
    names = ["../../evil.png", "/tmp/evil.png", "a/../../evil.png", "C:\\evil.png"]  # noqa: S108
    members = {name: image_bytes("PNG") for name in names}
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "images.zip").write_bytes(zipped(members))
    (folder / "images.tar").write_bytes(tar(members))
    (folder / "texts.tar.gz").write_bytes(tar({"../../evil/1.txt": b"bad", "good/1.txt": b"good"}, "w:gz"))
    before = sorted(tmp_path.rglob("*"))
    for archive in ("images.zip", "images.tar"):
        images = Images(folder / archive)
        assert len(list(images.stream(images.names()))) == len(images)
    assert {document.label for document in read_documents(folder / "texts.tar.gz")} == {"evil", "good"}
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/evil.png").exists()  # noqa: S108


def test_links_in_archives_lead_nowhere(tmp_path):
    import tarfile

    (tmp_path / "secret.png").write_bytes(image_bytes("PNG"))
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for kind, name in ((tarfile.SYMTYPE, "link.png"), (tarfile.LNKTYPE, "hard.png")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(tmp_path / "secret.png")
            archive.addfile(info)
    assert Images(tmp_path / "a.tar").names() == []


def test_images_are_bounded():
    side = 20_000
    with pytest.raises(DataError, match="too large"):
        open_image(Image.new("1", (side, side)))


@pytest.mark.parametrize("config", [{"score": "stranger:Score"}, {"align": "stranger:Align"}])
def test_code_of_strangers_runs_only_with_trust(config, tmp_path, monkeypatch):
    import json

    small_translator().save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"config": stored["config"] | config}))
    (tmp_path / "stranger.py").write_text("raise SystemExit('a stranger runs')\n")
    monkeypatch.chdir(tmp_path)
    data = {"world": "babel:en-fr", "examples": 30, "held_out": 3}
    for attempt in (
        lambda: regard.load("model"),
        lambda: evaluate("model", world="babel:en-fr"),
        lambda: train(start_from="model", data=data, out="run", progress=False),
        lambda: create_app(folders=["model"]),
    ):
        with pytest.raises(OptionError, match="runs that code"):
            attempt()
    assert "runs that code" in refused("translate", "-m", "model", "a")
    assert "stranger" not in sys.modules
    with pytest.raises(SystemExit, match="a stranger runs"):
        regard.load("model", trust=True)


def test_a_network_of_timm_is_not_fetched_from_elsewhere():
    for name in ("hf-hub:stranger/model", "local-dir:/tmp/x", "../x"):
        with pytest.raises(OptionError, match="The name of a network"):
            TimmNet(name)


class Tags(HTMLParser):
    """The tags of a page, and the attributes that run scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.scripts += [name for name, _ in attributes if name.startswith("on")]


def test_html_shows_hostile_words_as_words(tmp_path):
    translation = Trace.from_weights([HOSTILE, "b"], ["c", HOSTILE], [[0.9, 0.1], [0.2, 0.8]])
    caption = Trace.from_image(np.zeros((8, 8, 3), np.uint8), [HOSTILE], np.full((1, 4), 0.25), text=HOSTILE)
    report = Report(HOSTILE, HOSTILE, {HOSTILE: Measure(1.0)})
    pages = {
        "translation": view(translation).page(title=HOSTILE),
        "caption": view(caption).page(title=HOSTILE),
        "report": report._repr_html_(),
        "saved": view(translation).save(tmp_path / "a.html").read_text(encoding="utf-8"),
    }
    clean = Tags(view(Trace.from_weights(["a", "b"], ["c", "d"], [[0.9, 0.1], [0.2, 0.8]])).page(title="t"))
    for name, page in pages.items():
        tags = Tags(page)
        assert not tags.scripts, name
        assert tags.found.count("script") <= clean.found.count("script"), name
        assert "<img src=x" not in page, name
