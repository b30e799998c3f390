"""Cases of the machine: a full disk, signals, files without end, images that decode to much, closed pipes."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from helpers.command_line import regard
from PIL import Image

from abuse import api, commands
from abuse.cases import Case, Verdict, judged
from regard.files import DRAFT

SIZES = (0, 1, 100, 5000, 100_000)
"""Bytes that a file may have where the disk is full."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP)
MOMENTS = (0.05, 0.5, 3.0, 6.0)
"""Seconds after which a signal is sent."""


def cases() -> Iterator[Case]:
    """What a machine does to a program."""
    for size in SIZES:
        for name, write in _writers().items():
            yield Case("machine", f"{name}, files of {size} bytes", partial(_full, write, size))
        for command in _outputs():
            yield Case("machine", f"{command}, files of {size} bytes", partial(_full_command, command, size))
    for command in _outputs():
        for kind in ("a link", "a hard link", "a broken link", "the file", "a folder", "below a file", "/dev/full"):
            yield Case("machine", f"{command} to {kind}", partial(_replaced, command, kind))
    for sent in SIGNALS:
        for moment in MOMENTS:
            run = partial(_signalled, sent, moment)
            yield Case("machine", f"{sent.name} after {moment} s", run, seconds=90)
    for name, (size, mode) in _IMAGES.items():
        for verb in ("recognize", "caption", "glimpse"):
            yield Case("machine", f"{verb} {name}", partial(_image, verb, size, mode), seconds=60)
    for device in ("/dev/zero", "/dev/urandom"):
        for command in (
            "view {x}",
            "recognize -m {recognize} {x}",
            "translate -m {translate} -i {x}",
            "train {x}",
            "classify -m {classify} --file {x}",
            "align {translate} --gold {x}",
            "evaluate {read} --file {x}",
        ):
            yield Case("machine", f"{command} {device}", partial(_device, command, device), seconds=60)


_IMAGES = {
    "a column": ((1, 39_000_000), "L"),
    "a row": ((40_000, 1), "RGB"),
    "6000 x 6000, transparent": ((6000, 6000), "RGBA"),
    "8000 x 8000": ((8000, 8000), "L"),
    "5000 x 5000, deep": ((5000, 5000), "I;16"),
    "60 megapixels": ((10_000, 6000), "RGB"),
    "70 megapixels": ((10_000, 7000), "1"),
    "a palette": ((8000, 8000), "P"),
}


def _writers() -> dict[str, Callable[[Path], Any]]:
    """What writes files from Python."""
    given = api.given()
    view = api.regard.view(given.trace)
    return {
        "Trace.save": lambda folder: given.trace.save(folder / "a.json"),
        "Trace.to_csv": lambda folder: given.trace.to_csv(folder / "a.csv"),
        "Translator.save": lambda folder: given.models["translate"].save(folder / "m"),
        "Captioner.save": lambda folder: given.models["caption"].save(folder / "m", store="int8"),
        **{f"view.save {kind}": partial(_save, view, kind) for kind in ("png", "pdf", "svg", "html")},
    }


def _save(view: Any, kind: str, folder: Path) -> Any:
    return view.save(folder / f"a.{kind}")


def _outputs() -> list[str]:
    translate = "translate -m {translate} --max-length 3 --beam 1 a"
    return [
        f"{translate} -o {{x}}.txt",
        f"{translate} --show {{x}}.html",
        f"{translate} --show {{x}}.pdf",
        "classify -m {classify} text -o {x}.txt",
        "read -m {read} text --json -o {x}.json",
        "glimpse {image.png} --crop {x}.png",
        "view {trace.json} -o {x}.svg",
        "evaluate {translate} --beam 1 --source {lines.txt} --reference {lines.txt} -o {x}.json",
        "align {translate} {lines.txt} {lines.txt} -o {x}.txt",
        "data scenes --count 5 --show 1 --out {x}.png",
        "translate -m {translate} --beam 1 -i {lines.txt} -o {x}/",
        "gallery {caption} --captions {coco.json} --images {images.zip} -o {x}",
    ]


def _limited(size: int, call: Callable[[], Verdict]) -> Verdict:
    """What happens where no file may be larger: the error of a full disk, without a disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        return call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def _left(folder: Path, verdict: Verdict) -> Verdict:
    """The verdict, unless something is left half-written."""
    left = [path.name for path in folder.rglob(f"*{DRAFT}")]
    return Verdict("silent", f"left half-written: {left[:3]}") if left else verdict


def _full(write: Callable[[Path], Any], size: int, folder: Path) -> Verdict:
    return _left(folder, _limited(size, lambda: judged(lambda: write(folder))))


def _full_command(command: str, size: int, folder: Path) -> Verdict:
    words = commands._words(command, folder, str(folder / "out"))
    done = _limited(size, lambda: regard(*words, columns=200))  # type: ignore[arg-type, return-value]
    return _left(folder, commands.judged_command(done, (0, 1, 2)))  # type: ignore[arg-type]


def _replaced(command: str, kind: str, folder: Path) -> Verdict:
    """Write to where something of the user is: it is refused, and what is there stays."""
    suffix = command.rsplit("{x}", 1)[1]
    out, mine = folder / f"out{suffix}".rstrip("/"), folder / "mine.txt"
    words = commands._words(command, folder, str(folder / "out"))
    match kind:
        case "a link":
            out.symlink_to(mine)
        case "a hard link":
            out.hardlink_to(mine)
        case "a broken link":
            out.symlink_to(folder / "nowhere")
        case "the file":
            words = [word.replace(str(folder / f"out{suffix}"), str(mine)) for word in words]
        case "a folder":
            out.mkdir()
            (out / "mine.txt").write_text("mine")
        case "below a file":
            words = [word.replace(str(folder / "out"), str(mine / "out")) for word in words]
        case _:
            words = [word.replace(str(folder / f"out{suffix}"), kind) for word in words]
    done = regard(*words, columns=200)
    if kind == "a folder" and (out / "mine.txt").read_text() != "mine":
        return Verdict("destroyed", str(out))
    if kind == "/dev/full" and done.returncode == 0 and not command.endswith(("}", "/")):
        return Verdict("silent", "written to a device that is full")
    fine = (1, 2) if kind == "/dev/full" else (2,)
    may_write = kind in ("/dev/full", "a folder") or (kind == "the file" and not suffix.strip("/"))
    return commands.judged_command(done, (0, *fine) if may_write else fine)


def _signalled(sent: signal.Signals, moment: float, folder: Path) -> Verdict:
    """End a job of two workers: no process and, but after SIGKILL, no draft is left."""
    lines = folder / "lines.txt"
    lines.write_text("a dog runs over the green field\n" * 20_000)
    command = [
        "translate",
        "-m",
        str(commands.shelf() / "translate"),
        "--beam",
        "1",
        "-i",
        str(lines),
        "-o",
        f"{folder}/out/",
        "--workers",
        "2",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    running = subprocess.Popen([sys.executable, "-m", "regard", *command], stdout=pipe, stderr=pipe, env=environment)
    time.sleep(moment)
    workers = _descendants(running.pid)
    running.send_signal(sent)
    _, said = running.communicate(timeout=60)
    end = time.monotonic() + 30
    while (alive := [pid for pid in workers if _is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    if alive:
        return Verdict("hang", f"{len(alive)} workers outlive the job")
    if b"Traceback" in said and moment > 1:  # before that, Python itself is starting
        return Verdict("traceback", said.decode()[-300:])
    return Verdict("answered") if sent in (signal.SIGKILL, signal.SIGHUP) else _left(folder, Verdict("answered"))


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _image(verb: str, size: tuple[int, int], mode: str, folder: Path) -> Verdict:
    """Answer for a large image, or refuse it, in little memory."""
    path = folder / "large.png"
    if mode == "I;16":
        Image.fromarray(np.zeros(size[::-1], np.uint16)).save(path, compress_level=1)
    else:
        Image.MAX_IMAGE_PIXELS, before = None, Image.MAX_IMAGE_PIXELS
        Image.new(mode, size).save(path, compress_level=1)
        Image.MAX_IMAGE_PIXELS = before
    given = api.given()
    return judged(lambda: given.models[verb].predict(path))


def _device(command: str, device: str, folder: Path) -> Verdict:
    done = regard(*commands._words(command, folder, device), columns=200)
    return commands.judged_command(done, (2,))
