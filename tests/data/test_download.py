"""Public corpora: fetched over HTTP from this machine itself, or taken from a folder."""

import functools
import hashlib
import http.server
import sys
import threading
import warnings

import pytest

from regard.data import download
from regard.data.download import DATASETS, Dataset, File, get
from regard.errors import DataError, OptionError

CONTENT = {"a.txt": b"one\n" * 999, "b.txt": b"un\n"}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A dataset called tiny, on a server of this test."""
    home = tmp_path / "served"
    home.mkdir()
    for name, content in CONTENT.items():
        (home / name).write_bytes(content)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append((self.path, self.headers["User-Agent"]))

    asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=home))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    first = hashlib.sha256(CONTENT["a.txt"]).hexdigest()
    files = (File("a.txt", f"{address}/a.txt", first), File("b.txt", f"{address}/b.txt"))
    monkeypatch.setitem(DATASETS, "tiny", Dataset(files, "free", "nobody", "read_pairs"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield home, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_are_fetched_once(served, tmp_path, capfd):
    _, asked = served
    folder = tmp_path / "deep" / "tiny"
    for _ in range(2):
        assert get("tiny", folder) == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == CONTENT
    assert asked == [("/a.txt", "regard"), ("/b.txt", "regard")]
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.txt (1 of 2)" in err


def test_the_cache_of_the_user_is_the_default(served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = get("tiny")
    assert folder.is_relative_to(tmp_path)
    assert folder.name == "tiny"


def test_a_changed_file_is_refused(served, tmp_path):
    home, _ = served
    (home / "a.txt").write_bytes(b"changed")
    with pytest.raises(DataError, match=r"a.txt could not be fetched into .*tiny: .*source="):
        get("tiny", tmp_path / "tiny")
    assert not (tmp_path / "tiny" / "a.txt").exists()


def test_a_missing_file_or_server_is_told(served, tmp_path, monkeypatch):
    home, _ = served
    (home / "b.txt").unlink()
    with pytest.raises(DataError, match=r"b.txt could not be fetched .*404"):
        get("tiny", tmp_path / "tiny")
    gone = Dataset((File("c.txt", "http://127.0.0.1:9/c.txt"),), "", "", "")
    monkeypatch.setitem(DATASETS, "gone", gone)
    with pytest.raises(DataError, match=r"http://127.0.0.1:9/c.txt could not be fetched.*give their folder as source="):
        get("gone", tmp_path / "gone")


def test_files_of_a_folder_are_checked_and_taken_without_network(served, tmp_path, monkeypatch):
    home, asked = served
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert get("tiny", source=home) == home
    assert get("tiny", home, source=home) == home
    folder = get("tiny", tmp_path / "tiny", source=str(home))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == CONTENT
    assert not asked


def test_a_folder_that_lacks_files_or_has_others_is_told(served):
    home, _ = served
    (home / "a.txt").write_bytes(b"other")
    with pytest.raises(DataError, match=r"a.txt is not the a.txt that http.*its SHA-256 is [0-9a-f]{64}, not"):
        get("tiny", source=home)
    (home / "a.txt").unlink()
    (home / "b.txt").unlink()
    with pytest.raises(DataError, match=r"served lacks a.txt, b.txt of the 2 file\(s\) of tiny"):
        get("tiny", source=home)


def test_an_unknown_name_and_a_missing_package_are_told(monkeypatch, tmp_path):
    with pytest.raises(
        OptionError, match="no dataset 'multi30'; there are cifar10, mnist, multi30k, tatoeba-deu, tatoeba-fra"
    ):
        get("multi30")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        OptionError, match=r"Downloading tatoeba-fra needs the package pooch: pip install pooch.*source="
    ):
        get("tatoeba-fra", tmp_path)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_dataset_is_complete(name):
    dataset = DATASETS[name]
    assert dataset.licence
    assert dataset.citation
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(dataset.reading, name, "eval")
    for file in dataset.files:
        assert file.url.startswith("https://")
        assert file.url.endswith("/" + file.name)
        assert file.sha256 is None or len(file.sha256) == 64
    assert len({file.name for file in dataset.files}) == len(dataset.files)


def test_importing_downloads_imports_no_pooch():
    assert "pooch" not in vars(download)
