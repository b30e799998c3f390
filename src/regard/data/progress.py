"""A bar for work that takes its time, on the error stream, so that what a command prints stays clean."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    label: str, total: int | None, unit: str, *, done: int = 0, shown: bool
) -> Iterator[Callable[[int], None]]:
    """Gives a function to tell how many more are done; `total` is None where nobody knows it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    of_all = "" if total is None else f" of {total:,}"
    count = TextColumn(f"{{task.completed:,}}{of_all} {unit}")
    time = TimeElapsedColumn() if total is None else TimeRemainingColumn(elapsed_when_finished=True)
    with Progress(TextColumn(label), BarColumn(), count, time, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task(label, total=total, completed=done)
        yield lambda count: bar.advance(task, count)
