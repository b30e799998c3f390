"""Linear layers inside a recurrence, whose parameter gradients are computed once for all steps.

Step by step, the gradient of a parameter is a matrix product with few rows per step, and a sum of as many matrices of
the size of the parameter. Here each step of the backward pass records its input and the gradient of its output, and at
the end one product gives the same sum:

    sum_t g_t' x_t  =  [g_1; ...; g_m]' [x_1; ...; x_m]

Layers that multiply the same input at each step can be joined: one product with all of their matrices.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.kernels.numerics import is_autocast


@dataclass
class StepRecords:
    """The records of the steps of one backward pass; records of an earlier, unfinished pass are dropped."""

    task: int = -1
    steps: list[tuple[Tensor, ...]] = field(default_factory=list)

    def add(self, *noted: Tensor) -> None:
        """Record tensors of a step."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task, self.steps = task, []
        self.steps.append(noted)

    def take(self) -> list[tuple[Tensor, ...]]:
        """Return and clear the records: one list of all steps for each recorded tensor; empty without a step."""
        mine = self.steps if self.task == torch._C._current_graph_task_id() else []
        self.task, self.steps = -1, []
        return list(zip(*mine, strict=True))


class _Shared:
    """The parameters of one layer, or of several joined ones, as the steps of one recurrence use them."""

    def __init__(self, layers: Sequence["Hoisted | Columns"]) -> None:
        self.records, self.sizes = StepRecords(), [layer.out_features for layer in layers]
        weight, bias = layers[0].weight, layers[0].bias
        if len(layers) > 1:
            weight = torch.cat([layer.weight for layer in layers])
            bias = None
            if any(layer.bias is not None for layer in layers):
                parts = (weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias for layer in layers)
                bias = torch.cat(list(parts))
        self.weight, self.bias = _Collect.apply(  # type: ignore[no-untyped-call]
            _as_computed(weight), _as_computed(bias), self.records
        )
        self._joint: tuple[Tensor, tuple[Tensor, ...]] | None = None

    def product(self, inputs: Tensor, index: int) -> Tensor:
        """Return the product of one of several layers; the first of them to be called computes those of all."""
        if self._joint is None or self._joint[0] is not inputs:
            output: Tensor = _Step.apply(  # type: ignore[no-untyped-call]
                inputs.to(self.weight.dtype), self.weight, self.bias, self.records
            )
            self._joint = inputs, output.split(self.sizes, dim=-1)
        return self._joint[1][index]


class Hoisted(nn.Linear):
    """nn.Linear whose weight gradient, within `hoisting`, is one matrix product for all steps."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        # By thread, so that several threads can use one model.
        self._shared: dict[int, tuple[_Shared, int]] = {}

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute inputs weight' + bias."""
        shared = self._shared.get(threading.get_ident()) if self._shared else None
        if shared is None:
            return super().forward(inputs)
        parameters, index = shared
        if len(parameters.sizes) > 1:
            return parameters.product(inputs, index)
        output: Tensor = _Step.apply(  # type: ignore[no-untyped-call]
            inputs.to(parameters.weight.dtype), parameters.weight, parameters.bias, parameters.records
        )
        return output


class Columns:
    """Some columns of a Hoisted layer, with its bias or without: a layer for a part of its inputs."""

    def __init__(self, layer: Hoisted, columns: slice, *, bias: bool) -> None:
        self.layer, self.columns, self.has_bias, self.out_features = layer, columns, bias, layer.out_features
        self._shared: dict[int, tuple[_Shared, int]] = {}

    @property
    def weight(self) -> Tensor:
        """These columns of the matrix."""
        return self.layer.weight[:, self.columns]

    @property
    def bias(self) -> Tensor | None:
        """The bias of the layer, if it belongs to these columns."""
        return self.layer.bias if self.has_bias else None

    def __call__(self, inputs: Tensor) -> Tensor:
        """Compute inputs weight' + bias."""
        shared = self._shared.get(threading.get_ident()) if self._shared else None
        if shared is None:
            return nn.functional.linear(inputs, self.weight, self.bias)
        parameters, index = shared
        return parameters.product(inputs, index)


@contextmanager
def hoisting(module: nn.Module, joined: Sequence[Hoisted | Columns] = ()) -> Iterator[None]:
    """Let every Hoisted layer of a module compute its gradients once for all steps of a recurrence, in this thread.

    The layers `joined` get the same tensor in each step: one product computes all of theirs.
    """
    thread = threading.get_ident()
    layers = [layer for layer in module.modules() if isinstance(layer, Hoisted)] if torch.is_grad_enabled() else []
    groups: list[Sequence[Hoisted | Columns]] = [[layer] for layer in layers if layer not in joined]
    groups += [joined] if layers and joined else []
    for group in groups:
        shared = _Shared(group)
        for index, layer in enumerate(group):
            layer._shared[thread] = shared, index
    try:
        yield
    finally:
        for group in groups:
            for layer in group:
                layer._shared.pop(thread, None)


def _as_computed(weight: Tensor | None) -> Tensor | None:
    """Convert a parameter to the dtype of autocast, once for all steps."""
    if weight is None or not is_autocast(weight.device):
        return weight
    return weight.to(torch.get_autocast_dtype(weight.device.type))


class _Collect(torch.autograd.Function):
    """Return the parameters; the backward pass, which runs after that of all steps, computes their gradients."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, records: StepRecords) -> tuple[Tensor, Tensor | None]:
        ctx.records = records
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, grad_weight: Tensor | None, grad_bias: Tensor | None) -> tuple[Tensor | None, ...]:
        taken = ctx.records.take()
        if taken:
            inputs, grads = (torch.cat([part.reshape(-1, part.shape[-1]) for part in side]) for side in taken)
            through_weight, through_bias = grads.mT @ inputs, grads.sum(0)
            grad_weight = through_weight if grad_weight is None else grad_weight + through_weight
            grad_bias = through_bias if grad_bias is None else grad_bias + through_bias
        return grad_weight, grad_bias if ctx.needs_input_grad[1] else None, None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, records: StepRecords) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.records = records
        return nn.functional.linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, so every step computes its own.
            flat = grad.reshape(-1, grad.shape[-1])
            grad_weight = flat.mT @ inputs.reshape(-1, inputs.shape[-1])
            return grad @ weight, grad_weight, flat.sum(0) if ctx.needs_input_grad[2] else None, None
        if ctx.needs_input_grad[1]:
            ctx.records.add(inputs, grad)
        return grad @ weight, None, None, None
