"""What SECURITY.md promises of the commands: files are kept, terminals obey nobody, a line in is a line out."""

import io
import json
import lzma
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import refused, regard, write_lines
from rich.text import Text

from regard.cli.io import SafeConsole, as_json, check_outputs, in_one_line, print_line, read_inputs, warn_of_files
from regard.errors import OptionError, RegardWarning
from regard.trace import Trace

PWNED = "\x1b]0;PWN\x07"
BREAKS = "\r\x0b\x0c\x1c\x85\u2028\u2029"
MINE = "years of work"


EACH = """
import json, sys
from regard.cli import main

for number, command in enumerate(json.loads(sys.argv[1])):
    try:
        main(command)
    except SystemExit:
        pass
    print(f"(end of command {number})", flush=True)
"""


def on_a_terminal(commands, cwd):
    """What each of the commands writes to a terminal, on both of its streams."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-c", EACH, json.dumps([[*map(str, each)] for each in commands])]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=cwd) as running:
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
        running.wait()
    os.close(ours)
    *each, last = re.split(r"\(end of command \d+\)", said.decode())
    assert (len(each), last.strip()) == (len(commands), ""), said
    return each


@pytest.fixture
def mine(tmp_path):
    """A file of the user, its folder, and a check that it is as it was."""
    path = tmp_path / "mine.png"
    path.write_text(MINE)
    yield path
    assert path.read_text() == MINE, "the file of the user is as it was"


@pytest.mark.parametrize("option", ["--output", "--show"])
def test_a_file_that_exists_is_replaced_only_with_overwrite(case, option, mine, tmp_path):
    assert f"{option} {mine} exists. Add --overwrite" in refused(*case.command, *case.one, option, mine)
    (tmp_path / "link.png").symlink_to(mine)
    (tmp_path / "hard.png").hardlink_to(mine)
    (tmp_path / "nowhere.png").symlink_to(tmp_path / "gone.png")
    for name in ("link.png", "hard.png", "nowhere.png"):
        assert "exists. Add --overwrite" in refused(*case.command, *case.one, option, tmp_path / name)
    if case.verb != "recognize" or option == "--output":
        (tmp_path / "old.png").write_text("old")
        regard(*case.command, *case.one, option, tmp_path / "old.png", "--overwrite", check=True)
        assert (tmp_path / "old.png").read_bytes() != b"old"


def test_other_commands_replace_a_file_only_with_overwrite(models, mine, tmp_path):
    trace, lines = tmp_path / "t.json", write_lines(tmp_path / "a.txt", ["a dog"])
    trace.write_text(Trace.from_weights(["a", "b"], ["c"], [[0.9, 0.1]]).to_json())
    pairs = ["--source", lines, "--reference", lines, "--beam", 1]
    for command in (
        ["glimpse", "-m", models / "glimpse", models / "red.png", "--crop", mine],
        ["view", trace, "--output", mine],
        ["evaluate", models / "translate", *pairs, "--output", mine],
        ["evaluate", models / "translate", *pairs, "--plot", mine],
        ["align", models / "translate", lines, lines, "--output", mine],
        ["align", models / "translate", lines, lines, "--show", mine],
        ["data", "scenes", "--count", 9, "--show", 1, "--out", mine],
        ["bench", "--json", mine],
    ):
        assert f"{command[-2]} {mine} exists. Add --overwrite" in refused(*command), command[0]
    regard("view", trace, "--output", tmp_path / "t.png", check=True)
    regard("view", trace, "--output", tmp_path / "t.png", "--overwrite", check=True)


def test_a_folder_with_other_files_is_written_to_only_with_overwrite(models, mine):
    files = ["--captions", models / "captions.tsv", "--images", models]
    for command in (
        ["demo", "--out", mine.parent],
        ["gallery", models / "brief", *files, "--out", mine.parent],
        ["data", "newsgroups", "--from", models, "--out", mine.parent],
    ):
        assert f"{mine.parent} holds files that regard did not write. Add --overwrite" in refused(*command)
    assert list(mine.parent.iterdir()) == [mine]


def test_a_job_replaces_a_file_of_the_user_only_with_overwrite(models, tmp_path, one_process):
    lines, out = write_lines(tmp_path / "a.txt", ["a dog"]), tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text(MINE)
    command = ["recognize", "-m", models / "recognize", "-i", lines, "-o", f"{out}/", "--skip-errors"]
    assert "was not written by this job. Add --overwrite" in refused(*command)
    assert (out / "a.txt").read_text() == MINE
    regard(*command, "--overwrite", check=True)
    assert (out / "a.txt").read_text() == "\n"
    assert "complete already: 1" in regard(*command, check=True).stderr, "a job goes on without it"


@pytest.mark.parametrize("link", ["the name", "a symbolic link", "a hard link"])
def test_input_and_output_are_never_the_same_file(case, link, tmp_path):
    path, other = tmp_path / "a.png", tmp_path / "b.png"
    if case.one[0].endswith(".png"):
        path.write_bytes(Path(case.one[0]).read_bytes())
        given = [path]
    else:
        given = ["--input", write_lines(path, case.lines)]
    before = path.read_bytes()
    if link == "the name":
        other = path
    else:
        (other.symlink_to if link == "a symbolic link" else other.hardlink_to)(path)
    for option in ("--output", "--show"):
        message = refused(*case.command, *given, option, other, "--overwrite")
        assert f"{option} {other} is the same file as {path}" in message
    assert path.read_bytes() == before


def test_no_two_files_of_a_command_are_the_same(models, tmp_path):
    one = tmp_path / "new.png"
    command = ["glimpse", "-m", models / "glimpse", models / "red.png", "--overwrite"]
    assert "is the same file as --output" in refused(*command, "--output", one, "--show", one)
    assert "is the same file as --show" in refused(*command, "--show", one, "--crop", one)
    path = tmp_path / "a.txt"
    path.write_text("a dog\n")
    with path.open() as stdin, path.open("a") as stdout:
        translate = [sys.executable, "-m", "regard", "translate", "-m", str(models / "translate")]
        into = subprocess.run([*translate, "-o", str(path), "--overwrite"], stdin=stdin, capture_output=True, text=True)
        onto = subprocess.run([*translate, "-i", str(path)], stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert "is the same file as The standard input" in into.stderr
    assert f"The standard output is the same file as {path}" in onto.stderr
    assert path.read_text() == "a dog\n"


def test_devices_and_pipes_are_written_to():
    check_outputs({"--output": "/dev/null", "--show": None, "--crop": "/dev/null"}, inputs=["/dev/null"])
    with pytest.raises(OptionError, match="exists"):
        check_outputs({"--output": __file__})


def test_no_control_character_reaches_a_terminal(models, tmp_path):
    text, name = f"{PWNED}a good film", f"{PWNED}x"
    for file in (text, "b.png"):
        (tmp_path / file).write_bytes((models / "red.png").read_bytes())
    answers = {
        **{verb: [text, "--show", "-"] for verb in ("translate", "classify", "read")},
        **{verb: [text, "b.png"] for verb in ("recognize", "glimpse")},
    }
    commands = [[verb, "-m", models / verb, *given] for verb, given in answers.items()]
    mistakes = [[name], ["translate", f"--{name}"], ["recipes", name], ["view", name], ["translate", "-i", name]]
    said = on_a_terminal([*commands, *mistakes], tmp_path)
    for (verb, *_), answer in zip(commands, said, strict=False):
        assert "PWN" in answer or verb == "translate", answer
        assert not set(re.sub(r"\x1b\[[0-9;]*m", "", answer)) & {"\x1b", "\x07"}, "but bold and the like"
    for message in said[len(commands) :]:
        assert "x" in message
        assert "\x07" not in message
        assert "\x1b]" not in message


def test_files_and_pipes_get_the_text_as_it_is(models, tmp_path):
    done = regard("read", "-m", models / "read", f"the {PWNED}", "--json", "-o", tmp_path / "a.json", check=True)
    assert done.stdout == ""
    assert PWNED in json.loads((tmp_path / "a.json").read_text())["text"]
    stream = io.StringIO()
    print_line(PWNED, stream)
    assert stream.getvalue() == f"{PWNED}\n"
    stream.isatty = lambda: True
    print_line(f"{PWNED}a\tb\nc", stream)
    assert stream.getvalue() == f"{PWNED}\n\ufffd]0;PWN\ufffda\tb\nc\n"


def test_a_console_shows_control_characters_and_keeps_its_own_colours():
    stream = io.StringIO()
    console = SafeConsole(file=stream, force_terminal=True, color_system="standard", width=40)
    console.print(Text(f"{PWNED}\u2068words\u2069", style="bold"))
    assert stream.getvalue() == "\x1b[1m\ufffd]0;PWN\u2068words\u2069\x1b[0m\n"


def test_one_line_in_is_one_line_out(case, tmp_path):
    lines = []
    for number, end in enumerate(BREAKS):
        if case.one[0].endswith(".png"):
            path = tmp_path / f"{number}{end}b.png"
            path.write_bytes(Path(case.one[0]).read_bytes())
            lines.append(str(path))
        else:
            lines.append(f"101{end}001" if case.verb == "tape" else f"Hello.{end}Good bye.")
    content = "".join(f"{line}\n" for line in [*lines, case.lines[1]])
    path = tmp_path / "lines.txt"
    path.write_text(content, encoding="utf-8", newline="")
    said = [regard(*case.command, "--input", path, *more, check=True).stdout for more in ([], ["--json"])]
    if case.verb in ("translate", "read"):
        said.append(regard(*case.command, input=content, check=True).stdout)
    for each in said:
        assert len(each.splitlines()) == len(BREAKS) + 1, "also where a program ends lines as Python does"


def test_json_is_one_line_and_means_the_same():
    assert json.loads(as_json({"a": BREAKS})) == {"a": BREAKS}
    assert len(as_json({"a": BREAKS}).splitlines()) == 1
    assert in_one_line(f"a{BREAKS}b\nc") == f"a{' ' * len(BREAKS)}b\nc"


@pytest.mark.parametrize(("verb", "option"), [("translate", "--input"), ("read", "--input"), ("classify", "--file")])
def test_a_text_that_names_a_file_is_warned_about_once(verb, option, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in.txt", ["good"])
    done = regard(verb, "-m", models / verb, "in.txt", "in.txt", check=True)
    said = f"regard: 'in.txt' is taken as a text. It is also a file: {option} in.txt reads it.\n"
    assert done.stderr.startswith(said)
    assert done.stderr.count("reads it") == 1
    assert done.stdout
    assert "reads it" not in regard(verb, "-m", models / verb, "A good film.", check=True).stderr


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
    found = list(read_inputs([str(tmp_path / "**" / "*")], sys.stdin.buffer))
    assert found == ["in a folder", "plain", "compressed", "compressed"]
