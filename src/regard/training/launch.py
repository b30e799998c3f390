"""Starting a command once for each device of this machine, and ending all of them when one fails."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from regard.errors import TrainingError

GRACE_SECONDS = 5.0
"""How long the other processes may take to end by themselves when one has failed, and then after SIGTERM."""


def launch(command: Sequence[str], count: int) -> int:
    """Run a command in `count` processes that find each other by the variables of torchrun; give its exit status.

    Ctrl-C reaches the processes themselves, and SIGTERM is passed on, so that they can save the training. When one
    fails, the others cannot go on and are ended; a TrainingError says which one was killed.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    common = {"OMP_NUM_THREADS": str(max(1, cores // count))} | os.environ
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    common |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    processes: list[subprocess.Popen[bytes]] = []
    with _signals_passed_on(processes):
        try:
            for rank in range(count):
                own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                processes.append(subprocess.Popen(command, env=common | own))  # noqa: S603 - the user's own command
            return _status(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _status(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    while None in (statuses := [process.poll() for process in processes]) and not any(statuses):
        time.sleep(0.1)
    failed = next((rank for rank, status in enumerate(statuses) if status), None)
    if failed is None:
        return 0
    status = processes[failed].returncode
    _end(processes)
    if status < 0:
        raise TrainingError(f"Process {failed + 1} of {len(processes)} was killed by signal {-status}; all have ended.")
    return status


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give the processes time to end, ask them to, and at last kill them."""
    for ask in (None, subprocess.Popen.terminate, subprocess.Popen.kill):
        for process in processes:
            if ask is not None and process.poll() is None:
                ask(process)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and None in [process.poll() for process in processes]:
            time.sleep(0.1)


@contextmanager
def _signals_passed_on(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ignore Ctrl-C, which the terminal sends to all processes, and pass on SIGTERM."""

    def pass_on(signum: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(signum)

    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, lambda *_: None)  # SIG_IGN would be inherited
    signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
