"""Whatever is wrong with what a command is given, it ends with one clear message and the right status."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import damage
from helpers.abuse import MT, TABLE, WRONG_OPTIONS, Slot, cases, fill_shelf
from helpers.command_line import Done, regard
from helpers.damage import READ, REFUSED
from helpers.fuzzing import SECONDS

from regard.cli import DATA, commands
from regard.data import text
from regard.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NOBODY = 65534
PIPES = [f"translate -m {{translate}} {MT}", "classify -m {classify}", "classify -m {classify} --lines",
         "read -m {read}"]  # fmt: skip
"""Commands that read the standard input, which take the same from a file with --input, or --file."""


@pytest.fixture(scope="module")
def shelf() -> Iterator[Path]:
    """Right files and models, which every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        fill_shelf(Path(folder))
        yield Path(folder)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_LINE_BYTES", damage.MAX_LINE)
    monkeypatch.setattr(text, "MAX_FILE_BYTES", damage.MAX_FILE)


def copied(shelf: Path, name: str, folder: Path) -> Path:
    """A copy of a right file, to be damaged."""
    copy = folder / "given" / name
    if (shelf / name).is_dir():
        shutil.copytree(shelf / name, copy)
    else:
        copy.parent.mkdir(parents=True)
        shutil.copy(shelf / name, copy)
    return copy


def run(command: str, given: Path, shelf: Path, folder: Path, input: bytes = b"") -> Done:
    """Run a command in which {x} is what is wrong."""
    names = {path.name: str(path) for path in shelf.iterdir()} | {"x": str(given), "new": str(folder)}
    words = ["" if word == "''" else word for word in command.split(" ")]
    for name, path in names.items():
        words = [word.replace(f"{{{name}}}", path) for word in words]
    return regard(*words, input=input, columns=200)


def explained(done: Done, ends: tuple[int, ...]) -> str:
    """The message of a command that ended as it should: in one line, without a traceback and raw errors."""
    assert "Traceback" not in done.stderr + done.stdout
    assert "This is a bug in regard" not in done.stderr, done.stderr
    assert done.returncode in ends, (done.returncode, done.stdout[-300:], done.stderr[-600:])
    if done.returncode == READ:
        return ""
    message = done.stderr.strip()
    assert message, "says nothing"
    if not message.startswith("╭"):  # a box around wrong options
        assert all(line.startswith("regard: ") for line in message.split("\n")), message
    assert len(message) < 1500, "a message is no dump of the file"
    assert "Errno" not in message, message
    return message


def test_every_command_has_a_row():
    found = set(commands()) | {f"data {name}" for name in DATA}
    assert set(TABLE) == found, "Add new commands to TABLE, with a slot for every file that they read or write."


@pytest.mark.parametrize(
    ("slot", "name"), list(cases(whole=SECONDS > 0)), ids=lambda each: getattr(each, "command", each)
)
def test_what_is_wrong_is_explained(slot, name, shelf, tmp_path):
    given = copied(shelf, slot.right, tmp_path) if slot.right else tmp_path / "new" / slot.new
    given.parent.mkdir(exist_ok=True)
    wrong = slot.kind[name]
    given = wrong.apply(given) or given
    explained(run(slot.command, given, shelf, tmp_path), wrong.ends)
    if name in ("a folder", "a file", "below a file") and not slot.right:
        mine = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
        assert [path.read_text() for path in mine] == ["mine"], "the files of the user are as they were"


@pytest.mark.parametrize(("command", "options"), [(c, o) for c, row in WRONG_OPTIONS.items() for o in row])
def test_wrong_options_are_explained(command, options):
    explained(regard(*command.split(), *options.split(), columns=200), (REFUSED,))


@contextmanager
def denied(path: Path) -> Iterator[None]:
    """Nobody may read the file or folder while the block runs; also not the administrator, who runs tests in CI."""
    path.chmod(0)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        path.chmod(0o755)


@pytest.mark.parametrize("slot", [slot for row in TABLE.values() for slot in row], ids=lambda slot: slot.command)
def test_what_may_not_be_read_or_written_is_explained(slot, shelf):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "o").mkdir()
        given = copied(shelf, slot.right, folder) if slot.right else folder / "closed" / slot.new
        given.parent.mkdir(exist_ok=True)
        with denied(given if slot.right else given.parent):
            done = run(slot.command, given, shelf, folder / "o")
        explained(done, (REFUSED,))


@pytest.mark.parametrize("command", PIPES)
@pytest.mark.parametrize("name", [name for name, each in damage.TEXT.items() if each.is_content])
def test_a_pipe_is_read_as_a_file_is(command, name, shelf, tmp_path):
    given = copied(shelf, "lines.txt", tmp_path)
    right = run(command, given, shelf, tmp_path, input=given.read_bytes())
    damage.TEXT[name].apply(given)
    option = "--file" if command == "classify -m {classify}" else "--input"
    from_file = run(f"{command} {option} {{x}}", given, shelf, tmp_path)
    from_pipe = run(command, given, shelf, tmp_path, input=given.read_bytes())
    assert from_file.returncode == from_pipe.returncode
    assert from_file.stdout == from_pipe.stdout
    assert from_file.stderr.replace(str(given), "The standard input") == from_pipe.stderr
    if name in damage.WINDOWS:
        assert from_pipe.stdout == right.stdout


def test_a_closed_pipe_ends_a_command_quietly():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m regard recipes | true"],  # noqa: S607
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.returncode == 141


def test_a_pipe_is_read_by_its_name(shelf, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"echo a dog > {pipe}"]) as writer:  # noqa: S607
        done = run(f"translate -m {{translate}} {MT} --input {{x}}", pipe, shelf, tmp_path)
        writer.kill()  # where the command never opened the pipe, it waits for ever
    assert done.returncode == READ, done.stderr
    assert done.stdout == run(f"translate -m {{translate}} {MT}", pipe, shelf, tmp_path, b"a dog\n").stdout


def test_a_device_is_written_to_and_not_replaced(shelf, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    run(f"translate -m {{translate}} {MT} a -o {{x}}", pipe, shelf, tmp_path)
    assert pipe.is_fifo()
    assert os.read(reading, 1000)
    os.close(reading)


def test_a_fault_of_regard_ends_with_status_1_and_a_traceback_only_in_debug(tmp_path, monkeypatch):
    def broken(path: object) -> None:
        raise RuntimeError("a fault\nof two lines")

    monkeypatch.setattr("regard.trace.Trace.load", broken)
    done = regard("view", tmp_path / "a.json")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "RuntimeError: a fault⏎of two lines" in done.stderr
    assert "--debug" in done.stderr
    with pytest.raises(RuntimeError, match="a fault"):
        regard("view", tmp_path / "a.json", "--debug")


def test_mistakes_have_a_traceback_only_in_debug(tmp_path):
    with pytest.raises(DataError, match=r"a\.json"):
        regard("view", tmp_path / "a.json", "--debug")
    done = regard("translate", "-m", tmp_path, "--", "--debug")
    assert "Traceback" not in done.stderr, "after --, it is a text"
    assert done.returncode == REFUSED


def test_messages_cannot_command_a_terminal(tmp_path):
    message = explained(regard("view", tmp_path / "\x1b[31mred\nline"), (REFUSED,))
    assert "\x1b" not in message
    assert "\n" not in message


def test_every_slot_names_a_right_file(shelf):
    given = {path.name for path in shelf.iterdir()}
    slots: list[Slot] = [slot for row in TABLE.values() for slot in row]
    assert {slot.right for slot in slots if slot.right} <= given
