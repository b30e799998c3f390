"""Micro-batching: what all clients ask of a model in the same way is answered together.

While a batch is being answered, further inputs wait; the next batch takes all that wait for one model with one set of
options, up to a limit. Nothing is held back on purpose, so that a single client waits for nobody.
"""

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from regard.errors import RegardError
from regard.serving.errors import RefusedError

Value = TypeVar("Value")
RETRY_SECONDS = 1
STOPPED = "The server shuts down. Try again later."


@runtime_checkable
class Answering(Protocol):
    """What a batch needs of a model, which is a System."""

    def answer(self, inputs: Sequence[Any], options: Any) -> list[Any]:
        """The results for any number of inputs, in order."""


@dataclass(frozen=True, eq=False)
class _Function:
    """Work that belongs to no batch, and waits its turn as the inputs of a model do."""

    function: Callable[[], Any]

    def answer(self, inputs: Sequence[Any], options: Any) -> list[Any]:
        """Its value."""
        return [self.function()]


@dataclass(eq=False)
class _Job:
    """The inputs of one request."""

    inputs: Sequence[Any]
    future: asyncio.Future[list[Any]]
    deadline: float
    client: str


@dataclass(eq=False)
class _Line:
    """Jobs for one model with the same options."""

    model: Answering
    options: Any
    jobs: deque[_Job] = field(default_factory=deque)


class Batcher:
    """A bounded queue in front of one thread that answers batches."""

    def __init__(self, *, queue: int = 256, per_client: int = 128, batch: int = 32, deadline: float = 30.0) -> None:
        self._queue, self._per_client, self._batch, self._deadline = queue, per_client, batch, deadline
        self._lines: dict[Any, _Line] = {}
        self._waiting: Counter[str] = Counter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answering")
        self._alone = itertools.count()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self.on_batch: Callable[[int], None] = lambda size: None
        """Called with the number of inputs of each batch."""

    @property
    def waiting(self) -> int:
        """How many inputs wait."""
        return self._waiting.total()

    async def answer(self, model: Answering, options: Any, inputs: Sequence[Any], *, client: str = "") -> list[Any]:
        """The results of a model, in order; a RefusedError where the queue is full or the deadline has passed."""
        # Random draws depend on what else is in a batch, so a seed is only worth something alone.
        alone = next(self._alone) if getattr(options, "seed", None) is not None else None
        return await self._wait((id(model), options, alone), _Line(model, options), inputs, client)

    async def run(self, function: Callable[[], Value], *, client: str = "") -> Value:
        """The value of a function, which is called in the thread that answers, when it is its turn."""
        (value,) = await self._wait(next(self._alone), _Line(_Function(function), None), [None], client)
        return cast(Value, value)

    def stop(self) -> None:
        """Refuse what waits and all that comes; what is being answered is finished."""
        self._is_stopped = True
        for line in self._lines.values():
            for job in line.jobs:
                _fail(job, _refusal(STOPPED))
        self._lines.clear()
        self._waiting.clear()

    async def close(self) -> None:
        """Stop, and wait for what is being answered."""
        self.stop()
        if self._task is not None:
            await self._task
        await asyncio.to_thread(self._thread.shutdown)

    async def _wait(self, key: Any, line: _Line, inputs: Sequence[Any], client: str) -> list[Any]:
        """Join the line of a key, which begins with this one where there is none, and wait for the results."""
        self._check_room(client, len(inputs))
        line = self._lines.setdefault(key, line)
        job = _Job(inputs, asyncio.get_running_loop().create_future(), time.monotonic() + self._deadline, client)
        line.jobs.append(job)
        self._waiting[client] += len(inputs)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await job.future

    def _check_room(self, client: str, count: int) -> None:
        if self._is_stopped:
            raise _refusal(STOPPED)
        if self._waiting[client] + count > self._per_client:
            message = (
                f"{self._waiting[client]} of your inputs wait already, of at most {self._per_client}. Try again later."
            )
            raise RefusedError(429, message, retry_after=RETRY_SECONDS)
        if self.waiting + count > self._queue:
            raise _refusal(f"The server is busy: {self.waiting} inputs wait. Try again later.")

    def _forget(self, client: str, count: int) -> None:
        """Count inputs of a client that wait no longer; nothing is kept of clients for whom nothing waits."""
        self._waiting[client] -= count
        if not self._waiting[client]:
            del self._waiting[client]

    async def _run(self) -> None:
        """Answer batch after batch until nothing waits; lines take turns."""
        while self._lines:
            key = next(iter(self._lines))
            line = self._lines.pop(key)
            jobs = self._take(line)
            if line.jobs:
                self._lines[key] = line
            if jobs:
                await self._answer(line, jobs)

    def _take(self, line: _Line) -> list[_Job]:
        """The jobs of the next batch: at least one, and as many as fit; those past their deadline are refused."""
        taken: list[_Job] = []
        count = 0
        while line.jobs and (not taken or count + len(line.jobs[0].inputs) <= self._batch):
            job = line.jobs.popleft()
            self._forget(job.client, len(job.inputs))
            if job.future.cancelled():
                continue
            if time.monotonic() > job.deadline:
                too_late = f"The request waited longer than {self._deadline:g} seconds. Try again later."
                _fail(job, _refusal(too_late))
                continue
            taken.append(job)
            count += len(job.inputs)
        return taken

    async def _answer(self, line: _Line, jobs: list[_Job]) -> None:
        inputs = [each for job in jobs for each in job.inputs]
        if not isinstance(line.model, _Function):
            self.on_batch(len(inputs))
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, line.model.answer, inputs, line.options)
        except RegardError as error:
            if len(jobs) == 1:
                _fail(jobs[0], error)
            for job in jobs if len(jobs) > 1 else ():
                # One faulty input must not fail the requests of others.
                await self._answer(line, [job])
        except Exception as error:
            for job in jobs:
                _fail(job, error)
        else:
            answers = iter(results)
            for job in jobs:
                own = [next(answers) for _ in job.inputs]
                if not job.future.done():
                    job.future.set_result(own)


def _fail(job: _Job, error: Exception) -> None:
    if not job.future.done():
        job.future.set_exception(error)


def _refusal(message: str) -> RefusedError:
    return RefusedError(503, message, retry_after=RETRY_SECONDS)
