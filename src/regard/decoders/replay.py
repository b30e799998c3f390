"""The loop of a recurrent decoder as CUDA graphs, recorded once for a shape and then replayed.

A loop of m steps is some thousand small kernels, and a GPU waits for most of them to be sent. A graph sends them all at
once. It is for one shape, so shapes are rounded up: the batch to a multiple of ROWS, the steps and the keys to
multiples of STEPS and KEYS; what is added is masked and cut off again. Forward and backward are a graph each.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

ROWS, STEPS, KEYS = 16, 4, 8
MOST = 128
"""Graphs that a decoder keeps; batches of further shapes run as loops."""
ROOM = 0.2
"""Share of the GPU's memory that has to be free for another: each keeps places for its inputs and outputs."""

Loop = Callable[..., tuple[Tensor, ...]]


class _Loop(nn.Module):
    """A loop and the module whose weights it uses, so that others can stand in for them."""

    def __init__(self, module: nn.Module, loop: Loop) -> None:
        super().__init__()
        self.module, self.loop = module, loop

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The loop."""
        return self.loop(*inputs)


class _Recording:
    """One loop at one shape: its inputs and outputs lie at fixed places, between which the graphs compute."""

    def __init__(self, loop: "_Loop", inputs: Sequence[Tensor], grads: dict[str, Tensor], pool: Any) -> None:
        self.inputs = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
        self.weight_grads = list(grads.values())
        # The weights by other names, which no graph of the training knows: theirs would drag its stream in.
        weights = {name: weight.detach().requires_grad_() for name, weight in loop.named_parameters() if name in grads}
        sources = [*(place for place in self.inputs if place.requires_grad), *weights.values()]

        def run() -> tuple[Tensor, ...]:
            outputs: tuple[Tensor, ...] = torch.func.functional_call(loop, weights, tuple(self.inputs))
            return outputs

        # Recording draws random numbers; the training is not to notice.
        with torch.random.fork_rng([self.inputs[0].device]), _uncached_autocast():
            _warm_up(run, sources)
            self.forward_graph, self.backward_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.forward_graph, pool=pool):
                outputs = run()
            self.upstream = [torch.empty_like(output) for output in outputs]
            with torch.cuda.graph(self.backward_graph, pool=pool):
                found = torch.autograd.grad(outputs, sources, self.upstream, allow_unused=True)
                self.input_grads = found[: -len(grads)]
                for place, grad in zip(self.weight_grads, found[-len(grads) :], strict=True):
                    if grad is not None:
                        place.copy_(grad)
        self.is_used = [grad is not None for grad in found[-len(grads) :]]
        self.outputs = tuple(output.detach() for output in outputs)

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs, as copies that the next replay leaves alone."""
        for place, tensor in zip(self.inputs, inputs, strict=True):
            place.detach().copy_(tensor)
        self.forward_graph.replay()
        return tuple(output.clone() for output in self.outputs)

    def backward(self, upstream: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs and of the weights, as copies."""
        for place, tensor in zip(self.upstream, upstream, strict=True):
            place.copy_(tensor)
        self.backward_graph.replay()
        inputs = iter(self.input_grads)
        of_inputs = (next(inputs) if place.requires_grad else None for place in self.inputs)
        of_weights = (grad if used else None for grad, used in zip(self.weight_grads, self.is_used, strict=True))
        return tuple(None if grad is None else grad.clone() for grad in (*of_inputs, *of_weights))


class _Pass:
    """Held by the backward pass that a recording waits for."""


class Replay:
    """The recordings of one decoder's loop, by shape.

    They share their memory, so only one may be between its forward and its backward pass; a second loop meanwhile, as
    when two losses are added up, runs as it is. So does a shape that is seen for the first time.
    """

    def __init__(self) -> None:
        self._recordings: dict[tuple[Any, ...], _Recording] = {}
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._grads: dict[str, Tensor] = {}
        self._pool: Any = None
        self._waiting: Callable[[], _Pass | None] = lambda: None

    def __deepcopy__(self, memo: Any) -> "Replay":
        return Replay()

    def __reduce__(self) -> tuple[type["Replay"], tuple[()]]:
        return Replay, ()

    def __call__(
        self, module: nn.Module, loop: Loop, inputs: Sequence[Tensor], weights: Mapping[str, Tensor]
    ) -> tuple[Tensor, ...]:
        """loop(*inputs), with gradients for the inputs and for these weights of the module."""
        key = (*map(_described, inputs), *(weight.data_ptr() for weight in weights.values()), _autocast_dtype())
        self._seen[key] += 1
        if self._waiting() is not None or self._seen[key] == 1:
            return loop(*inputs)
        if key not in self._recordings:
            if len(self._recordings) == MOST or not _has_room(inputs[0].device):
                return loop(*inputs)
            self._recordings[key] = self._record(_Loop(module, loop), inputs, weights)
        held = _Pass()
        self._waiting = weakref.ref(held)
        outputs: tuple[Tensor, ...] = _Replayed.apply(  # type: ignore[no-untyped-call]
            self._recordings[key], held, len(inputs), *inputs, *weights.values()
        )
        return outputs

    def _record(self, loop: _Loop, inputs: Sequence[Tensor], weights: Mapping[str, Tensor]) -> _Recording:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        if not self._grads:
            self._grads = {f"module.{name}": torch.empty_like(weight) for name, weight in weights.items()}
        return _Recording(loop, inputs, self._grads, self._pool)


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: _Recording, held: _Pass, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.recording, ctx.held = recording, held
        return recording.forward(tensors[:count])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.held is None:
            raise RuntimeError("A replayed loop has one backward pass; run the model again for another.")
        ctx.held = None
        return None, None, None, *ctx.recording.backward(upstream)


def _warm_up(run: Callable[[], tuple[Tensor, ...]], sources: Sequence[Tensor]) -> None:
    """Run the loop as it is, on a stream of its own, so that libraries set themselves up outside of the graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs = run()
        torch.autograd.grad(outputs, sources, outputs, allow_unused=True)
    torch.cuda.current_stream().wait_stream(stream)


def _has_room(device: torch.device) -> bool:
    free, total = torch.cuda.mem_get_info(device)
    return free > ROOM * total


def _described(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.requires_grad


def _autocast_dtype() -> torch.dtype | None:
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


def _uncached_autocast() -> AbstractContextManager[object]:
    """Autocast as it is, but weights are cast anew: a graph must do so itself each time."""
    dtype = _autocast_dtype()
    return nullcontext() if dtype is None else torch.autocast("cuda", dtype, cache_enabled=False)


def rounded(size: int, step: int) -> int:
    """The size, rounded up to a multiple of the step."""
    return -(-size // step) * step


def grown(tensor: Tensor, *sizes: int) -> Tensor:
    """The tensor with zeros (or False) at the end of its first axes, up to these sizes."""
    missing = [size - tensor.shape[axis] for axis, size in enumerate(sizes)]
    if not any(missing):
        return tensor
    pads = [0, 0] * (tensor.ndim - len(sizes)) + [amount for more in reversed(missing) for amount in (0, more)]
    return torch.nn.functional.pad(tensor, pads)
