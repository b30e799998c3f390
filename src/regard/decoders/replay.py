"""The loop of a recurrent decoder as CUDA graphs, recorded once for a shape and then replayed.

A loop of m steps is some thousand small kernels, and a GPU waits for most of them to be sent. A graph sends them all at
once. It is for one shape, so shapes are rounded up: the batch to a multiple of ROWS, the steps and the source to
multiples of STEPS and KEYS; what is added is masked and cut off again. Forward and backward are a graph each, and the
numbers are those of the loop itself.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

ROWS, STEPS, KEYS = 16, 4, 8
MOST = 64
"""Graphs that a decoder keeps; batches of further shapes run as loops."""

Loop = Callable[..., tuple[Tensor, ...]]


class Token:
    """Held by the backward pass that a recording waits for."""


class Recording:
    """One loop at one shape: its inputs and outputs lie at fixed places, between which the graphs compute."""

    def __init__(self, loop: Loop, inputs: Sequence[Tensor], weights: Sequence[Tensor], pool: Any) -> None:
        self.inputs = [_placeholder(tensor) for tensor in inputs]
        self.sources = [*(tensor for tensor in self.inputs if tensor.requires_grad), *weights]
        self._warm_up(loop)
        self.forward_graph, self.backward_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.forward_graph, pool=pool):
            self.outputs = loop(*self.inputs)
        self.upstream = [torch.empty_like(output) for output in self.outputs]
        with torch.cuda.graph(self.backward_graph, pool=pool):
            self.grads = torch.autograd.grad(self.outputs, self.sources, self.upstream, allow_unused=True)
        self.outputs = tuple(output.detach() for output in self.outputs)

    def _warm_up(self, loop: Loop) -> None:
        """Run the loop as it is, on a stream of its own, so that libraries set themselves up outside of the graph."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                outputs = loop(*self.inputs)
                torch.autograd.grad(outputs, self.sources, outputs, allow_unused=True)
        torch.cuda.current_stream().wait_stream(stream)

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs, as copies that the next replay leaves alone."""
        for place, tensor in zip(self.inputs, inputs, strict=True):
            place.detach().copy_(tensor)
        self.forward_graph.replay()
        return tuple(output.clone() for output in self.outputs)

    def backward(self, upstream: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of what needs them, inputs first, as copies."""
        for place, tensor in zip(self.upstream, upstream, strict=True):
            if tensor is None:
                place.zero_()
            else:
                place.copy_(tensor)
        self.backward_graph.replay()
        return [None if grad is None else grad.clone() for grad in self.grads]


class Replay:
    """The recordings of one loop, by shape.

    They share their memory, so only one may be between its forward and its backward pass; a second loop meanwhile, as
    when two losses are added up, is to run as it is: `ready` says so.
    """

    def __init__(self, loop: Loop, weights: Sequence[Tensor]) -> None:
        self.loop, self.weights = loop, list(weights)
        self.recordings: dict[tuple[Any, ...], Recording] = {}
        self.pool = torch.cuda.graph_pool_handle()
        self._waiting: weakref.ref[Token] | None = None

    def ready(self, inputs: Sequence[Tensor]) -> bool:
        """Whether a replay is possible now."""
        is_free = self._waiting is None or self._waiting() is None
        return is_free and (_key(inputs) in self.recordings or len(self.recordings) < MOST)

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs of the loop, with their gradients."""
        key = _key(inputs)
        if key not in self.recordings:
            self.recordings[key] = Recording(self.loop, inputs, self.weights, self.pool)
        token = Token()
        self._waiting = weakref.ref(token)
        outputs: tuple[Tensor, ...] = _Replayed.apply(  # type: ignore[no-untyped-call]
            self.recordings[key], token, len(inputs), *inputs, *self.weights
        )
        return outputs


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: Recording, token: Token, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.recording, ctx.token, ctx.count = recording, token, count
        return recording.forward(tensors[:count])

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        if ctx.token is None:
            raise RuntimeError("A replayed loop has one backward pass; run it again for another.")
        ctx.token = None
        grads = iter(ctx.recording.backward(upstream))
        inputs = [next(grads) if place.requires_grad else None for place in ctx.recording.inputs]
        return None, None, None, *inputs, *grads


def _placeholder(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _key(inputs: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple((tensor.shape, tensor.dtype, tensor.requires_grad) for tensor in inputs)


def rounded(size: int, step: int) -> int:
    """The size, rounded up to a multiple of the step."""
    return -(-size // step) * step


def grown(tensor: Tensor, *sizes: int) -> Tensor:
    """The tensor with zeros (or False) added at the end of its first axes, up to these sizes."""
    for axis, size in enumerate(sizes):
        missing = size - tensor.shape[axis]
        if missing:
            shape = [*tensor.shape[:axis], missing, *tensor.shape[axis + 1 :]]
            tensor = torch.cat([tensor, tensor.new_zeros(shape)], dim=axis)
    return tensor
