"""Word links as text, and gold word alignments from JSON lines."""

import gzip
import json

import pytest
from helpers.command_line import write_lines
from hypothesis import given
from hypothesis import strategies as st

from regard.data.alignments import format_links, parse_links, read_gold, read_links
from regard.errors import DataError


@given(st.sets(st.tuples(st.integers(0, 300), st.integers(0, 300))))
def test_what_is_written_is_read_again(links):
    assert {tuple(link) for link in parse_links(format_links(links)).tolist()} == links


def test_an_empty_line_has_no_links(tmp_path):
    path = write_lines(tmp_path / "links", ["0-0 1-2", "", " 3-1  "])
    assert [links.tolist() for links in read_links(path)] == [[[0, 0], [1, 2]], [], [[3, 1]]]


@pytest.mark.parametrize(
    "line", ["0-0 1", "a-b", "0:0", "-1-2", "0-0,1-1", "1-2-3", "0-99999999999999999999", "9" * 5000 + "-0"]
)
def test_other_lines_are_refused_with_their_number(tmp_path, line):
    path = write_lines(tmp_path / "links", ["0-0", line])
    with pytest.raises(DataError, match="line 2"):
        list(read_links(path))


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_gold_alignments_are_read_plain_or_compressed(tmp_path, suffix):
    rows = [
        {"src": ["the", "کتاب"], "tgt": ["le", "livre"], "sure": [[0, 0]], "possible": [[1, 1]]},
        {"src": ["a\u2028b"], "tgt": ["x"], "sure": [], "possible": []},
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path / f"gold.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    first, second = read_gold(path)
    assert first.source == ("the", "کتاب")
    assert first.target == ("le", "livre")
    assert first.sure == {(0, 0)}
    assert first.possible == {(0, 0), (1, 1)}, "possible includes sure"
    assert second.source == ("a\u2028b",), "only line feeds end a line"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"src": ["a"], "tgt": ["b"], "sure": [[1, 0]], "possible": []}', r"link \[1, 0\] is outside its 1 x 1 words"),
        ('{"src": ["a"], "sure": []}', "without tgt"),
        ("[1, 2]", "without src, sure, tgt"),
        ("not json", "Expecting value"),
    ],
)
def test_an_invalid_line_is_named(tmp_path, line, message):
    path = tmp_path / "gold.jsonl"
    path.write_text('{"src": [], "tgt": [], "sure": []}\n\n' + line)
    with pytest.raises(DataError, match=f"line 3 should be .*{message}"):
        read_gold(path)


def test_pairs_without_any_link_measure_nothing(tmp_path):
    (tmp_path / "gold.jsonl").write_text('{"src": ["a"], "tgt": ["b"], "sure": []}\n')
    with pytest.raises(DataError, match=r"gold\.jsonl: none of its 1 sentence pairs has a link"):
        read_gold(tmp_path / "gold.jsonl")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_pairs_is_refused(tmp_path, content):
    (tmp_path / "gold.jsonl").write_text(content)
    with pytest.raises(DataError, match=r"gold\.jsonl holds no aligned sentence pairs"):
        read_gold(tmp_path / "gold.jsonl")
