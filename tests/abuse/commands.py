"""Cases of the command line: every damaged file, every option with every wrong value, text that commands a terminal."""

import os
import pty
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args, get_origin

from helpers import damage
from helpers.abuse import TABLE, WRONG_OPTIONS, Slot, fill_shelf
from helpers.command_line import Done, regard
from helpers.damage import READ, REFUSED

from abuse.cases import Case, Verdict, judged_message
from regard.cli import build_app
from regard.data import text

WRONG_VALUES = {
    "''": "",
    "x": "x",
    "-1": "-1",
    "0": "0",
    "1.5": "1.5",
    "nan": "nan",
    "inf": "inf",
    "-inf": "-inf",
    "1e999": "1e999",
    "10**9": "1000000000",
    "10**18": "1" + "0" * 18,
    "10**400": "1" + "0" * 400,
    "hex": "0x10",
    "escape": "\x1b]0;PWN\x07",
    "NUL": "a\udc00b",
    "mine": "mine.txt",
    "a folder": ".",
    "missing": "nowhere/at/all",
    "a device": "/dev/null",
    "/dev/zero": "/dev/zero",
    "long": "x" * 5000,
}
"""What stands for the value of any option."""
RIGHT = {
    "translate": "translate -m {translate} --max-length 3 --beam 1 a",
    "align": "align {translate} {lines.txt} {lines.txt}",
    "caption": "caption -m {caption} --max-length 3 --beam 1 {image.png}",
    "recognize": "recognize -m {recognize} {image.png}",
    "glimpse": "glimpse {image.png}",
    "classify": "classify -m {classify} text",
    "tape": "tape 01100110",
    "read": "read -m {read} text",
    "evaluate": "evaluate tape-copy --count 1 --lengths 2 --per-length 1",
    "view": "view {trace.json}",
    "models": "models",
    "recipes": "recipes",
    "data list": "data list",
    "data babel": "data babel --count 5 --show 1",
    "data scenes": "data scenes --count 5 --show 1 --out {new}/s.png",
    "gallery": "gallery {caption} --captions {coco.json} --images {images.zip} --beam 1 -o {new}/g",
    "serve": "serve --port -1",
    "bench": "bench nonsense",
    "train": "train --data.pairs {pairs.tsv} --train.epochs -1 --out {new}/run",
}
"""A command of each sort that takes moments; serve, bench and train are refused after their options are read."""


@cache
def shelf() -> Path:
    """Right files and models, for all cases of this process."""
    folder = Path(tempfile.mkdtemp(prefix="abuse-shelf-"))
    fill_shelf(folder)
    return folder


def cases() -> Iterator[Case]:
    """Damaged files, wrong options, wrong texts."""
    shelf()
    for row in TABLE.values():
        for slot in row:
            for name, wrong in slot.damages(whole=True).items():
                yield Case("commands", f"{slot.command} ({name})", partial(_damaged, slot, wrong))
    for command, options in WRONG_OPTIONS.items():
        for option in options:
            yield Case("commands", f"{command} {option}", partial(_refused, f"{command} {option}"))
    for command, right in RIGHT.items():
        for option, kind in _options(command):
            if option in right.split():
                continue
            for name, value in WRONG_VALUES.items():
                run = partial(_with_option, right, option, value, kind)
                yield Case("commands", f"{right} {option} {name}", run)
    for command in (
        "translate",
        "classify",
        "read",
        "tape",
        "recognize",
        "glimpse",
        "caption",
        "view",
        "recipes",
        "evaluate",
    ):
        for name, given in HOSTILE.items():
            yield Case("terminals", f"{command} {name}", partial(_on_a_terminal, command, given))


HOSTILE = {
    "a title": "\x1b]0;PWN\x07good",
    "colours": "\x1b[31mred",
    "clear": "\x1b[2J\x1b[H",
    "C1": "\x9b31mred\x9c",
    "backspace": "a\b\b\bb",
    "carriage return": "good\rbad",
    "bell": "\x07",
    "link": "\x1b]8;;http://x\x07y\x1b]8;;\x07",
    "clipboard": "\x1b]52;c;UFdO\x07",
    "direction": "\u202eabc",
    "delete": "a\x7f",
    "device status": "\x1b[6n",
    "device control": "\x1bP+q\x1b\\",
}
"""Texts that command a terminal."""


def _options(command: str) -> Iterator[tuple[str, Any]]:
    """The names of the options of a command, with their types."""
    words = command.split()
    app = build_app(words)
    for word in words:
        app = app[word]
    if app.default_command is None:
        return
    for argument in app.assemble_argument_collection(parse_docstring=False):
        name = argument.name
        if (
            name.startswith("--")
            and name not in ("--help", "--debug")
            and "." not in name
            and argument.hint is not bool
        ):
            yield name, argument.hint


def _words(command: str, folder: Path, given: str = "") -> list[str]:
    names = {path.name: str(path) for path in shelf().iterdir()} | {"x": given, "new": str(folder / "new")}
    words = ["" if word == "''" else word for word in command.split(" ")]
    for name, path in names.items():
        words = [word.replace(f"{{{name}}}", path) for word in words]
    return words


def judged_command(done: Done, ends: tuple[int, ...]) -> Verdict:
    """What a command did: it succeeds in silence about errors, or says in one line what is wrong."""
    if "Traceback" in done.stderr + done.stdout or "This is a bug in regard" in done.stderr:
        return Verdict("traceback", done.stderr[-300:])
    if done.returncode not in ends:
        kind = "silent" if done.returncode == READ else "unclear"
        return Verdict(kind, f"status {done.returncode}: {done.stderr[-200:]}")
    if done.returncode == READ:
        return Verdict("answered")
    message = " ".join(done.stderr.replace("│", " ").split())
    if "Errno" in message or len(message) > 1500:
        return Verdict("unclear", message[:300])
    return judged_message(message)


def _damaged(slot: Slot, wrong: damage.Damage, folder: Path) -> Verdict:
    before = text.MAX_LINE_BYTES, text.MAX_FILE_BYTES
    text.MAX_LINE_BYTES, text.MAX_FILE_BYTES = damage.MAX_LINE, damage.MAX_FILE
    try:
        given = folder / "given" / slot.right if slot.right else folder / "new" / slot.new
        given.parent.mkdir(exist_ok=True)
        if slot.right:
            right = shelf() / slot.right
            shutil.copytree(right, given) if right.is_dir() else shutil.copy(right, given)
        given = wrong.apply(given) or given
        return judged_command(regard(*_words(slot.command, folder, str(given)), columns=200), wrong.ends)
    finally:
        text.MAX_LINE_BYTES, text.MAX_FILE_BYTES = before


def _refused(command: str, folder: Path) -> Verdict:
    return judged_command(regard(*_words(command, folder), columns=200), (REFUSED,))


def _with_option(right: str, option: str, value: str, kind: Any, folder: Path) -> Verdict:
    (folder / "new").mkdir()
    kinds = {kind, *get_args(kind)}
    is_number = bool(kinds & {int, float}) and str not in kinds and get_origin(kind) is not dict
    wrong = is_number and value in (
        "",
        "x",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1" + "0" * 400,
        "0x10",
        "mine.txt",
        ".",
        "x" * 5000,
    )
    done = regard(*_words(right, folder), f"{option}={value}", columns=200)
    verdict = judged_command(done, (REFUSED,) if wrong else (READ, REFUSED))
    if verdict.kind == "answered" and value == "1.5" and int in kinds and float not in kinds:
        return Verdict("silent", "1.5 is taken for a whole number")
    return verdict


def _on_a_terminal(command: str, given: str, folder: Path) -> Verdict:
    """Whether what a command says on a terminal holds codes that the terminal obeys, but those of colours."""
    word = given.replace("/", "")
    if command in ("recognize", "glimpse", "caption"):
        shutil.copy(shelf() / "image.png", folder / word)
    model = [] if command in ("tape", "glimpse", "view", "recipes", "evaluate") else ["-m", str(shelf() / command)]
    words = [command, *model, *(["--max-length", "3"] if command in ("translate", "caption") else []), "--", word]
    ours, theirs = pty.openpty()
    child = os.fork()
    if not child:
        status = 1
        try:
            for stream in (0, 1, 2):
                os.dup2(theirs, stream)
            import sys

            from regard.cli import main

            sys.stdin, sys.stdout, sys.stderr = (open(stream, mode) for stream, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: PTH123, SIM115
            os.environ.update({"TERM": "xterm", "NO_COLOR": "1"})
            main(words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # on Linux, the end of a terminal
            break
        if not part:
            break
        said += part
    os.close(ours)
    _, status = os.waitpid(child, 0)
    written = _without_styles(said.decode("utf-8", "replace"))
    if wrong := sorted(
        {letter for letter in written if (letter < " " and letter not in "\n\r\t") or "\x7f" <= letter <= "\x9f"}
    ):
        return Verdict("silent", f"control characters reach the terminal: {wrong!r} in {written[:120]!r}")
    if "\r" in written.replace("\r\n", ""):
        return Verdict("silent", f"a carriage return reaches the terminal: {written[:120]!r}")
    if "Traceback" in written or os.waitstatus_to_exitcode(status) not in (READ, REFUSED):
        return Verdict("traceback", written[-300:])
    return Verdict("answered")


def _without_styles(said: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", said)
