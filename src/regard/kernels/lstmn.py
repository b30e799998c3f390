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

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.numerics import ceil_div, has_gpu_kernels, next_power_of_2, triton_kernels

MAX_TAPE = 1024
"""Number of steps up to which the GPU kernels, which take the whole tape at once, are used."""
TILE = 8192
"""Elements of a tape that a program looks at together."""
PROGRAMS = 256
"""Programs that should run at a time; small batches are split by features to reach it."""
MAX_SPLITS = 8
MAX_UNITS_PER_PROGRAM = 512
"""Units of a cell that one program takes."""


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


class _Buffers(NamedTuple):
    """What the steps of one layer share; all of it is needed again by the backward pass."""

    direction: Tensor
    """v, (a)."""
    tape: Tensor
    """[h; c] of each step, (b, n, 2 h)."""
    read: Tensor
    """[h~; c~] of each step, (b, n, 2 h)."""
    keys: Tensor
    """W_h h of each step, (b, n, a)."""
    queries: Tensor
    """W_x x + W_h~ h~ of each step, (b, n, a)."""
    gates: Tensor
    """i, f, o and c^ of each step, (b, n, 4 h)."""
    weights: Tensor
    """s of each step, (b, n, n)."""


class _Gradients(NamedTuple):
    """The gradients that the steps of the backward pass share; later steps add to those of earlier ones."""

    tape: Tensor
    read: Tensor
    keys: Tensor
    products: Tensor
    """Of h~_t times `recurrent`, (b, n, 4 h + a)."""
    direction: Tensor
    """For each row of the batch, (b, a)."""


class _Loop(torch.autograd.Function):
    """All steps of one layer.

    `product` is h~_t times `recurrent`: its first part enters the gates of step t, its last part the query of step
    t + 1.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, recurrent: Tensor, key_layer: Tensor, direction: Tensor, span: int
    ) -> tuple[Tensor, Tensor]:
        (batch, length, _), (attention_dim, size) = inputs.shape, key_layer.shape
        inputs = inputs.contiguous()
        buffers = _Buffers(
            direction=direction.contiguous(),
            tape=inputs.new_empty(batch, length, 2 * size),
            read=inputs.new_zeros(batch, length, 2 * size),
            keys=inputs.new_empty(batch, length, attention_dim),
            queries=inputs.new_empty(batch, length, attention_dim),
            gates=inputs.new_empty(batch, length, 4 * size),
            weights=inputs.new_zeros(batch, length, length),
        )
        product = inputs.new_zeros(batch, 4 * size + attention_dim)
        steps = _steps(inputs)
        for t in range(length):
            if t:
                torch.mm(buffers.tape[:, t - 1, :size], key_layer.mT, out=buffers.keys[:, t - 1])
                steps.look(t, _first(t, span), buffers, inputs, product)
                torch.mm(buffers.read[:, t, :size], recurrent.mT, out=product)
            steps.write(t, buffers, inputs, product)
        ctx.save_for_backward(recurrent, key_layer, *buffers)
        ctx.span = span
        ctx.mark_non_differentiable(buffers.weights)
        return buffers.tape, buffers.weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_tape: Tensor, grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, key_layer, *saved = ctx.saved_tensors
        buffers = _Buffers(*saved)
        (batch, length, _), (attention_dim, size) = buffers.tape.shape, key_layer.shape
        grads = _Gradients(
            tape=grad_tape.clone(memory_format=torch.contiguous_format),
            read=torch.empty_like(buffers.read),
            keys=torch.zeros_like(buffers.keys),
            products=grad_tape.new_zeros(batch, length, 4 * size + attention_dim),
            direction=grad_tape.new_zeros(batch, attention_dim),
        )
        steps = _steps(grad_tape)
        for t in reversed(range(length)):
            grad_hidden = torch.addmm(grads.tape[:, t, :size], grads.keys[:, t], key_layer)
            steps.write_back(t, buffers, grads, grad_hidden)
            if t:
                torch.mm(grads.products[:, t], recurrent, out=grads.read[:, t, :size])
                steps.look_back(t, _first(t, ctx.span), buffers, grads)
        grad_inputs = grads.products.clone()
        grad_inputs[:, 0, 4 * size :] = 0
        grad_inputs[:, 1:, 4 * size :] = grads.products[:, :-1, 4 * size :]
        grad_recurrent = grads.products.flatten(0, 1).mT @ buffers.read[..., :size].flatten(0, 1)
        grad_key_layer = grads.keys.flatten(0, 1).mT @ buffers.tape[..., :size].flatten(0, 1)
        return grad_inputs, grad_recurrent, grad_key_layer, grads.direction.sum(0), None


def _first(t: int, span: int) -> int:
    """The first step that step t attends to."""
    return max(0, t - span) if span else 0


def _steps(tensor: Tensor) -> "type[_Formulas] | type[_Kernels]":
    """The steps of the loop: GPU kernels where there are some, otherwise plain formulas."""
    return _Kernels if has_gpu_kernels(tensor) and tensor.shape[1] <= MAX_TAPE else _Formulas


class _Formulas:
    """The steps by plain formulas."""

    @staticmethod
    def look(t: int, first: int, buffers: _Buffers, inputs: Tensor, product: Tensor) -> None:
        """Attend to the tape from `first` to t - 1."""
        direction, tape, read, keys, queries, _, weights = buffers
        dim = len(direction)
        torch.add(inputs[:, t, -dim:], product[:, -dim:], out=queries[:, t])
        logits = (queries[:, t].unsqueeze(1) + keys[:, first:t]).tanh_() @ direction
        weight = logits.softmax(-1)
        weights[:, t, first:t] = weight
        read[:, t] = torch.bmm(weight.unsqueeze(1), tape[:, first:t]).squeeze(1)

    @staticmethod
    def write(t: int, buffers: _Buffers, inputs: Tensor, product: Tensor) -> None:
        """Update the cell, and write it to the tape; `gates` keeps i, f, o and c^."""
        gate, size = buffers.gates[:, t], buffers.read.shape[-1] // 2
        torch.add(inputs[:, t, : 4 * size], product[:, : 4 * size], out=gate)
        gate[:, : 3 * size].sigmoid_()
        gate[:, 3 * size :].tanh_()
        entry, forget, out, candidate = gate.chunk(4, dim=-1)
        memory = torch.addcmul(forget * buffers.read[:, t, size:], entry, candidate)
        buffers.tape[:, t, size:] = memory
        buffers.tape[:, t, :size] = out * memory.tanh()

    @staticmethod
    def write_back(t: int, buffers: _Buffers, grads: _Gradients, grad_hidden: Tensor) -> None:
        """The gradients of the gates, and of c~."""
        size = buffers.read.shape[-1] // 2
        entry, forget, out, candidate = buffers.gates[:, t].chunk(4, dim=-1)
        squashed = buffers.tape[:, t, size:].tanh()
        grad_memory = grads.tape[:, t, size:] + grad_hidden * out * (1 - squashed * squashed)
        grad_entry, grad_forget, grad_out, grad_candidate = grads.products[:, t, : 4 * size].chunk(4, dim=-1)
        grad_entry.copy_(grad_memory * candidate * entry * (1 - entry))
        grad_forget.copy_(grad_memory * buffers.read[:, t, size:] * forget * (1 - forget))
        grad_out.copy_(grad_hidden * squashed * out * (1 - out))
        grad_candidate.copy_(grad_memory * entry * (1 - candidate * candidate))
        grads.read[:, t, size:] = grad_memory * forget

    @staticmethod
    def look_back(t: int, first: int, buffers: _Buffers, grads: _Gradients) -> None:
        """The gradient of the query; adds to those of the keys, of the tape and of v."""
        direction, tape, _, keys, queries, _, weights = buffers
        weight, upstream = weights[:, t, first:t], grads.read[:, t]
        through = torch.bmm(tape[:, first:t], upstream.unsqueeze(-1)).squeeze(-1)
        slope = weight * (through - (weight * through).sum(-1, keepdim=True))
        squashed = (queries[:, t].unsqueeze(1) + keys[:, first:t]).tanh_()
        grads.direction.add_(torch.bmm(slope.unsqueeze(1), squashed).squeeze(1))
        grad_pairs = (squashed.square_().neg_().add_(1)).mul_(slope.unsqueeze(-1)).mul_(direction)
        grads.products[:, t - 1, -len(direction) :] = grad_pairs.sum(1)
        grads.keys[:, first:t] += grad_pairs
        grads.tape[:, first:t].addcmul_(weight.unsqueeze(-1), upstream.unsqueeze(1))


class _Kernels:
    """The same steps on a GPU, by one kernel each (lstmn_triton.py)."""

    @staticmethod
    def look(t: int, first: int, buffers: _Buffers, inputs: Tensor, product: Tensor) -> None:
        direction, tape, read, keys, queries, _, weights = buffers
        batch, length, dim = keys.shape
        triton_kernels("lstmn").look[batch, _splits(batch)](
            inputs, product, keys, tape, direction, queries, weights, read, t, first, length, dim, tape.shape[2] // 2,
            **_blocks(t - first),
        )  # fmt: skip

    @staticmethod
    def write(t: int, buffers: _Buffers, inputs: Tensor, product: Tensor) -> None:
        (batch, length, columns), size = inputs.shape, buffers.tape.shape[2] // 2
        grid, block = _cell_grid(batch, size)
        triton_kernels("lstmn").write[grid](
            inputs, product, buffers.read, buffers.gates, buffers.tape, t, length, columns, size, BLOCK=block
        )

    @staticmethod
    def write_back(t: int, buffers: _Buffers, grads: _Gradients, grad_hidden: Tensor) -> None:
        (batch, length, columns), size = grads.products.shape, buffers.tape.shape[2] // 2
        grid, block = _cell_grid(batch, size)
        triton_kernels("lstmn").write_back[grid](
            buffers.gates, buffers.read, buffers.tape, grad_hidden, grads.tape, grads.products, grads.read, t, length,
            columns, size, BLOCK=block,
        )  # fmt: skip

    @staticmethod
    def look_back(t: int, first: int, buffers: _Buffers, grads: _Gradients) -> None:
        direction, tape, _, keys, queries, _, weights = buffers
        batch, length, dim = keys.shape
        triton_kernels("lstmn").look_back[batch, _splits(batch)](
            queries, keys, tape, direction, weights, grads.read, grads.products, grads.keys, grads.tape,
            grads.direction, t, first, length, dim, tape.shape[2] // 2, **_blocks(t - first),
        )  # fmt: skip


def _splits(batch: int) -> int:
    return max(1, min(MAX_SPLITS, PROGRAMS // batch))


def _blocks(num_keys: int) -> dict[str, int]:
    block = max(16, next_power_of_2(num_keys))
    return {"BLOCK_K": block, "BLOCK_DIM": max(16, min(64, TILE // block)), "num_warps": 4 if num_keys <= 256 else 8}


def _cell_grid(batch: int, size: int) -> tuple[tuple[int, int], int]:
    """The programs of a kernel of the cell, and how many units each of them takes."""
    block = min(MAX_UNITS_PER_PROGRAM, next_power_of_2(size))
    return (batch, ceil_div(size, block)), block
