"""Which files a job reads, and what their outputs are called."""

import gzip

import pytest

from regard.errors import DataError, OptionError
from regard.jobs.inputs import find_inputs, is_pattern


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("big/b.txt", "big/a.txt.gz", "big/deep/a.txt", "big/deep/c.tsv.xz", "big/.hidden.txt", "odd[1].txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(b"x\n"))
    return tmp_path


def names(*patterns, json=False):
    return {str(file.path.relative_to(file.path.cwd())): file.name for file in find_inputs(patterns, json=json)}


def test_a_pattern_gives_sorted_files_and_keeps_the_folders_below_it(files):
    assert names("big/*.txt*") == {"big/a.txt.gz": "a.txt.gz", "big/b.txt": "b.txt"}
    assert list(names("big/*.txt*")) == ["big/a.txt.gz", "big/b.txt"]
    assert names("big/**/*.t*") == {
        "big/a.txt.gz": "a.txt.gz",
        "big/b.txt": "b.txt",
        "big/deep/a.txt": "deep/a.txt",
        "big/deep/c.tsv.xz": "deep/c.tsv",
    }


def test_a_name_is_a_file_even_if_it_looks_like_a_pattern(files):
    assert names("odd[1].txt") == {"odd[1].txt": "odd[1].txt"}
    assert is_pattern("big/*.txt")
    assert not is_pattern("odd[1].txt")
    assert not is_pattern("big/b.txt")


def test_json_outputs_are_called_jsonl(files):
    assert names("big/a.txt.gz", "big/b.txt", "big/deep/c.tsv.xz", json=True) == {
        "big/a.txt.gz": "a.jsonl.gz",
        "big/b.txt": "b.jsonl",
        "big/deep/c.tsv.xz": "c.jsonl",
    }


def test_a_file_named_twice_is_read_once(files):
    assert names("big/b.txt", "big/*.txt") == {"big/b.txt": "b.txt"}


def test_mistakes_are_explained(files):
    with pytest.raises(DataError, match=r"No file matches the pattern 'big/\*.csv'"):
        find_inputs(["big/*.csv"])
    with pytest.raises(DataError, match=r"There is no file big/bb.txt. Did you mean b.txt\?"):
        find_inputs(["big/bb.txt"])
    (files / "a.txt.gz").touch()
    with pytest.raises(OptionError, match=r"would have the same output, a.txt.gz. Name them by one quoted pattern"):
        find_inputs(["big/a.txt.gz", "a.txt.gz"])


def test_files_of_one_folder_that_would_have_the_same_output_are_to_be_renamed(tmp_path):
    for name in ("y.txt", "y.tsv"):
        (tmp_path / name).touch()
    assert len(find_inputs([str(tmp_path / "y.*")])) == 2
    with pytest.raises(OptionError, match=r"the same output, y.jsonl. Rename one of them, or run a command for each"):
        find_inputs([str(tmp_path / "y.*")], json=True)


@pytest.mark.parametrize("inside", ["a.txt", "deep/a.txt"])
def test_an_output_with_the_name_of_a_folder_of_outputs_is_refused(tmp_path, inside):
    (tmp_path / "d" / inside).parent.mkdir(parents=True)
    (tmp_path / "d" / inside).touch()
    (tmp_path / "d.xz").touch()
    with pytest.raises(OptionError, match=rf"d.xz, d, would have the name of the folder .*{inside}. Rename one"):
        find_inputs([str(tmp_path / "**" / "*")])
    assert len(find_inputs([str(tmp_path / "**" / "*.txt")])) == 1
