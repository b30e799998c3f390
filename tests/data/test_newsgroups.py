"""News posts and subjects: only the words of the author are kept, and everything left out is counted."""

import json
import lzma

import pytest

from regard.data.public.newsgroups import prepare, read_post
from regard.errors import DataError, OptionError

POST = """From: someone@example.org (Some One)
Subject: Re: RE^2: A question
 about bread
Organization: The Bakery

In article <123@example.org> other@example.org (Other) writes:
> How long does it rise?
>> Longer than that.
# and quoted in another way
An hour, I think; ask baker@example.com for more.

Other wrote:
| quoted again
MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM
It depends on the yeast: warm is better.
--
Some One, someone@example.org
"""


def test_headers_quotations_signatures_and_addresses_are_removed():
    post = read_post(POST)
    assert post.subject == "A question about bread"
    assert " ".join(post.body) == "An hour, I think; ask for more. It depends on the yeast: warm is better."
    assert post.dropped == 2, "an address and an overlong word"


def test_line_ends_that_became_tabs_are_line_ends():
    assert read_post(POST.rstrip().replace("\n ", " ").replace("\n", "\t") + "\n") == read_post(POST)


@pytest.mark.parametrize(
    ("text", "body", "subject"),
    [
        ("Subject: Re:\n\nWords", "Words", ""),
        ("From: a\n\nWords", "Words", ""),
        ("Subject: Reading: a list\n\nWords -- with dashes\n-----\n" + "more\n" * 20, None, "Reading: a list"),
        ("SUBJECT: Aw: Fwd: hello\n\n> all quoted", "", "hello"),
        ("Subject: no body", "", "no body"),
    ],
)
def test_posts_of_other_forms(text, body, subject):
    post = read_post(text)
    assert post.subject == subject
    if body is None:  # what follows is too long for a signature
        assert len(post.body) == 4 + 1 + 20
    else:
        assert " ".join(post.body) == body


def write(path, posts) -> None:
    lines = "".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(posts))
    path.write_bytes(lzma.compress(lines.encode()) if path.suffix == ".xz" else lines.encode())


def test_splits_share_no_subject_and_everything_is_counted(tmp_path):
    train = [f"Subject: {'Re: ' * (i % 2)}topic {i // 3}\n\n{'word ' * (i + 1)}" for i in range(90)]
    test = ["Subject: TOPIC 1\n\nseen", "Subject: new\n\none two", "From: a\n\nno subject", "Subject: none\n\n> quoted"]
    write(tmp_path / "news_train.jsonl.xz", [*train, "Subject: empty\n\n"])
    write(tmp_path / "news_test.jsonl", test)
    counts = prepare(tmp_path, tmp_path / "out", words=10)
    read = {path.name: path.read_text().splitlines() for path in (tmp_path / "out").iterdir()}
    assert sorted(read) == sorted(f"{part}.{side}" for part in counts for side in ("body", "subject"))
    subjects = {part: set(read[f"{part}.subject"]) for part in counts}
    assert subjects["train"] | subjects["valid"] == {f"topic {i}" for i in range(30)}
    assert subjects["valid"]
    assert not subjects["train"] & subjects["valid"]
    assert subjects["test"] == {"new"}
    assert read["test.body"] == ["one two"]
    assert max(len(line.split()) for line in read["train.body"]) == 10
    assert [len(read[f"{part}.body"]) for part in counts] == [part.kept for part in counts.values()]
    total = counts["train"].posts + counts["valid"].posts
    assert (total, counts["train"].kept + counts["valid"].kept) == (91, 90)
    assert counts["train"].truncated + counts["valid"].truncated == 80
    assert counts["train"].words_truncated + counts["valid"].words_truncated == sum(range(81))
    left = counts["test"]
    assert (left.posts, left.kept, left.known_subject, left.without_subject, left.without_body) == (4, 1, 1, 1, 1)
    assert str(left).startswith(
        "1 of 4 posts kept; left out: 1 without a subject, 1 without words of their own, 1 with"
    )


def test_missing_and_invalid_files_are_explained(tmp_path):
    with pytest.raises(
        DataError, match=r"must hold 20news-bydate\.tar\.gz, or one file \*train\*.jsonl .*; it holds none"
    ):
        prepare(tmp_path, tmp_path / "out")
    write(tmp_path / "test.jsonl", [])
    (tmp_path / "train.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(DataError, match="line 1 should be a post"):
        prepare(tmp_path, tmp_path / "out")
    with pytest.raises(OptionError, match="words=0"):
        prepare(tmp_path, tmp_path / "out", words=0)
