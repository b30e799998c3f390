"""Running cases: each in a process with limits of time and memory, in a folder with one file of the user."""

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from abuse.cases import FAILURES, FINE, MINE, Case, Verdict

MEMORY = 2 * 2**30
"""Bytes that a case may take beside what is loaded before it."""


def run_cases(cases: list[Case], workers: int) -> Iterator[tuple[Case, Verdict]]:
    """The verdict on each case, in any order; a worker that hangs or dies is replaced, and goes on behind the case."""
    todo = list(reversed(range(len(cases))))
    crew: dict[Connection, tuple[multiprocessing.process.BaseProcess, int]] = {}
    context = multiprocessing.get_context("fork")  # the models are loaded once
    while todo or crew:
        while todo and len(crew) < workers:
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, cases), daemon=True)
            process.start()
            theirs.close()
            index = todo.pop()
            ours.send(index)
            crew[ours] = process, index
        limit = max(cases[index].seconds for _, index in crew.values())
        ready = wait(list(crew), timeout=limit)
        for pipe in ready or list(crew):
            process, index = crew.pop(pipe)  # type: ignore[index]
            verdict = Verdict("hang", f"no answer in {cases[index].seconds:.0f} s")
            if ready:
                try:
                    verdict = pipe.recv()  # type: ignore[union-attr]
                except (EOFError, ConnectionResetError):
                    process.join()
                    verdict = Verdict(
                        "memory" if process.exitcode == -signal.SIGKILL else "traceback",
                        f"the process ended with {process.exitcode}",
                    )
                    yield cases[index], verdict
                    continue
                yield cases[index], verdict
                if verdict.kind not in ("memory",) and todo:
                    index = todo.pop()
                    pipe.send(index)  # type: ignore[union-attr]
                    crew[pipe] = process, index  # type: ignore[index]
                    continue
            else:
                yield cases[index], verdict
            process.kill()
            process.join()
            pipe.close()  # type: ignore[union-attr]


def _work(pipe: Connection, cases: list[Case]) -> None:
    """Run the cases whose numbers come through the pipe."""
    warnings.simplefilter("ignore")
    os.environ["COLUMNS"] = "200"
    sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (virtual + 2 * MEMORY, virtual + 2 * MEMORY))
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(devnull, stream)
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(run_case(cases[pipe.recv()]))


def run_case(case: Case) -> Verdict:
    """The verdict on a case that is run in this process."""
    before, here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="abuse-"))
    (folder / "mine.txt").write_text(MINE)
    try:
        os.chdir(folder)
        verdict = case.run(folder)
    except MemoryError as error:
        return Verdict("memory", str(error))
    finally:
        os.chdir(here)
    mine = folder / "mine.txt"
    is_there = mine.is_file() and mine.read_text() == MINE
    shutil.rmtree(folder, ignore_errors=True)
    if not is_there:
        return Verdict("destroyed", case.name)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return verdict if grown < MEMORY else Verdict("memory", f"took {grown / 2**30:.1f} GiB")


def table(counts: Counter[tuple[str, str]], groups: Iterable[str]) -> str:
    """The counts as a table: a row for each group of cases, a column for each way to end."""
    columns = ("cases", *FINE, *FAILURES)
    rows = [f"| {' | '.join(('', *columns))} |", f"|{'---|' * (len(columns) + 1)}"]
    for group in (*groups, "all"):
        of_group = Counter({kind: n for (name, kind), n in counts.items() if name == group})
        if group == "all":
            of_group = Counter()
            for (_, kind), n in counts.items():
                of_group[kind] += n
        numbers = [of_group.total(), *(of_group[kind] for kind in columns[1:])]
        rows.append(f"| {' | '.join((group, *(f'{number:,}' for number in numbers)))} |")
    return "\n".join(rows)
