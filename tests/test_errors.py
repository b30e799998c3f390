"""The words of messages."""

from regard.errors import MAX_MESSAGE, DataError, counted


def test_things_are_counted_in_the_singular_and_the_plural():
    assert [counted(count, "line") for count in (0, 1, 2, 2000)] == ["0 lines", "1 line", "2 lines", "2,000 lines"]
    assert [counted(count, "story", "stories") for count in (1, 2)] == ["1 story", "2 stories"]


def test_a_message_is_no_dump_of_a_file():
    message = str(DataError(f"There is no {'a' * 10**6!r}."))
    assert message.startswith("There is no 'aaa")
    assert message.endswith("aaa …")
    assert len(message) < MAX_MESSAGE + 10
    assert str(DataError("short")) == "short"
