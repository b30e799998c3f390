"""Word links as text."""

import pytest
from helpers.command_line import write_lines
from hypothesis import given
from hypothesis import strategies as st

from regard.data.alignments import format_links, parse_links, read_links
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
