"""Updates as CUDA graphs, recorded once for each shape of a batch and then replayed.

An update launches hundreds or thousands of small kernels, and the GPU idles between most of them. A graph launches them
all at once: those of the loss, the gradients, the clipping and the optimizer. A graph has fixed shapes, and its kernels
read a batch from fixed buffers, so nothing in it may depend on the values of a batch but through tensors on the GPU.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from regard.data.batches import Movable
from regard.errors import RegardWarning
from regard.kernels.cuda_graphs import has_free_memory, recorded_as_a_whole
from regard.training.task import Task

LENGTH_MULTIPLE = 8
"""Sentences are padded to multiples of so many words where updates are recorded."""
MAX_RECORDINGS = 256
"""Number of shapes that are recorded; batches of other shapes are computed without a graph."""


def length_multiple(pad_to: int) -> int:
    """What lengths of sentences are padded to multiples of: as given or, with 0, as the device wants it."""
    return pad_to or (LENGTH_MULTIPLE if torch.cuda.is_available() else 1)


class RecordedUpdates:
    """Computes updates of a task on a GPU, from the second batch of a shape on as a CUDA graph.

    `update` computes one without a graph: the loss of a batch, whose tensors are all on the GPU, the gradients, and the
    step of the optimizer. The first batch of each shape shows that it works, compiles kernels and creates the state of
    the optimizer. The recordings share their memory, since nothing in it is needed after an update.
    """

    def __init__(self, task: Task, update: Callable[[Any], Tensor]) -> None:
        self._task, self._update = task, update
        self._recordings: dict[Hashable, _Recording] = {}
        self._seen: Counter[Hashable] = Counter()
        self._pool = torch.cuda.graph_pool_handle()
        # Outside of the memory that the recordings share, so that the values of the last update can be read.
        self._loss = torch.zeros((), device=task.device)
        self._logged: dict[str, Tensor] = {}
        self._can_record = True

    @property
    def num_recordings(self) -> int:
        """How many shapes have been recorded."""
        return len(self._recordings)

    def close(self) -> None:
        """Free the recordings: a process that is forked later could not free them."""
        self._recordings.clear()

    def __call__(self, batch: Any) -> Tensor:
        """Learn from a batch, and return its loss."""
        key = (*_signature(batch), self._task.variant())
        recording = self._recordings.get(key)
        if recording is None:
            self._seen[key] += 1
            has_room = len(self._recordings) < MAX_RECORDINGS and has_free_memory(self._task.device)
            if self._seen[key] > 1 and has_room and self._can_record:
                recording = self._record(key, batch)
        if recording is None:
            with recorded_as_a_whole():
                return self._update(_changed(batch, self._on_device))
        recording.replay(batch)
        logged = {name: self._logged[name] for name in recording.logged}
        self._task.metrics |= logged
        self._task.unwritten |= logged
        return self._loss

    def _on_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._task.device, non_blocking=True)

    def _record(self, key: Hashable, batch: Any) -> "_Recording | None":
        task = self._task
        buffers = _changed(batch, lambda tensor: torch.empty_like(tensor, device=task.device))
        for buffer, tensor in zip(_tensors(buffers), _tensors(batch), strict=True):
            buffer.copy_(tensor)
        unwritten, task.unwritten = task.unwritten, {}
        metrics = dict(task.metrics)
        graph, generator = torch.cuda.CUDAGraph(), torch.cuda.default_generators[task.device.index]
        random = generator.clone_state()
        # Other threads prepare batches meanwhile, which is no part of the recording.
        recorded = torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local")
        try:
            with recorded_as_a_whole(), recorded:
                self._loss.copy_(self._update(buffers))
                logged = [name for name, value in task.unwritten.items() if value.is_cuda]
                for name in logged:
                    self._logged.setdefault(name, torch.zeros((), device=task.device)).copy_(task.unwritten[name])
        except RuntimeError as error:
            self._can_record = False
            # The generator would still wait for the end of the recording, which earlier ones cannot do without.
            self._recordings.clear()
            generator.graphsafe_set_state(random)
            message = f"The updates of this training cannot be recorded as CUDA graphs, and are slower: {error}"
            warnings.warn(message, RegardWarning, stacklevel=2)
            return None
        finally:
            # The gradients are in the memory that the recordings share.
            task.zero_grad()
            task.unwritten, task.metrics = unwritten, metrics
        self._recordings[key] = _Recording(graph, tuple(_tensors(buffers)), tuple(logged))
        return self._recordings[key]


class _Recording:
    """The update of one shape: its graph, the buffers of its batch, and the names of what it logs."""

    def __init__(self, graph: torch.cuda.CUDAGraph, buffers: tuple[Tensor, ...], logged: tuple[str, ...]) -> None:
        self._graph, self._buffers, self.logged = graph, buffers, logged

    def replay(self, batch: Any) -> None:
        """Learn from a batch."""
        for buffer, tensor in zip(self._buffers, _tensors(batch), strict=True):
            buffer.copy_(tensor, non_blocking=True)
        self._graph.replay()


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors of a batch, in order, also those that otherwise stay on the CPU."""
    for part in _parts(value):
        if isinstance(part, Tensor):
            yield part


def _signature(batch: Any) -> Iterator[Hashable]:
    """The shapes and types of the tensors of a batch, and what else it has."""
    for part in _parts(batch):
        yield (part.shape, part.dtype) if isinstance(part, Tensor) else part


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Movable):
        value = tuple(getattr(value, field.name) for field in fields(value))
    if isinstance(value, tuple | list):
        for each in value:
            yield from _parts(each)
    else:
        yield value


def _changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A batch with each tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Movable):
        return replace(value, **{field.name: _changed(getattr(value, field.name), change) for field in fields(value)})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_changed(each, change) for each in value))
    return type(value)(_changed(each, change) for each in value) if isinstance(value, tuple | list) else value
