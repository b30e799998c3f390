"""A linear layer for mixed precision on a GPU, whose bias gradient is a matrix product.

torch adds up the rows of the gradient with a kernel that, for some ten thousand rows, takes longer than the product
with the weight.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Linear):
    """nn.Linear with another backward pass under autocast on a GPU."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute inputs weight' + bias."""
        if not (inputs.is_cuda and torch.is_grad_enabled() and torch.is_autocast_enabled("cuda")):
            return super().forward(inputs)
        dtype = torch.get_autocast_dtype("cuda")
        with torch.autocast("cuda", enabled=False):
            return linear(inputs, self.weight, self.bias, dtype)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Compute inputs weight' + bias in a precision; the gradients have those of inputs, weight and bias."""
    output: Tensor = _Linear.apply(inputs, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return output


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        rounded, factor = inputs.to(dtype), weight.to(dtype)
        ctx.save_for_backward(rounded, factor)
        ctx.dtypes = inputs.dtype, weight.dtype
        return functional.linear(rounded, factor, None if bias is None else bias.to(dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        of_inputs, of_parameters = ctx.dtypes
        needs_inputs, _, needs_bias, _ = ctx.needs_input_grad
        rows = grad.flatten(0, -2)
        grad_weight = (rows.mT @ inputs.flatten(0, -2)).to(of_parameters)
        # The sum of the rows, in float32 as the products are.
        grad_bias = (rows.new_ones(1, len(rows)) @ rows)[0].to(of_parameters) if needs_bias else None
        return (grad @ weight).to(of_inputs) if needs_inputs else None, grad_weight, grad_bias, None
