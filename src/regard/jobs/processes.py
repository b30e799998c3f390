"""Workers as processes of this machine: a worker that dies is replaced, and its chunk is answered again."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from regard.jobs.chunks import Chunk
from regard.jobs.worker import MAX_ATTEMPTS, Done, Job, Worker, gave_up
from regard.viewing.tokens import printable


def run_processes(job: Job, chunks: Iterable[Chunk], workers: int) -> Generator[Done, None, None]:
    """The chunks as they are answered, in any order.

    A chunk is read when a worker is free for it, so that memory holds one chunk per worker however large the files are.
    """
    crew: list[_Process] = []
    waiting, unread = deque[Chunk](), iter(chunks)
    attempts: dict[tuple[str, int], int] = {}
    try:
        while True:
            while len(crew) < workers or any(process.chunk is None for process in crew):
                chunk = waiting.popleft() if waiting else next(unread, None)
                if chunk is None:
                    break
                if chunk.is_done:
                    yield Done(chunk.name, chunk.index, len(chunk.lines), chunk.is_last)
                    continue
                process = next((process for process in crew if process.chunk is None), None)
                if process is None:
                    numbers = {process.number for process in crew}
                    process = _Process(job, min(set(range(workers)) - numbers), workers)
                    crew.append(process)
                process.give(chunk)
            busy = {process.pipe: process for process in crew if process.chunk is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                process = busy[pipe]  # type: ignore[index]
                try:
                    yield process.take()
                except _DiedError as died:
                    crew.remove(process)
                    reason, key = _reason(died.status), (died.chunk.name, died.chunk.index)
                    attempts[key] = attempts.get(key, 0) + 1
                    if attempts[key] == MAX_ATTEMPTS:
                        yield gave_up(died.chunk, reason)
                    sys.stderr.write(f"regard: a worker died: {reason}. Another takes {printable(died.chunk.name)}.\n")
                    waiting.append(died.chunk)
    finally:
        for process in crew:
            process.stop()


GRACE_SECONDS = 5
"""How long a worker whose parent has ended may take to end."""


class _DiedError(Exception):
    """A worker ended without an answer."""

    def __init__(self, chunk: Chunk, status: int | None) -> None:
        self.chunk, self.status = chunk, status


class _Process:
    """A worker in a process of its own, and the chunk that it is answering."""

    def __init__(self, job: Job, number: int, workers: int) -> None:
        # A forked process would share locks of torch's threads with this one, which may never be released.
        context = multiprocessing.get_context("spawn")
        self.number = number
        self.chunk: Chunk | None = None
        self.pipe, other = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_work, args=(other, job, number, workers), daemon=True)
        with _ignoring_interrupts():
            self._process.start()
        # The worker has the only other end left, so that its death closes the pipe.
        other.close()

    def give(self, chunk: Chunk) -> None:
        self.chunk = chunk
        with suppress(BrokenPipeError, ConnectionResetError):  # it died meanwhile, which `take` finds out
            self.pipe.send(chunk)

    def take(self) -> Done:
        chunk, self.chunk = self.chunk, None
        assert chunk is not None  # noqa: S101 - only busy workers are waited for
        try:
            answer: Done | Exception = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise _DiedError(chunk, self._process.exitcode) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        self.pipe.close()
        if self.chunk is not None:
            self._process.terminate()
            self._process.join(GRACE_SECONDS)
        if self._process.is_alive() and self.chunk is not None:
            self._process.kill()
        self._process.join()


def _end_with_parent() -> None:
    """End this process as SIGTERM does, with its drafts removed, when the one that started it ends, however that is."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    def watch() -> None:
        parent.join()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(GRACE_SECONDS)  # as long as an operation of torch runs, no handler is called
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=watch, name="watch the parent", daemon=True).start()


def _work(pipe: Connection, job: Job, number: int, workers: int) -> None:
    """Answer chunks until the pipe is closed, also by the death of the process at its other end."""
    _end_with_parent()
    worker = Worker(job, number, workers)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            chunk = pipe.recv()
            answer: Done | Exception
            try:
                answer = worker(chunk)
            except Exception:
                answer = RuntimeError(f"A worker failed:\n{traceback.format_exc()}")
            pipe.send(answer)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which reaches all of them: the first process ends the others."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python sets handlers only in its main thread
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reason(status: int | None) -> str:
    """Why a process ended, in words."""
    if status == -signal.SIGKILL:
        return "signal 9 ended one, as when memory is exhausted"
    return f"one ended with status {status}" if status is None or status >= 0 else f"signal {-status} ended one"
