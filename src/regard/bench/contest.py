"""Running rivals side by side: in turns, on the same inputs, so that what slows one slows the others too."""

import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table


@dataclass(frozen=True)
class Contest:
    """One row of a table: what is done, by whom. The first rival is what the others are compared with."""

    name: str
    rivals: Mapping[str, Callable[[], object]]
    things: int = 0
    """How many things (sentences, tokens) one run gets done, for a rate; 0 for none."""


@dataclass(frozen=True)
class Result:
    """The times of one rival in one contest, in seconds."""

    contest: str
    rival: str
    median: float
    fastest: float
    slowest: float
    ratio: float
    """How many times faster than the first rival, by the medians."""
    rate: float | None
    """Things done in a second."""
    mebibytes: float | None
    """On a GPU: the most memory that a run takes beyond its inputs."""


def machine() -> dict[str, Any]:
    """Where the times are taken."""
    return {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
    }


def hold(contests: Sequence[Contest], *, repeats: int = 7, progress: bool = True) -> list[Result]:
    """Hold the contests; each rival runs once to warm up, and then `repeats` times in turn with the others.

    Who follows whom is drawn anew each time: what a run finds in the caches is what the last one left there.
    """
    results: list[Result] = []
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
        task = bar.add_task("", total=sum(len(contest.rivals) * (repeats + 1) for contest in contests))
        for contest in contests:
            bar.update(task, description=contest.name)
            memory = {name: _memory(run) for name, run in contest.rivals.items()}
            bar.advance(task, len(contest.rivals))
            times: dict[str, list[float]] = {name: [] for name in contest.rivals}
            order, draw = list(contest.rivals), random.Random(0)  # noqa: S311 - there is no secret in it
            for _ in range(repeats):
                draw.shuffle(order)
                for name in order:
                    times[name].append(_seconds(contest.rivals[name]))
                    bar.advance(task)
            results += _compared(contest, times, memory)
    return results


def show(results: Sequence[Result], title: str) -> Table:
    """The results as a table for the terminal."""
    at = machine()
    where = f"torch {at['torch']}, {at['device']}, {at['threads']} threads, TF32 {'on' if at['tf32'] else 'off'}"
    table = Table("what", "by", "ms", "min - max", "per second", "MiB", "times as fast", title=f"{title}\n{where}")
    last = ""
    for result in results:
        if result.contest != last and last:
            table.add_section()
        table.add_row(
            result.contest if result.contest != last else "",
            result.rival,
            f"{1e3 * result.median:.3g}",
            f"{1e3 * result.fastest:.3g} - {1e3 * result.slowest:.3g}",
            "" if result.rate is None else f"{result.rate:,.1f}",
            "" if result.mebibytes is None else f"{result.mebibytes:,.0f}",
            f"{result.ratio:.2f}",
        )
        last = result.contest
    return table


def write(results: Sequence[Result], path: Path) -> None:
    """The results and the machine as JSON."""
    fields = {"machine": machine(), "results": [asdict(result) for result in results]}
    path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def _compared(contest: Contest, times: Mapping[str, list[float]], memory: Mapping[str, float | None]) -> list[Result]:
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    first = next(iter(medians.values()))
    return [
        Result(
            contest.name,
            name,
            medians[name],
            min(taken),
            max(taken),
            first / medians[name],
            contest.things / medians[name] if contest.things else None,
            memory[name],
        )
        for name, taken in times.items()
    ]


def _seconds(run: Callable[[], object]) -> float:
    _wait()
    began = time.perf_counter()
    run()
    _wait()
    return time.perf_counter() - began


def _memory(run: Callable[[], object]) -> float | None:
    if not torch.cuda.is_available():
        run()
        return None
    run()
    _wait()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    _wait()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def device() -> Any:
    """The GPU when there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
