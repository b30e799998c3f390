"""Progress bars for long-running work, on stderr, so that the output of a command stays clean."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def progress_bar(
    label: str, total: int | None, unit: str, *, completed: int = 0, enabled: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs, and give a function that advances it by a number of units.

    `total` is None if it is unknown. The unit "bytes" is shown as kB, MB and so on, with the speed. Nothing is written
    if `enabled` is False or stderr is not a terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    of_total = "" if total is None else f" of {total:,}"
    counts: list[ProgressColumn] = [TextColumn(f"{{task.completed:,}}{of_total} {unit}")]
    if unit == "bytes":
        counts = [DownloadColumn(), TransferSpeedColumn()]
    time = TimeElapsedColumn() if total is None else TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *counts, time)
    with Progress(*columns, console=console, disable=not (enabled and console.is_terminal)) as bar:
        task = bar.add_task(label, total=total, completed=completed)
        yield lambda units: bar.advance(task, units)


def track(
    items: Iterable[Item], label: str, unit: str, *, total: int | None = None, enabled: bool = True
) -> Iterator[Item]:
    """Yield the items and show a bar of how many were taken; `total` is len(items) if not given and known."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(label, total, unit, enabled=enabled) as advance:
        for item in items:
            yield item
            advance(1)
