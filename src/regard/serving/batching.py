"""Micro-batching: what all clients ask of a model in the same way is answered together.

While a batch is being answered, further inputs wait; the next batch takes all that wait for one model with one set of
options, up to a limit; a request with more inputs is divided. Nothing is held back on purpose: a lone request is not
delayed.
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from regard.errors import RegardError, counted
from regard.kernels.threads import threads_for
from regard.serving.errors import RefusedError
from regard.work import GivenUpError, wanted

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
        """Call the function; the only result is its value."""
        with threads_for(0):  # it is about one input, and a browser may use the other cores
            return [self.function()]


@dataclass(eq=False)
class _Queue:
    """Jobs for one model with the same options."""

    model: Answering
    options: Any
    divides: bool
    """Whether inputs of one job may be answered in several batches."""
    jobs: "deque[_Job]" = field(default_factory=deque)


@dataclass(eq=False)
class _Job:
    """The inputs of one request; it is in its queue as long as some of them wait."""

    queue: _Queue
    inputs: Sequence[Any]
    future: asyncio.Future[list[Any]]
    client: str
    taken: int = 0
    """How many of the inputs wait no longer."""
    results: list[Any] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """How many of the inputs wait."""
        return len(self.inputs) - self.taken


@dataclass(frozen=True, eq=False)
class _Slice:
    """The inputs of a job in one batch."""

    job: _Job
    inputs: Sequence[Any]


class Batcher:
    """A bounded queue in front of one thread that answers batches.

    Who leaves, or waits longer than the deadline, is waited for no more: a batch of such requests alone ends at its
    next step.
    """

    def __init__(self, *, queue: int = 256, per_client: int = 128, batch: int = 32, deadline: float = 30.0) -> None:
        self._max_waiting, self._per_client, self._batch, self._deadline = queue, per_client, batch, deadline
        self._queues: dict[Any, _Queue] = {}
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

    @property
    def is_stopped(self) -> bool:
        """Whether it refuses all that comes."""
        return self._is_stopped

    async def answer(self, model: Answering, options: Any, inputs: Sequence[Any], *, client: str = "") -> list[Any]:
        """The results of a model, in order; a RefusedError where there is no room or the deadline passes."""
        # Random draws depend on what else is in a batch, so a seed is only worth something alone and undivided.
        alone = next(self._alone) if getattr(options, "seed", None) is not None else None
        queue = _Queue(model, options, divides=alone is None)
        return await self._wait((id(model), options, alone), queue, inputs, client)

    async def run(self, function: Callable[[], Value], *, client: str = "") -> Value:
        """The value of a function, which is called in the thread that answers, when it is its turn."""
        (value,) = await self._wait(next(self._alone), _Queue(_Function(function), None, divides=False), [None], client)
        return cast(Value, value)

    def stop(self) -> None:
        """Refuse what waits and all that comes; what is being answered is finished."""
        self._is_stopped = True
        for job in [job for queue in self._queues.values() for job in queue.jobs]:
            self._fail(job, _refusal(STOPPED))

    async def close(self) -> None:
        """Stop, and wait for what is being answered."""
        self.stop()
        if self._task is not None:
            await self._task
        await asyncio.to_thread(self._thread.shutdown)

    async def _wait(self, key: Any, queue: _Queue, inputs: Sequence[Any], client: str) -> list[Any]:
        """Append the inputs to the queue of this key (`queue`, if there is none yet), and wait for the results."""
        self._check_room(client, len(inputs))
        queue = self._queues.setdefault(key, queue)
        loop = asyncio.get_running_loop()
        job = _Job(queue, inputs, loop.create_future(), client)
        queue.jobs.append(job)
        self._waiting[client] += len(inputs)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        timer = loop.call_later(self._deadline, self._refuse_late, job)
        try:
            return await job.future
        finally:
            timer.cancel()
            self._leave(job)

    def _check_room(self, client: str, count: int) -> None:
        if self._is_stopped:
            raise _refusal(STOPPED)
        if count > (limit := min(self._per_client, self._max_waiting)):
            option = "--per-client" if limit == self._per_client else "--queue"
            message = f"At most {limit} inputs of a client can wait at a time (the server's {option}); got {count}."
            raise RefusedError(413, message)
        if self._waiting[client] + count > self._per_client:
            queued = counted(self._waiting[client], "queued input")
            message = f"You already have {queued} (at most {self._per_client}: --per-client). Try again later."
            raise RefusedError(429, message, retry_after=RETRY_SECONDS)
        if self.waiting + count > self._max_waiting:
            raise _refusal(f"The server is busy. Inputs that wait: {self.waiting} (--queue). Try again later.")

    def _forget(self, client: str, count: int) -> None:
        """Count inputs of a client that wait no longer; nothing is kept of clients for whom nothing waits."""
        self._waiting[client] -= count
        if not self._waiting[client]:
            del self._waiting[client]

    def _leave(self, job: _Job) -> None:
        """Remove a job from its queue."""
        if job in job.queue.jobs:
            job.queue.jobs.remove(job)
            self._forget(job.client, job.waiting)

    def _fail(self, job: _Job, error: Exception) -> None:
        """Answer a job with an error; what waits of it is not answered."""
        self._leave(job)
        if not job.future.done():
            job.future.set_exception(error)

    def _refuse_late(self, job: _Job) -> None:
        """Refuse a job whose deadline has passed, also while it is being answered."""
        late = "took" if job.taken else "waited"
        self._fail(
            job, _refusal(f"The request {late} longer than {self._deadline:g} seconds (--deadline). Try again later.")
        )

    async def _run(self) -> None:
        """Answer batch after batch until nothing waits; queues take turns."""
        while self._queues:
            key = next(iter(self._queues))
            queue = self._queues.pop(key)
            slices = self._take(queue)
            if queue.jobs:
                self._queues[key] = queue
            if slices:
                await self._answer(queue, slices)

    def _take(self, queue: _Queue) -> list[_Slice]:
        """The next batch: inputs of one job after another until it is full; the rest of a job waits behind others."""
        taken: list[_Slice] = []
        room = self._batch if queue.divides else sum(job.waiting for job in queue.jobs)
        while queue.jobs and (room or not taken):
            job = queue.jobs[0]
            if job.future.done():  # it was cancelled, and has not left yet
                self._leave(job)
                continue
            inputs = job.inputs[job.taken : job.taken + room]
            queue.jobs.popleft()
            job.taken += len(inputs)
            self._forget(job.client, len(inputs))
            if job.waiting:
                queue.jobs.append(job)
            taken.append(_Slice(job, inputs))
            room -= len(inputs)
        return taken

    async def _answer(self, queue: _Queue, slices: list[_Slice]) -> None:
        inputs = [each for part in slices for each in part.inputs]
        if not isinstance(queue.model, _Function):
            self.on_batch(len(inputs))
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, _answered, queue, inputs, slices)
        except GivenUpError:
            for part in slices:  # those who left, or whose deadline has passed, have their answer already
                self._leave(part.job)
        except RegardError as error:
            if len(slices) == 1:
                self._fail(slices[0].job, error)
                return
            for part in slices:
                # One faulty input must not fail the requests of others.
                if not part.job.future.done():
                    await self._answer(queue, [part])
        except Exception as error:
            for part in slices:
                self._fail(part.job, error)
        else:
            answers = iter(results)
            for part in slices:
                job = part.job
                job.results += [next(answers) for _ in part.inputs]
                if len(job.results) == len(job.inputs) and not job.future.done():
                    job.future.set_result(job.results)


def _answered(queue: _Queue, inputs: Sequence[Any], slices: Sequence[_Slice]) -> list[Any]:
    """The results of a batch; it is given up when nobody waits for any of them."""
    with wanted(lambda: any(not part.job.future.done() for part in slices)):
        return queue.model.answer(inputs, queue.options)


def _refusal(message: str) -> RefusedError:
    return RefusedError(503, message, retry_after=RETRY_SECONDS)
