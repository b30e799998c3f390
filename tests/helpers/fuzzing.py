"""Damaged files for the fuzzing tests: bytes changed at random, and JSON with other values in its places."""

import copy
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("REGARD_FUZZ_SECONDS", "0"))
"""How long `make fuzz` tries each parser; 0 in other runs of the tests, which try a few examples, always the same."""
BOUNDED = settings(
    max_examples=200 if SECONDS else 30,
    deadline=None,
    database=None,
    derandomize=not SECONDS,
    suppress_health_check=list(HealthCheck),
)
_CHUNKS = [
    b"",
    b"\0",
    b"\xff" * 4,
    b"\n",
    b"\r\n",
    b"\t",
    b",",
    b'"',
    b"{",
    b"]",
    b"#",
    b"\xef\xbb\xbf",
    b"1e999",
    b"-1",
]
_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        10**30,
        2**63,
        0.5,
        -1e308,
        float("nan"),
        float("inf"),
        "",
        "x",
        "\ud800",
        "\0",
        "../x",
    ),
    *([], {}, [[]], [None], {"": None}, [1, "a"], "a" * 5000, [[[[[[[[[[0]]]]]]]]]], list(range(300))),
]


@dataclass(frozen=True)
class Parser:
    """Something that reads a file: what its files are called, a right one, and how it is read."""

    name: str
    file: str
    valid: bytes
    read: Callable[[Path], Any]
    form: str = "bytes"
    """bytes, json or jsonl: how it is damaged, beside in its bytes."""

    def damaged(self) -> st.SearchStrategy[bytes]:
        """Damaged forms of the right file, and files of nonsense."""
        kinds = [changed_bytes(self.valid), st.binary(max_size=300)]
        if self.form == "json":
            kinds.append(changed_json(json.loads(self.valid)).map(_dump))
        elif self.form == "jsonl":
            kinds.append(_changed_lines(self.valid))
        return st.one_of(*kinds)


def repeat(run: Callable[[], None]) -> None:
    """Run a test of hypothesis once, and again until its time is used up."""
    start = time.monotonic()
    run()
    while time.monotonic() - start < SECONDS:
        run()


@st.composite
def changed_bytes(draw: st.DrawFn, valid: bytes) -> bytes:
    """Some bytes of a file flipped, cut, repeated or replaced."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(0, len(content) - 1)))
        length = draw(st.integers(0, max(1, len(content) - start)))
        match draw(st.sampled_from(["flip", "cut", "truncate", "insert", "repeat", "replace"])):
            case "flip" if content:
                content[start] ^= draw(st.integers(1, 255))
            case "cut":
                del content[start : start + length]
            case "truncate":
                del content[start:]
            case "insert":
                content[start:start] = draw(st.sampled_from(_CHUNKS) | st.binary(max_size=8))
            case "repeat":
                content[start:start] = content[start : start + min(length, 2000)]
            case "replace":
                chunk = draw(st.sampled_from(_CHUNKS) | st.binary(max_size=8))
                content[start : start + len(chunk)] = chunk
    return bytes(content)


@st.composite
def changed_json(draw: st.DrawFn, valid: Any) -> Any:
    """A JSON value in which some places hold something else, or nothing."""
    content = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(content))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        value = copy.deepcopy(draw(st.sampled_from(_VALUES)))
        match draw(st.sampled_from(["replace", "delete", "add"])):
            case "replace":
                holder[key] = value
            case "delete":
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(["", "x", "version", "__class__", "\ud800"]))] = value
            case "add":
                holder.append(value)
    return content


@st.composite
def _changed_lines(draw: st.DrawFn, valid: bytes) -> bytes:
    lines = [json.loads(line) for line in valid.splitlines()]
    index = draw(st.integers(0, len(lines) - 1))
    lines[index] = draw(changed_json(lines[index]))
    return b"".join(_dump(line) + b"\n" for line in lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys)[:40]:
        yield value, key
        yield from _places(value[key])


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
