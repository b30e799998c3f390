"""Linear layers inside a recurrence, whose weight gradients are taken once for all steps.

Step by step, the gradient of a weight is a product with few rows for each step, and a sum of as many matrices of the
size of the weight. Here each step of the backward pass notes its input and the gradient of its output, and when all
have, one product gives the same sum:

    sum_t g_t' x_t  =  [g_1; ...; g_m]' [x_1; ...; x_m]
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class Notes:
    """What the steps of one backward pass leave for its end; that of another pass is dropped."""

    task: int = -1
    steps: list[tuple[Tensor, ...]] = field(default_factory=list)

    def add(self, *noted: Tensor) -> None:
        """Note some tensors of a step."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task, self.steps = task, []
        self.steps.append(noted)

    def take(self) -> list[tuple[Tensor, ...]]:
        """For each of the tensors noted, those of all steps; nothing when there was no step."""
        mine = self.steps if self.task == torch._C._current_graph_task_id() else []
        self.task, self.steps = -1, []
        return list(zip(*mine, strict=True))


@dataclass(frozen=True)
class _Shared:
    weight: Tensor
    bias: Tensor | None
    notes: Notes


class Hoisted(nn.Linear):
    """nn.Linear; within `hoisting`, its weight gradient is one product for all steps."""

    _shared: _Shared | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs weight' + bias."""
        if self._shared is None:
            return super().forward(inputs)
        shared = self._shared
        output: Tensor = _Step.apply(  # type: ignore[no-untyped-call]
            inputs.to(shared.weight.dtype), shared.weight, shared.bias, shared.notes
        )
        return output


@contextmanager
def hoisting(module: nn.Module) -> Iterator[None]:
    """For the steps of one recurrence: every Hoisted layer of the module takes its gradients at once."""
    layers = [layer for layer in module.modules() if isinstance(layer, Hoisted)] if torch.is_grad_enabled() else []
    for layer in layers:
        notes = Notes()
        weight, bias = (_as_computed(part) for part in (layer.weight, layer.bias))
        weight, bias = _Collect.apply(weight, bias, notes)  # type: ignore[no-untyped-call]
        layer._shared = _Shared(weight, bias, notes)
    try:
        yield
    finally:
        for layer in layers:
            layer._shared = None


def _as_computed(weight: Tensor | None) -> Tensor | None:
    """In the type that autocast computes with: once for all steps."""
    if weight is None or not torch.is_autocast_enabled(weight.device.type):
        return weight
    return weight.to(torch.get_autocast_dtype(weight.device.type))


class _Collect(torch.autograd.Function):
    """The weights as they are; backward, when every step has had its turn, their gradients from the notes."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, notes: Notes) -> tuple[Tensor, Tensor | None]:
        ctx.notes = notes
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, grad_weight: Tensor | None, grad_bias: Tensor | None) -> tuple[Tensor | None, ...]:
        taken = ctx.notes.take()
        if taken:
            inputs, grads = (torch.cat([part.reshape(-1, part.shape[-1]) for part in side]) for side in taken)
            through_weight, through_bias = grads.mT @ inputs, grads.sum(0)
            grad_weight = through_weight if grad_weight is None else grad_weight + through_weight
            grad_bias = through_bias if grad_bias is None else grad_bias + through_bias
        return grad_weight, grad_bias if ctx.needs_input_grad[1] else None, None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, notes: Notes) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.notes = notes
        return nn.functional.linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again: every step gives its own.
            flat = grad.reshape(-1, grad.shape[-1])
            grad_weight = flat.mT @ inputs.reshape(-1, inputs.shape[-1])
            return grad @ weight, grad_weight, flat.sum(0) if ctx.needs_input_grad[2] else None, None
        if ctx.needs_input_grad[1]:
            ctx.notes.add(inputs, grad)
        return grad @ weight, None, None, None
