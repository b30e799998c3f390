"""Timing several ways to do the same work: in turn, on the same inputs, so that a slow moment affects all of them."""

import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.text import Text

from regard.errors import OptionError
from regard.files import write_text

MAX_MILLISECONDS = 10_000
"""Longer times are given in seconds."""


@dataclass(frozen=True)
class Contest:
    """One task and several ways to do it. The speed of each rival is relative to the first."""

    name: str
    rivals: Mapping[str, Callable[[], object]]
    items: int = 0
    """Number of items, such as sentences or tokens, that one run processes; 0 to report no rate."""


@dataclass(frozen=True)
class Timing:
    """The times of one rival in one contest, in seconds."""

    contest: str
    rival: str
    median: float
    fastest: float
    slowest: float
    ratio: float
    """Median time of the first rival divided by this rival's: 2.0 is twice as fast as the first."""
    rate: float | None
    """Items per second."""
    mebibytes: float | None
    """On a GPU: peak memory of one run beyond its inputs."""


def machine() -> dict[str, Any]:
    """The hardware and the settings that the times depend on."""
    return {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
    }


def check_repeats(repeats: int) -> None:
    """Raise an OptionError for a number of repeats that times nothing."""
    if repeats < 1:
        raise OptionError(f"repeats must be a whole number of 1 or more; got {repeats}.")


def run_contests(contests: Sequence[Contest], *, repeats: int = 7, progress: bool = True) -> list[Timing]:
    """Time all contests: each rival runs once to warm up, then `repeats` times in turn with the others.

    The order is shuffled in every round, because a run finds in the caches what the run before it left there.
    """
    check_repeats(repeats)
    timings: list[Timing] = []
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
        task = bar.add_task("", total=sum(len(contest.rivals) * (repeats + 1) for contest in contests))
        for contest in contests:
            bar.update(task, description=contest.name)
            memory = {name: _warm_up(run) for name, run in contest.rivals.items()}
            bar.advance(task, len(contest.rivals))
            times: dict[str, list[float]] = {name: [] for name in contest.rivals}
            order, shuffler = list(contest.rivals), random.Random(0)  # noqa: S311 - not a secret
            for _ in range(repeats):
                shuffler.shuffle(order)
                for name in order:
                    times[name].append(_seconds(contest.rivals[name]))
                    bar.advance(task)
            timings += _timings(contest, times, memory)
    return timings


def timing_table(timings: Sequence[Timing], title: str, *, unit: str = "items") -> RenderableType:
    """The timings for a terminal of 80 columns or more: a heading per contest, then a line per rival.

    `unit` names what `Timing.rate` counts. A column that would be empty is left out.
    """
    has_rate = any(timing.rate is not None for timing in timings)
    has_memory = any(timing.mebibytes is not None for timing in timings)
    header = ["", "median", "min - max"]
    header += [f"{unit}/s"] * has_rate + ["MiB"] * has_memory + ["speed"]
    rows = [_cells(timing, has_rate=has_rate, has_memory=has_memory) for timing in timings]
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    lines: list[RenderableType] = [Text(title, style="bold"), Text(machine_line()), ""]
    lines.append(_line(header, widths, style="dim"))
    cells = iter(rows)
    for contest, group in groupby(timings, key=lambda timing: timing.contest):
        lines += [Text(contest, style="bold"), *(_line(next(cells), widths) for _ in group), ""]
    lines.append(Text("speed: how many times as fast as the first line of the group."))
    return Group(*lines)


def report(
    contests: Sequence[Contest], title: str, *, repeats: int, unit: str = "items", path: Path | None = None
) -> None:
    """Time all contests and print the table; with a path, also write the numbers to this file, as JSON."""
    timings = run_contests(contests, repeats=repeats)
    Console(highlight=False).print(timing_table(timings, title, unit=unit))
    if path is not None:
        save_timings(timings, path)
        Console(soft_wrap=True, highlight=False, markup=False).print(f"Wrote {path}")


def format_seconds(seconds: float, like: float | None = None) -> str:
    """A time to three significant digits in µs, ms or s, such as "1,440 ms"; `like` is a time whose unit is used."""
    scale = seconds if like is None else like
    if 1e3 * scale >= MAX_MILLISECONDS:
        return f"{_digits(seconds)} s"
    return f"{_digits(1e3 * seconds)} ms" if scale >= 1e-3 else f"{_digits(1e6 * seconds)} µs"


def save_timings(timings: Sequence[Timing], path: Path) -> None:
    """Write the timings and the machine as JSON."""
    fields = {"machine": machine(), "results": [asdict(timing) for timing in timings]}
    write_text(path, json.dumps(fields, indent=2) + "\n")


def device() -> torch.device:
    """The GPU when there is one, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _timings(
    contest: Contest, times: Mapping[str, list[float]], memory: Mapping[str, float | None]
) -> Iterator[Timing]:
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    first = next(iter(medians.values()))
    for name, seconds in times.items():
        yield Timing(
            contest.name,
            name,
            medians[name],
            min(seconds),
            max(seconds),
            first / medians[name],
            contest.items / medians[name] if contest.items else None,
            memory[name],
        )


def _cells(timing: Timing, *, has_rate: bool, has_memory: bool) -> list[str]:
    fastest, slowest = (format_seconds(time, timing.median) for time in (timing.fastest, timing.slowest))
    cells = [f"  {timing.rival}", format_seconds(timing.median), f"{fastest.split()[0]} - {slowest}"]
    if has_rate:
        cells.append("" if timing.rate is None else _digits(timing.rate))
    if has_memory:
        cells.append("" if timing.mebibytes is None else f"{timing.mebibytes:,.0f}")
    return [*cells, f"{timing.ratio:.2f}x"]


def _line(cells: Sequence[str], widths: Sequence[int], *, style: str = "") -> Text:
    """The cells below those of the other lines. A terminal that is too narrow wraps them, but cuts none."""
    first, *others = (cell_len(cell) for cell in cells)
    padded = [cells[0] + " " * (widths[0] - first)]
    padded += [" " * (width - length) + cell for cell, length, width in zip(cells[1:], others, widths[1:], strict=True)]
    return Text("  ".join(padded), style=style, overflow="fold")


def machine_line() -> str:
    """The machine in a line above a table."""
    here = machine()
    threads = f"{here['threads']} thread{'' if here['threads'] == 1 else 's'}"
    tf32 = f", TF32 {'on' if here['tf32'] else 'off'}" if torch.cuda.is_available() else ""
    return f"torch {here['torch']}, {here['device']}, {threads}{tf32}"


def _digits(number: float) -> str:
    """A number to about three significant digits, with separators of thousands and never an exponent."""
    decimals = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:,.{decimals}f}"


def _seconds(run: Callable[[], object]) -> float:
    _synchronize()
    began = time.perf_counter()
    run()
    _synchronize()
    return time.perf_counter() - began


def _warm_up(run: Callable[[], object]) -> float | None:
    """Run once; on a GPU, run again and return the peak memory in MiB."""
    run()
    if not torch.cuda.is_available():
        return None
    _synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    _synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
