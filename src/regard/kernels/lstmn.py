"""The recurrence of the long short-term memory network (Cheng et al. 2016, section 3.1), with its own backward pass.

Step t attends to the tapes of hidden states h_i and memory states c_i of all earlier steps, then updates a cell:

    a_i = v' tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1}),  s = softmax(a),  [h~_t; c~_t] = sum_{i<t} s_i [h_i; c_i]
    i, f, o = sigmoid(W [h~_t; x_t]),  c^ = tanh(W [h~_t; x_t])
    c_t = f c~_t + i c^,  h_t = o tanh(c_t)

The first step has nothing to attend to: h~_1 = c~_1 = 0. The products with x_t are computed outside, for all steps at
once. Each key W_h h_i is computed once, when it enters the tape. The backward pass computes tanh again, so that no
tensor has more than (batch, step, step) or (batch, step, feature) elements, and the gradients of the parameters are one
product for all steps. On a GPU a step is two matrix products and two kernels, forward and backward. The gradients can
not be differentiated again.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.numerics import has_gpu_kernels

MAX_TAPE = 1024
"""Number of steps up to which the GPU kernels, which take the whole tape at once, are used."""


def lstmn_reference(
    inputs: Float[Tensor, "b n g"],
    recurrent: Float[Tensor, "g h"],
    key_layer: Float[Tensor, "a h"],
    direction: Float[Tensor, "a"],
    span: int = 0,
) -> tuple[Float[Tensor, "b n h"], Float[Tensor, "b n h"], Float[Tensor, "b n n"]]:
    """Compute the recurrence step by step, as the formulas say; its arguments are those of `lstmn`."""
    size = recurrent.shape[1]
    hidden: list[Tensor] = []
    memory: list[Tensor] = []
    weights = []
    read_hidden = inputs.new_zeros(len(inputs), size)
    for t, (for_gates, for_query) in enumerate(zip(*_parts(inputs, size), strict=True)):
        if t == 0:
            read_memory, weight = torch.zeros_like(read_hidden), inputs.new_zeros(len(inputs), 0)
        else:
            first = max(0, t - span) if span else 0
            tape = torch.stack(hidden[first:], dim=1)
            query = for_query + read_hidden @ recurrent[4 * size :].mT
            weight = (torch.tanh(tape @ key_layer.mT + query.unsqueeze(1)) @ direction).softmax(-1)
            read_hidden = (weight.unsqueeze(-1) * tape).sum(1)
            read_memory = (weight.unsqueeze(-1) * torch.stack(memory[first:], dim=1)).sum(1)
            weight = torch.nn.functional.pad(weight, (first, 0))
        gates = for_gates + read_hidden @ recurrent[: 4 * size].mT
        entry, forget, out, candidate = gates.chunk(4, dim=-1)
        memory.append(torch.sigmoid(forget) * read_memory + torch.sigmoid(entry) * torch.tanh(candidate))
        hidden.append(torch.sigmoid(out) * torch.tanh(memory[-1]))
        weights.append(torch.nn.functional.pad(weight, (0, inputs.shape[1] - weight.shape[1])))
    return torch.stack(hidden, dim=1), torch.stack(memory, dim=1), torch.stack(weights, dim=1)


def lstmn(
    inputs: Float[Tensor, "b n g"],
    recurrent: Float[Tensor, "g h"],
    key_layer: Float[Tensor, "a h"],
    direction: Float[Tensor, "a"],
    span: int = 0,
) -> tuple[Float[Tensor, "b n h"], Float[Tensor, "b n h"], Float[Tensor, "b n n"]]:
    """Return the hidden states, the memory states and the attention weights of all steps.

    inputs
        The products with x_t and their biases: 4 h columns for the gates i, f, o and c^, then a for the query.
    recurrent
        What h~ is multiplied by: W of the same gates, then W_h~.
    key_layer, direction
        W_h and v.
    span
        How many earlier steps a step can attend to; 0 for all.

    The weights have no gradients. Under autocast the recurrence is computed in float32.
    """
    is_half = inputs.dtype in (torch.float16, torch.bfloat16)
    parts = [part.float() if is_half else part.to(inputs.dtype) for part in (inputs, recurrent, key_layer, direction)]
    with torch.autocast(inputs.device.type, enabled=False):
        tape, weights = _Loop.apply(*parts, span)  # type: ignore[no-untyped-call]
    hidden, memory = tape.to(inputs.dtype).chunk(2, dim=-1)
    return hidden, memory, weights


def _parts(inputs: Tensor, size: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    return inputs[..., : 4 * size].unbind(1), inputs[..., 4 * size :].unbind(1)


class _Loop(torch.autograd.Function):
    """All steps of one layer.

    tape (b, n, 2 h) holds [h; c], read (b, n, 2 h) holds [h~; c~]. `product` is h~_t times `recurrent`: its first part
    enters the gates of step t, its last part the query of step t + 1.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, recurrent: Tensor, key_layer: Tensor, direction: Tensor, span: int
    ) -> tuple[Tensor, Tensor]:
        (batch, length, _), (attention_dim, size) = inputs.shape, key_layer.shape
        inputs, direction = inputs.contiguous(), direction.contiguous()
        tape, read = inputs.new_empty(batch, length, 2 * size), inputs.new_zeros(batch, length, 2 * size)
        keys, queries = (inputs.new_empty(batch, length, attention_dim) for _ in range(2))
        gates = inputs.new_empty(batch, length, 4 * size)
        weights = inputs.new_zeros(batch, length, length)
        product = inputs.new_zeros(batch, 4 * size + attention_dim)
        steps = _steps(inputs, length)
        for t in range(length):
            if t:
                first = max(0, t - span) if span else 0
                torch.mm(tape[:, t - 1, :size], key_layer.mT, out=keys[:, t - 1])
                steps.look(t, first, inputs, product, keys, tape, direction, queries, weights, read)
                torch.mm(read[:, t, :size], recurrent.mT, out=product)
            steps.write(t, inputs, product, read, gates, tape)
        ctx.save_for_backward(recurrent, key_layer, direction, tape, read, keys, queries, gates, weights)
        ctx.span = span
        ctx.mark_non_differentiable(weights)
        return tape, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_tape: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, key_layer, direction, tape, read, keys, queries, gates, weights = ctx.saved_tensors
        (batch, length, _), (attention_dim, size), span = tape.shape, key_layer.shape, ctx.span
        # Later steps add to the gradients of the tapes and of the keys of earlier steps.
        grad_tape = grad_tape.clone(memory_format=torch.contiguous_format)
        grad_keys = torch.zeros_like(keys)
        grad_products = tape.new_zeros(batch, length, 4 * size + attention_dim)
        grad_read = torch.empty_like(read)
        grad_direction = tape.new_zeros(batch, attention_dim)
        steps = _steps(tape, length)
        for t in reversed(range(length)):
            grad_hidden = torch.addmm(grad_tape[:, t, :size], grad_keys[:, t], key_layer)
            steps.write_back(t, gates, read, tape, grad_hidden, grad_tape, grad_products, grad_read)
            if t:
                first = max(0, t - span) if span else 0
                torch.mm(grad_products[:, t], recurrent, out=grad_read[:, t, :size])
                steps.look_back(
                    t, first, queries, keys, tape, direction, weights, grad_read, grad_products, grad_keys, grad_tape,
                    grad_direction,
                )  # fmt: skip
        grad_inputs = grad_products.clone()
        grad_inputs[:, 0, 4 * size :] = 0
        grad_inputs[:, 1:, 4 * size :] = grad_products[:, :-1, 4 * size :]
        grad_recurrent = grad_products.flatten(0, 1).mT @ read[..., :size].flatten(0, 1)
        grad_key_layer = grad_keys.flatten(0, 1).mT @ tape[..., :size].flatten(0, 1)
        return grad_inputs, grad_recurrent, grad_key_layer, grad_direction.sum(0), None


def _steps(tensor: Tensor, length: int) -> Any:
    """The steps of the loop: GPU kernels where there are some, otherwise plain formulas."""
    if not has_gpu_kernels(tensor) or length > MAX_TAPE:
        return _Formulas
    from regard.kernels import lstmn_gpu

    return lstmn_gpu


class _Formulas:
    """The steps by plain formulas."""

    @staticmethod
    def look(
        t: int,
        first: int,
        inputs: Tensor,
        product: Tensor,
        keys: Tensor,
        tape: Tensor,
        direction: Tensor,
        queries: Tensor,
        weights: Tensor,
        read: Tensor,
    ) -> None:
        """Attend to the tape from `first` to t - 1."""
        dim = len(direction)
        torch.add(inputs[:, t, -dim:], product[:, -dim:], out=queries[:, t])
        logits = (queries[:, t].unsqueeze(1) + keys[:, first:t]).tanh_() @ direction
        weight = logits.softmax(-1)
        weights[:, t, first:t] = weight
        read[:, t] = torch.bmm(weight.unsqueeze(1), tape[:, first:t]).squeeze(1)

    @staticmethod
    def write(t: int, inputs: Tensor, product: Tensor, read: Tensor, gates: Tensor, tape: Tensor) -> None:
        """Update the cell, and write it to the tape; `gates` keeps i, f, o and c^."""
        size = read.shape[-1] // 2
        gate = gates[:, t]
        torch.add(inputs[:, t, : 4 * size], product[:, : 4 * size], out=gate)
        gate[:, : 3 * size].sigmoid_()
        gate[:, 3 * size :].tanh_()
        entry, forget, out, candidate = gate.chunk(4, dim=-1)
        memory = torch.addcmul(forget * read[:, t, size:], entry, candidate)
        tape[:, t, size:] = memory
        tape[:, t, :size] = out * memory.tanh()

    @staticmethod
    def write_back(
        t: int,
        gates: Tensor,
        read: Tensor,
        tape: Tensor,
        grad_hidden: Tensor,
        grad_tape: Tensor,
        grad_products: Tensor,
        grad_read: Tensor,
    ) -> None:
        """The gradients of the gates, and of c~."""
        size = read.shape[-1] // 2
        entry, forget, out, candidate = gates[:, t].chunk(4, dim=-1)
        squashed = tape[:, t, size:].tanh()
        grad_memory = grad_tape[:, t, size:] + grad_hidden * out * (1 - squashed * squashed)
        grad_entry, grad_forget, grad_out, grad_candidate = grad_products[:, t, : 4 * size].chunk(4, dim=-1)
        grad_entry.copy_(grad_memory * candidate * entry * (1 - entry))
        grad_forget.copy_(grad_memory * read[:, t, size:] * forget * (1 - forget))
        grad_out.copy_(grad_hidden * squashed * out * (1 - out))
        grad_candidate.copy_(grad_memory * entry * (1 - candidate * candidate))
        grad_read[:, t, size:] = grad_memory * forget

    @staticmethod
    def look_back(
        t: int,
        first: int,
        queries: Tensor,
        keys: Tensor,
        tape: Tensor,
        direction: Tensor,
        weights: Tensor,
        grad_read: Tensor,
        grad_products: Tensor,
        grad_keys: Tensor,
        grad_tape: Tensor,
        grad_direction: Tensor,
    ) -> None:
        """The gradient of the query; adds to those of the keys, of the tape and of v."""
        weight, upstream = weights[:, t, first:t], grad_read[:, t]
        through = torch.bmm(tape[:, first:t], upstream.unsqueeze(-1)).squeeze(-1)
        slope = weight * (through - (weight * through).sum(-1, keepdim=True))
        squashed = (queries[:, t].unsqueeze(1) + keys[:, first:t]).tanh_()
        grad_direction += torch.bmm(slope.unsqueeze(1), squashed).squeeze(1)
        grad_pairs = (squashed.square_().neg_().add_(1)).mul_(slope.unsqueeze(-1)).mul_(direction)
        grad_products[:, t - 1, -len(direction) :] = grad_pairs.sum(1)
        grad_keys[:, first:t] += grad_pairs
        grad_tape[:, first:t].addcmul_(weight.unsqueeze(-1), upstream.unsqueeze(1))
