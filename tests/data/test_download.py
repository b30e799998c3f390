"""Downloads over HTTP from a local server, and files taken from a folder."""

import functools
import hashlib
import http.server
import socket
import sys
import threading
import warnings

import numpy as np
import pytest
from helpers.files import zipped

from regard.data.public import datasets, download
from regard.data.public.datasets import DATASETS, Dataset, File, hint_for, list_datasets
from regard.data.public.download import get
from regard.errors import DataError, OptionError

RANDOM = np.random.default_rng(0).integers(0, 256, 9999, np.uint8)
CONTENT = {"a.txt": b"one\n" * 999, "b.txt": b"un\n"}


def dataset(*files: File, **options) -> Dataset:
    fields = {"description": "d", "size": "1 kB", "licence": "l", "citation": "c", "reading": "None", "recipes": ()}
    return Dataset(files=files, **{"name": "tiny", "training": "regard train tiny"} | fields | options)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A data set named tiny on a local server, with the folder it serves and the requests it gets."""
    home = tmp_path / "served"
    home.mkdir()
    for name, content in CONTENT.items():
        (home / name).write_bytes(content)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/redirect/"):
                self.send_response(302)
                self.send_header("Location", "https://127.0.0.1:9/b.txt" if "https" in self.path else "/b.txt")
                self.end_headers()
            elif self.path.startswith("/half/"):
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"x" * 400)
            else:
                super().do_GET()

        def log_message(self, *arguments):
            requests.append((self.path, self.headers["User-Agent"]))

    requests = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=home))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    first = hashlib.sha256(CONTENT["a.txt"]).hexdigest()
    files = (File("a.txt", 4000, f"{address}/a.txt", first), File("b.txt", 99, f"{address}/b.txt"))
    monkeypatch.setitem(DATASETS, "tiny", dataset(*files))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "SCHEMES", ("http",))
    yield home, requests, address
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_are_downloaded_once(served, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    _, requests, _ = served
    folder = tmp_path / "deep" / "tiny"
    for _ in range(2):
        assert get("tiny", folder) == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == CONTENT
    assert requests == [("/a.txt", "regard"), ("/b.txt", "regard")]
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.txt (1 of 2)" in err
    assert "4.0/4.0 kB" in err


def test_a_download_is_silent_where_stderr_is_not_a_terminal(served, tmp_path, capfd):
    get("tiny", tmp_path / "tiny")
    assert capfd.readouterr() == ("", "")


def test_the_cache_of_the_user_is_the_default(served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = get("tiny")
    assert folder.is_relative_to(tmp_path)
    assert folder.name == "tiny"


def test_a_changed_file_is_refused(served, tmp_path):
    home, _, _ = served
    (home / "a.txt").write_bytes(b"changed")
    with pytest.raises(
        DataError, match=r"a.txt is not the file that was expected: its SHA-256 .* tiny --from THEIR_FOLDER"
    ):
        get("tiny", tmp_path / "tiny")
    assert not list((tmp_path / "tiny").iterdir())


def test_a_missing_file_is_reported_with_the_answer_of_the_server(served, tmp_path):
    home, _, _ = served
    (home / "b.txt").unlink()
    with pytest.raises(DataError, match=r"b.txt could not be downloaded: the server answered 404 File not found\. You"):
        get("tiny", tmp_path / "tiny")


def test_without_a_network_the_message_is_plain(served, tmp_path, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/c.txt"
    monkeypatch.setitem(DATASETS, "gone", dataset(File("c.txt", 99, url), name="gone"))
    with pytest.raises(DataError) as caught:
        get("gone", tmp_path / "gone")
    assert str(caught.value) == (
        f"{url} could not be downloaded: 127.0.0.1 cannot be reached. Is there a network connection? You can also "
        "download the files on another computer, and then run `regard data get gone --from THEIR_FOLDER`."
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html>" + b" " * 50, r"not the published x\.zip: it cannot be opened as an archive"),
        (zipped({"fra.txt": b"a\tb"})[:-9], r"not the published x\.zip: it cannot be opened as an archive"),
        (zipped({"other.txt": b"a\tb"}), r"not the published x\.zip: it holds no fra\.txt"),
        (zipped({"fra.txt": bytes(RANDOM)}), r"it is larger than 1,000 bytes, which is the limit"),
    ],
    ids=["html", "half", "other", "large"],
)
def test_an_unpinned_archive_is_verified_and_a_wrong_one_is_never_kept(served, tmp_path, monkeypatch, content, message):
    home, _, address = served
    file = File("x.zip", 1000, f"{address}/x.zip", member="fra.txt")
    monkeypatch.setitem(DATASETS, "zip", dataset(file, name="zip"))
    (home / "x.zip").write_bytes(content)
    with pytest.raises(DataError, match=message):
        get("zip", tmp_path / "zip")
    assert not list((tmp_path / "zip").iterdir())
    (home / "x.zip").write_bytes(zipped({"fra.txt": b"a\tb"}))
    assert [path.name for path in get("zip", tmp_path / "zip").iterdir()] == ["x.zip"]
    (tmp_path / "zip" / "x.zip").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.zip"):
        get("zip", tmp_path / "zip")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("redirect/https", "only http is allowed|cannot be reached|no secure connection"),
        ("half/x", r"the connection ended after 400 of 1,000 bytes|the download failed|cannot be reached"),
        ("", "the server sent a web page instead of the file"),
    ],
)
def test_other_schemes_truncated_files_and_web_pages_are_refused(served, tmp_path, monkeypatch, path, message):
    _, _, address = served
    monkeypatch.setitem(DATASETS, "bad", dataset(File("x", 10**6, f"{address}/{path}"), name="bad"))
    with pytest.raises(DataError, match=message):
        get("bad", tmp_path / "bad")
    assert not list((tmp_path / "bad").iterdir())


def test_plain_http_is_refused(served, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "SCHEMES", ("https",))
    with pytest.raises(DataError, match=r"it leads to http://127.*, and only https is allowed"):
        get("tiny", tmp_path / "tiny")


def test_files_of_a_folder_are_verified_and_taken_without_a_network(served, tmp_path, monkeypatch):
    home, requests, _ = served
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert get("tiny", source=home) == home
    assert get("tiny", home, source=home) == home
    folder = get("tiny", tmp_path / "tiny", source=str(home))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == CONTENT
    assert not requests


def test_a_folder_with_missing_or_other_files_is_refused(served):
    home, _, _ = served
    (home / "a.txt").write_bytes(b"other")
    with pytest.raises(DataError, match=r"a.txt is not the published a.txt: its SHA-256 is [0-9a-f]{64}, not"):
        get("tiny", source=home)
    (home / "b.txt").write_bytes(b"x" * 100)
    (home / "a.txt").write_bytes(CONTENT["a.txt"])
    with pytest.raises(DataError, match=r"b.txt has 100 bytes, but b.txt has at most 99"):
        get("tiny", source=home)
    (home / "a.txt").unlink()
    (home / "b.txt").unlink()
    with pytest.raises(DataError, match=r"served lacks a.txt, b.txt, part of the data set tiny"):
        get("tiny", source=home)


def test_an_unknown_name_and_a_missing_package_are_reported(monkeypatch, tmp_path):
    names = "cifar10, flickr8k, hansards, mnist, multi30k, newsgroups, tatoeba-deu, tatoeba-fra"
    with pytest.raises(OptionError, match=f"no data set 'multi30'; known data sets are {names}"):
        get("multi30")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(OptionError, match=r"Downloading tatoeba-fra needs the package pooch: pip install .*--from"):
        get("tatoeba-fra", tmp_path)


@pytest.mark.parametrize("name", ["flickr8k", "hansards"])
def test_a_data_set_that_must_be_fetched_by_hand_says_which_files_from_where(name, tmp_path):
    with pytest.raises(DataError) as caught:
        get(name, tmp_path)
    message = str(caught.value)
    for file in DATASETS[name].files:
        assert file.name in message
    assert DATASETS[name].page in message
    assert f"`regard data get {name} --from THAT_FOLDER`" in message
    with pytest.raises(DataError, match=rf"lacks .*, part of the data set {name}\. The official page is https://"):
        get(name, source=tmp_path)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_data_set_is_described(name):
    described = DATASETS[name]
    assert described.name == name
    assert all((described.licence, described.citation, described.description, described.size, described.pinned))
    assert "regard train " in described.training
    assert described.recipes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(described.reading, name, "eval")
    for file in described.files:
        assert file.sha256 is None or len(file.sha256) == 64
        if described.by_hand:
            assert described.page.startswith("https://")
            assert file.url is None
        else:
            assert file.url.startswith("https://")
            assert file.sha256 is not None or file.member is not None
            assert (file.sha256 is None) == described.pinned.startswith("Not pinned")
    assert len({file.name for file in described.files}) == len(described.files)


def test_data_sets_are_listed_by_name():
    assert [described.name for described in list_datasets()] == sorted(DATASETS)


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        ("train.en.gz", "multi30k"),
        ("somewhere/deep/val.de.gz", "multi30k"),
        ("here/fra-eng.zip/fra.txt", "tatoeba-fra"),
        ("captions.tsv.gz", "flickr8k"),
        ("news/train.body", "newsgroups"),
        ("hansards-en-fr", "hansards"),
        ("mnist", "mnist"),
    ],
)
def test_a_missing_file_leads_to_its_data_set(missing, name):
    assert f"`regard data get {name} --out FOLDER`" in hint_for(missing)
    assert DATASETS[name].training in hint_for(missing)


def test_an_unknown_file_gets_no_hint():
    assert hint_for("mine.txt") == ""


def test_importing_downloads_imports_no_pooch():
    assert "pooch" not in vars(download)
    assert "pooch" not in vars(datasets)
