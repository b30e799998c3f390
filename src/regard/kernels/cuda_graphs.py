"""Loops as CUDA graphs, recorded once per shape and then replayed.

A loop over a target launches thousands of small kernels, and the GPU idles between most of them. A graph launches them
all at once. It has a fixed shape, so shapes are rounded up: the batch, the steps and the keys to multiples of
ROW_MULTIPLE, STEP_MULTIPLE and KEY_MULTIPLE, as the caller says; the padding is cut off again. The forward pass and the
backward pass are one graph each.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

ROW_MULTIPLE, STEP_MULTIPLE, KEY_MULTIPLE = 16, 4, 8
MAX_GRAPHS = 128
"""Number of recordings that a loop keeps; batches of other shapes run without a graph."""
MIN_FREE_MEMORY = 0.2
"""Fraction of the GPU memory that must be free for a new recording, which keeps buffers for inputs and outputs."""

Loop = Callable[..., tuple[Tensor, ...]]
_is_whole: ContextVar[bool] = ContextVar("is_whole", default=False)


@contextmanager
def recorded_as_a_whole() -> Iterator[None]:
    """Record no loops while the block runs: they become parts of what is recorded around them."""
    token = _is_whole.set(True)
    try:
        yield
    finally:
        _is_whole.reset(token)


class _Loop(nn.Module):
    """A loop and the module whose parameters it uses, so that `functional_call` can replace them."""

    def __init__(self, module: nn.Module, loop: Loop) -> None:
        super().__init__()
        self.module, self.loop = module, loop

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Run the loop."""
        return self.loop(*inputs)


class _Recording:
    """One loop at one shape: buffers for its inputs and outputs, and the graphs that compute between them."""

    def __init__(self, loop: "_Loop", inputs: Sequence[Tensor], grads: dict[str, Tensor], pool: Any) -> None:
        self.inputs = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
        self.parameter_grads = list(grads.values())
        # New leaves for the parameters: the accumulators of the original ones belong to the stream of the training.
        parameters = {name: part.detach().requires_grad_() for name, part in loop.named_parameters() if name in grads}
        sources = [*(buffer for buffer in self.inputs if buffer.requires_grad), *parameters.values()]

        def run() -> tuple[Tensor, ...]:
            outputs: tuple[Tensor, ...] = torch.func.functional_call(loop, parameters, tuple(self.inputs))
            return outputs

        # Recording draws random numbers, which must not change those of the training.
        with torch.random.fork_rng([self.inputs[0].device]), _uncached_autocast():
            _warm_up(run, sources)
            self.forward_graph, self.backward_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.forward_graph, pool=pool):
                outputs = run()
            self.upstream = [torch.empty_like(output) for output in outputs]
            with torch.cuda.graph(self.backward_graph, pool=pool):
                gradients = torch.autograd.grad(outputs, sources, self.upstream, allow_unused=True)
                self.input_grads = gradients[: -len(grads)]
                for buffer, grad in zip(self.parameter_grads, gradients[-len(grads) :], strict=True):
                    if grad is not None:
                        buffer.copy_(grad)
        self.is_used = [grad is not None for grad in gradients[-len(grads) :]]
        self.outputs = tuple(output.detach() for output in outputs)

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Replay the forward graph and return copies of its outputs."""
        for buffer, tensor in zip(self.inputs, inputs, strict=True):
            buffer.detach().copy_(tensor)
        self.forward_graph.replay()
        return tuple(output.clone() for output in self.outputs)

    def backward(self, upstream: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """Replay the backward graph and return copies of the gradients of the inputs and of the parameters."""
        for buffer, tensor in zip(self.upstream, upstream, strict=True):
            buffer.copy_(tensor)
        self.backward_graph.replay()
        inputs = iter(self.input_grads)
        of_inputs = (next(inputs) if buffer.requires_grad else None for buffer in self.inputs)
        of_parameters = (grad if used else None for grad, used in zip(self.parameter_grads, self.is_used, strict=True))
        return tuple(None if grad is None else grad.clone() for grad in (*of_inputs, *of_parameters))


class _Pass:
    """Held by autograd until the backward pass has run; until then the recording must not be replayed."""


class GraphedLoop:
    """The recordings of one loop, by shape.

    The recordings share their memory, so only one may be between its forward and its backward pass. A second loop in
    that time, as when two losses are added, runs without a graph. So does a shape that occurs for the first time. With
    `record=False` nothing is ever recorded.
    """

    def __init__(self, *, record: bool = True) -> None:
        self.record = record
        self._recordings: dict[tuple[Any, ...], _Recording] = {}
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._grads: dict[str, Tensor] = {}
        self._pool: Any = None
        self._waiting: Callable[[], _Pass | None] = lambda: None

    def __deepcopy__(self, memo: Any) -> "GraphedLoop":
        return GraphedLoop(record=self.record)

    def __reduce__(self) -> tuple[Callable[..., "GraphedLoop"], tuple[()]]:
        return partial(GraphedLoop, record=self.record), ()

    @property
    def num_recordings(self) -> int:
        """How many shapes have been recorded."""
        return len(self._recordings)

    def accepts(self, inputs: Tensor) -> bool:
        """Whether a loop over these inputs may be recorded: in training on a GPU."""
        return self.record and inputs.is_cuda and inputs.requires_grad

    def __call__(
        self,
        module: nn.Module,
        loop: Loop,
        inputs: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        *,
        multiples: Sequence[Sequence[int]] = (),
        variant: Hashable = None,
    ) -> tuple[Tensor, ...]:
        """Compute loop(*inputs), with gradients for the inputs and for these parameters of the module.

        The first axes of each input are padded to `multiples`, and all outputs are cut to the sizes that the first
        input had along its padded axes. `variant` tells loops apart that take the same inputs and return different
        outputs.
        """
        multiples = multiples or [()] * len(inputs)
        padded = [round_up(tensor, *sizes) for tensor, sizes in zip(inputs, multiples, strict=True)]
        original = tuple(slice(inputs[0].shape[axis]) for axis in range(len(multiples[0])))
        return tuple(output[original] for output in self._run(module, loop, padded, parameters, variant))

    def _run(
        self,
        module: nn.Module,
        loop: Loop,
        inputs: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        variant: Hashable,
    ) -> tuple[Tensor, ...]:
        addresses = (part.data_ptr() for part in parameters.values())
        key = (*map(_signature, inputs), *addresses, _autocast_dtype(), variant)
        self._seen[key] += 1
        if not self.record or _is_whole.get() or self._waiting() is not None or self._seen[key] == 1:
            return loop(*inputs)
        if key not in self._recordings:
            if len(self._recordings) == MAX_GRAPHS or not has_free_memory(inputs[0].device):
                return loop(*inputs)
            self._recordings[key] = self._record(_Loop(module, loop), inputs, parameters)
        held = _Pass()
        self._waiting = weakref.ref(held)
        outputs: tuple[Tensor, ...] = _Replayed.apply(  # type: ignore[no-untyped-call]
            self._recordings[key], held, len(inputs), *inputs, *parameters.values()
        )
        return outputs

    def _record(self, loop: _Loop, inputs: Sequence[Tensor], parameters: Mapping[str, Tensor]) -> _Recording:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        if not self._grads:
            self._grads = {f"module.{name}": torch.empty_like(part) for name, part in parameters.items()}
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
            raise RuntimeError("A recorded loop has only one backward pass; run the forward pass again for another.")
        ctx.held = None
        return None, None, None, *ctx.recording.backward(upstream)


def _warm_up(run: Callable[[], tuple[Tensor, ...]], sources: Sequence[Tensor]) -> None:
    """Run the loop once on a separate stream, so that libraries are initialised outside of the graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs = run()
        torch.autograd.grad(outputs, sources, outputs, allow_unused=True)
    torch.cuda.current_stream().wait_stream(stream)


def has_free_memory(device: torch.device) -> bool:
    """Whether there is memory for one more recording."""
    free, total = torch.cuda.mem_get_info(device)
    return free > MIN_FREE_MEMORY * total


def _signature(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.requires_grad


def _autocast_dtype() -> torch.dtype | None:
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


def _uncached_autocast() -> AbstractContextManager[object]:
    """Return the current autocast without its cache, since a graph must cast the parameters in each replay."""
    dtype = _autocast_dtype()
    return nullcontext() if dtype is None else torch.autocast("cuda", dtype, cache_enabled=False)


def round_up(tensor: Tensor, *multiples: int) -> Tensor:
    """Pad the first axes of a tensor to multiples of these sizes, with zeros (or False) at their ends."""
    missing = [-tensor.shape[axis] % multiple for axis, multiple in enumerate(multiples)]
    if not any(missing):
        return tensor
    pads = [0, 0] * (tensor.ndim - len(multiples)) + [amount for more in reversed(missing) for amount in (0, more)]
    return torch.nn.functional.pad(tensor, pads)
