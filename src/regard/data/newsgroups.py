"""News posts as pairs of body and subject line: the 20 newsgroups (Lang 1995), as a task that is not translation."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.text import read_lines
from regard.errors import DataError, OptionError

VALID_SHARE = 20
"""Of so many subjects of the training posts, one is for validation."""
LONGEST_WORD = 40
"""Letters of the longest word; what is longer is encoded data, or a line drawn of characters."""

_REPLY = re.compile(r"^(?:(?:re|fwd?|aw)\s*(?:\^\d+|\[\d+\])?\s*:\s*)+", re.IGNORECASE)
_QUOTE = re.compile(
    r"^\s*(?:[a-z]{0,4}>|[|}#:](?:\s|[|}#:>])|in article\b|quoted from\b)|\b(?:writes|wrote|says|said)\s*:\s*$",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(r"^\s*(?:--|[-_=*~]{5,})\s*$")
_SIGNATURE_LINES = 12
_ADDRESS = re.compile(r"<?[\w.!%+=-]+@[\w.-]+>?|<[^<>\s]+>")


@dataclass
class Counts:
    """What became of the posts of one part."""

    posts: int = 0
    kept: int = 0
    without_subject: int = 0
    """Left out: no subject, or nothing of it but Re:."""
    without_body: int = 0
    """Left out: nothing was written but headers, quotes and a signature."""
    seen: int = 0
    """Left out of test: the subject is one of the training posts', so that it could be known by heart."""
    cut: int = 0
    """Kept, but of the body only the first words."""
    words_cut: int = 0
    """The words of these that are behind the cut."""
    words_dropped: int = 0
    """Words longer than LONGEST_WORD, and e-mail addresses."""

    def __str__(self) -> str:
        return (
            f"{self.kept} of {self.posts} posts kept; left out: {self.without_subject} without a subject, "
            f"{self.without_body} without words of their own, {self.seen} with a subject of the training posts; "
            f"{self.cut} bodies cut ({self.words_cut} words), {self.words_dropped} addresses and overlong words dropped"
        )


@dataclass(frozen=True)
class Post:
    """What is left of a post: its own words, and its subject."""

    body: list[str]
    subject: str
    dropped: int
    """Words that were dropped: addresses, and what is too long for a word."""


def prepare(source: str | os.PathLike[str], out: str | os.PathLike[str], *, words: int = 100) -> dict[str, Counts]:
    """Write train, valid and test as parallel text files NAME.body and NAME.subject, one post a line.

    `source` holds *train*.jsonl and *test*.jsonl (maybe .xz or .gz), with the whole post as `text`. Of a post its
    headers, quotes, signature and e-mail addresses are taken away, and of its subject each Re:. Of a body only the
    first `words` words are kept. All posts of a subject are in one part: the training posts are split by a hash of the
    subject, and a test post with a subject of theirs is left out. Everything left out or cut is counted.
    """
    if words < 1:
        raise OptionError(f"A body has one word or more; got words={words}.")
    source, out = Path(source), Path(out)
    files = {part: _file(source, part) for part in ("train", "test")}
    out.mkdir(parents=True, exist_ok=True)
    counts = {part: Counts() for part in ("train", "valid", "test")}
    known: set[str] = set()
    drafts: dict[str, list[tuple[str, str]]] = {part: [] for part in counts}
    for given, path in files.items():
        for post in _posts(path):
            # A post is counted in the part that its subject belongs to.
            key = post.subject.casefold()
            part = "valid" if given == "train" and _number(key) % VALID_SHARE == 0 else given
            if given == "train":
                known.add(key)
            if (line := _line(post, counts[part], words, seen=given == "test" and key in known)) is not None:
                drafts[part].append((line, post.subject))
    for part, pairs in drafts.items():
        for side, name in enumerate(("body", "subject")):
            draft = out / f"{part}.{name}.tmp"
            draft.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
            draft.replace(out / f"{part}.{name}")
    return counts


def read_post(text: str) -> Post:
    """The words that the author wrote, and the subject."""
    lines = text.replace("\r\n", "\n").split("\n")
    if "\n" not in text.strip():
        # A copy of this corpus is about in which every line end has become a tab.
        lines = text.replace("\t", "\n").split("\n")
    blank = next((place for place, line in enumerate(lines) if not line.strip()), len(lines))
    written = [line for line in _unsigned(lines[blank:]) if not _QUOTE.search(line)]
    plain, addresses = _ADDRESS.subn(" ", "\n".join(written))
    found = plain.split()
    body = [word for word in found if len(word) <= LONGEST_WORD]
    return Post(body, _subject(lines[:blank]), addresses + len(found) - len(body))


def _subject(headers: list[str]) -> str:
    subject: list[str] = []
    for line in headers:
        if subject and line[:1].isspace():
            subject.append(line)
        elif subject:
            break
        elif line.lower().startswith("subject:"):
            subject.append(line.partition(":")[2])
    joined = " ".join(_ADDRESS.sub(" ", " ".join(subject)).split())
    return _REPLY.sub("", joined)


def _unsigned(lines: list[str]) -> list[str]:
    """Without a signature: what follows a line of dashes, if it is short."""
    last = len("\n".join(lines).rstrip().split("\n"))
    for place, line in enumerate(lines[:last]):
        if place >= last - _SIGNATURE_LINES and _SIGNATURE.match(line):
            return lines[:place]
    return lines


def _line(post: Post, counts: Counts, words: int, *, seen: bool) -> str | None:
    """The body as it is written, or None where the post is left out; either is counted."""
    counts.posts += 1
    if not post.subject:
        counts.without_subject += 1
    elif not post.body:
        counts.without_body += 1
    elif seen:
        counts.seen += 1
    else:
        counts.kept += 1
        counts.words_dropped += post.dropped
        counts.cut += len(post.body) > words
        counts.words_cut += max(0, len(post.body) - words)
        return " ".join(post.body[:words])
    return None


def _posts(path: Path) -> Iterator[Post]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: line {number} is no post, a JSON object with a text: {error!r}.") from error
        yield read_post(text)


def _file(folder: Path, part: str) -> Path:
    found = sorted(folder.glob(f"*{part}*.jsonl*"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise DataError(f"{folder} must hold one file *{part}*.jsonl (or .jsonl.xz, .jsonl.gz); it holds {names}.")
    return found[0]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
