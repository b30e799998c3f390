"""Preparing the 20 newsgroups (Lang 1995) as pairs of a post and its subject line, which models learn to write."""

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.text import parsed, reading, well_formed
from regard.errors import DataError, OptionError
from regard.files import write_text

ARCHIVE = "20news-bydate.tar.gz"
MAX_POST_BYTES = 2**24
VALID_SHARE = 20
"""One in this many subjects of the training posts is held out for validation."""
MAX_WORD_LENGTH = 40
"""Longer words are dropped: they are encoded data or lines drawn with characters."""

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
    """How many posts of one split were kept, left out or truncated."""

    posts: int = 0
    kept: int = 0
    without_subject: int = 0
    """Posts left out because they have no subject, or only Re:."""
    without_body: int = 0
    """Posts left out because they hold only headers, quotations and a signature."""
    known_subject: int = 0
    """Test posts left out because a training post has the same subject, which could be memorized."""
    truncated: int = 0
    """Posts kept with only the first words of their bodies."""
    words_truncated: int = 0
    """Number of words removed by truncation."""
    words_dropped: int = 0
    """Number of words dropped because they are e-mail addresses or longer than MAX_WORD_LENGTH."""

    def __str__(self) -> str:
        return (
            f"{self.kept} of {self.posts} posts kept; left out: {self.without_subject} without a subject, "
            f"{self.without_body} without words of their own, {self.known_subject} with a subject of the training "
            f"posts; {self.truncated} bodies truncated by {self.words_truncated} words, {self.words_dropped} addresses "
            "and overlong words dropped"
        )


@dataclass(frozen=True)
class Post:
    """The words that the author of a post wrote, and its subject."""

    body: list[str]
    subject: str
    dropped: int
    """Number of addresses and overlong words that were dropped."""


def prepare(source: str | os.PathLike[str], out: str | os.PathLike[str], *, words: int = 100) -> dict[str, Counts]:
    """Write train, valid and test as parallel text files NAME.body and NAME.subject, one post per line.

    `source` is a folder with 20news-bydate.tar.gz, as `regard data get newsgroups` downloads it, or with *train*.jsonl
    and *test*.jsonl (plain, .xz or .gz), whose lines hold a whole post as `text`. Headers, quotations, signatures and
    e-mail addresses are removed, and each Re: of a subject. Bodies are truncated to `words` words. All posts of a
    subject are in one split: the training posts are split by a hash of their subject, and test posts with a subject of
    the training posts are left out. Everything left out or truncated is counted.
    """
    if words < 1:
        raise OptionError(f"words must be 1 or more; got words={words}.")
    source, out = Path(source), Path(out)
    texts = _texts(source)
    counts = {part: Counts() for part in ("train", "valid", "test")}
    known: set[str] = set()
    pairs: dict[str, list[tuple[str, str]]] = {part: [] for part in counts}
    for given, posts in texts.items():
        for post in map(read_post, posts):
            # A post is counted in the split that its subject belongs to.
            key = post.subject.casefold()
            part = "valid" if given == "train" and _number(key) % VALID_SHARE == 0 else given
            if given == "train":
                known.add(key)
            if (line := _line(post, counts[part], words, is_known=given == "test" and key in known)) is not None:
                pairs[part].append((line, post.subject))
    for part, lines in pairs.items():
        for side, name in enumerate(("body", "subject")):
            write_text(out / f"{part}.{name}", "".join(f"{pair[side]}\n" for pair in lines))
    return counts


def read_post(text: str) -> Post:
    """Extract the words of the author and the subject from a post."""
    lines = text.replace("\r\n", "\n").split("\n")
    if "\n" not in text.strip():
        # In one published copy of this corpus every line end has become a tab.
        lines = text.replace("\t", "\n").split("\n")
    blank = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    written = [line for line in _without_signature(lines[blank:]) if not _QUOTE.search(line)]
    plain, addresses = _ADDRESS.subn(" ", "\n".join(written))
    found = plain.split()
    body = [word for word in found if len(word) <= MAX_WORD_LENGTH]
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


def _without_signature(lines: list[str]) -> list[str]:
    """Remove a signature: the lines after a line of dashes, if they are few."""
    last = len("\n".join(lines).rstrip().split("\n"))
    for number, line in enumerate(lines[:last]):
        if number >= last - _SIGNATURE_LINES and _SIGNATURE.match(line):
            return lines[:number]
    return lines


def _line(post: Post, counts: Counts, words: int, *, is_known: bool) -> str | None:
    """Return the truncated body, or None if the post is left out, and count which."""
    counts.posts += 1
    if not post.subject:
        counts.without_subject += 1
    elif not post.body:
        counts.without_body += 1
    elif is_known:
        counts.known_subject += 1
    else:
        counts.kept += 1
        counts.words_dropped += post.dropped
        counts.truncated += len(post.body) > words
        counts.words_truncated += max(0, len(post.body) - words)
        return " ".join(post.body[:words])
    return None


def _texts(source: Path) -> dict[str, Iterator[str]]:
    """The texts of the training and of the test posts, read when they are iterated over."""
    archive = source / ARCHIVE
    if archive.is_file():
        return {part: _archived(archive, part) for part in ("train", "test")}
    paths = {part: _file(source, part) for part in ("train", "test")}
    return {part: parsed(path, _text, "a post, a JSON object with a text") for part, path in paths.items()}


def _text(line: str) -> str:
    return well_formed(json.loads(line)["text"])


def _archived(archive: Path, part: str) -> Iterator[str]:
    with reading(archive), tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.removeprefix("./").startswith(f"20news-bydate-{part}/"):
                if member.size > MAX_POST_BYTES:
                    raise DataError(f"{archive}/{member.name} has {member.size:,} bytes, which is not a post.")
                stream = tar.extractfile(member)
                yield "" if stream is None else stream.read().decode("latin-1")


def _file(folder: Path, part: str) -> Path:
    found = sorted(folder.glob(f"*{part}*.jsonl*"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise DataError(
            f"{folder} must hold {ARCHIVE}, or one file *{part}*.jsonl (or .jsonl.xz, .jsonl.gz); it holds {names}."
            " Run `regard data get newsgroups --out FOLDER` to download it."
        )
    return found[0]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
