"""What the commands of all systems share."""

import lzma
import sys

import pytest
from helpers.command_line import regard, write_lines

from regard.errors import RegardWarning
from regard.systems.output import read_texts, warn_of_files


@pytest.mark.parametrize(
    ("verb", "option"),
    [("translate", "--input in.txt"), ("read", "--input in.txt"), ("classify", "--file in.txt")],
)
def test_a_text_that_names_a_file_is_warned_about_once(verb, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in.txt", ["good"])
    done = regard(verb, "in.txt", "in.txt", check=True)
    assert done.stderr == f"regard: 'in.txt' is taken as a text. It is also a file: {option} reads it.\n"
    assert done.stdout
    assert regard(verb, "A good film.", check=True).stderr == ""


def test_texts_that_look_like_no_file_are_not_warned_about(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "word", ["good"])
    (tmp_path / "folder.d").mkdir()
    warn_of_files(["word", "folder.d", "nothing.txt", "long. " * 1000, "a/b", "\0."])
    assert not recwarn
    with pytest.warns(RegardWarning, match="--input ./word reads it"):
        warn_of_files(["./word"])


def test_files_whose_outputs_would_clash_are_read_where_no_output_is_named(tmp_path):
    (tmp_path / "d").mkdir()
    write_lines(tmp_path / "d" / "a.txt", ["in a folder"])
    write_lines(tmp_path / "d.txt", ["plain"])
    for name in ("d.xz", "d.txt.xz"):
        (tmp_path / name).write_bytes(lzma.compress(b"compressed\n"))
    found = list(read_texts((), [str(tmp_path / "**" / "*")], sys.stdin))
    assert found == ["in a folder", "plain", "compressed", "compressed"]
