"""One step of the heads of a neural Turing machine: address, read, write (Graves et al. 2014, section 3).

With autograd, a step of the plain formulas is some fifty small operations forward and a hundred backward, several of
which build tensors of the size of the memory for gradients that are only added up. Here a step is one function with
its own gradient: the gradients of the memory through reading and the content-based focus are one matrix product.
The gradients cannot be differentiated again.

The memory is (b, d, n), one column per slot: the inner axis is the long one, which vectorises well.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from regard.kernels.numerics import is_autocast

EPSILON = 1e-12
"""Added to the squared norms of keys and slots, so that the cosine with an empty slot is 0 and has a gradient."""
LIMIT = 100.0
"""Largest key strength and largest sharpening exponent; gradients pass the limit unchanged."""
SMALLEST = 1e-30
"""Smallest weight that enters the sharpening, which takes logarithms."""


class HeadSizes(NamedTuple):
    """How many heads read and write, the width of a slot, and how far a head shifts in one step."""

    reads: int
    writes: int
    width: int
    max_shift: int = 1

    @property
    def heads(self) -> int:
        """The number of all heads; those that read come first."""
        return self.reads + self.writes

    @property
    def groups(self) -> tuple[int, int, int, int]:
        """How many of the emitted numbers go through tanh, sigmoid, softplus and softmax, in this order."""
        bounded, opened = (self.heads + self.writes) * self.width, self.heads + self.writes * self.width
        return bounded, opened, 2 * self.heads, self.heads * (2 * self.max_shift + 1)

    @property
    def total(self) -> int:
        """How many numbers a controller emits in a step."""
        return sum(self.groups)


class Instructions(NamedTuple):
    """What the heads do in a step."""

    key: Tensor
    """(b, heads, d): what to look for by content, each number between -1 and 1."""
    add: Tensor
    """(b, writes, d): what the write heads add, between -1 and 1."""
    gate: Tensor
    """(b, heads, 1): how much of the focus is by content, rather than the last focus; 0 to 1."""
    erase: Tensor
    """(b, writes, d): how much the write heads erase of each feature; 0 to 1."""
    strength: Tensor
    """(b, heads, 1): how strongly the most similar slots are preferred; 0 to LIMIT."""
    sharpen: Tensor
    """(b, heads, 1): the exponent of the weights; 1 to LIMIT."""
    shift: Tensor
    """(b, heads, 2 max_shift + 1): the distribution over shifts, from -max_shift to max_shift."""


def instructions(emitted: Tensor, sizes: HeadSizes) -> Instructions:
    """The instructions in the numbers (b, sizes.total) that a controller emits."""
    return _parts(*_activated(emitted, sizes), sizes)


def access(emitted: Tensor, memory: Tensor, last: Tensor, sizes: HeadSizes) -> tuple[Tensor, Tensor, Tensor]:
    """Address, read and write once; all heads look at the memory as it was before the step.

    Takes the emitted numbers (b, sizes.total), the memory (b, d, n) and the last weights (b, heads, n); returns what
    was read (b, reads, d), the new weights and the new memory.
    """
    if is_autocast(memory.device):
        with torch.autocast(memory.device.type, enabled=False):
            return access(emitted, memory, last, sizes)
    done: tuple[Tensor, Tensor, Tensor] = _Access.apply(  # type: ignore[no-untyped-call]
        emitted.to(memory.dtype), memory, last, sizes
    )
    return done


def rotate(weights: Tensor, shift: Tensor) -> Tensor:
    """sum_j weights((i - j) mod n) shift(j), j = -max_shift .. max_shift, for weights (b, heads, n)."""
    slots, count = weights.shape[-1], shift.shape[-1]
    around = _around(weights, count // 2)
    rotated = around[..., :slots] * shift[..., -1:]
    for offset in range(1, count):
        rotated.addcmul_(around[..., offset : offset + slots], shift[..., count - 1 - offset : count - offset])
    return rotated


class _Access(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, emitted: Tensor, memory: Tensor, last: Tensor, sizes: HeadSizes
    ) -> tuple[Tensor, Tensor, Tensor]:
        bounded, opened, positive, shift = _activated(emitted, sizes)
        instructions = _parts(bounded, opened, positive, shift, sizes)
        key_scale = (instructions.key * instructions.key).sum(-1, keepdim=True).add_(EPSILON).rsqrt_()
        slot_scale = (memory * memory).sum(1, keepdim=True).add_(EPSILON).rsqrt_()
        unit = instructions.key * key_scale
        cosine = torch.bmm(unit, memory).mul_(slot_scale)
        content = torch.softmax(cosine * instructions.strength, -1)
        gated = torch.lerp(last, content, instructions.gate)
        shifted = rotate(gated, instructions.shift).clamp_min_(SMALLEST)
        logs = shifted.log()
        weights = torch.softmax(logs * instructions.sharpen, -1)
        reading, writing = weights[:, : sizes.reads], weights[:, sizes.reads :]
        read = torch.bmm(reading, memory.mT)
        written = torch.addcmul(memory, memory, _erased(instructions.erase, writing), value=-1)
        for head in range(sizes.writes):
            written.addcmul_(instructions.add[:, head].unsqueeze(-1), writing[:, head].unsqueeze(1))
        made = key_scale, slot_scale, unit, cosine, content, gated, shifted, logs
        ctx.save_for_backward(emitted, bounded, opened, positive, shift, memory, last, weights, *made)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return read, weights, written

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_read: Tensor | None, grad_weights: Tensor | None, grad_written: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        sizes: HeadSizes = ctx.sizes
        emitted, bounded, opened, positive, shift, memory, last, weights, *made = ctx.saved_tensors
        key_scale, slot_scale, unit, cosine, content, gated, shifted, logs = made
        instructions = _parts(bounded, opened, positive, shift, sizes)
        reading, writing = weights[:, : sizes.reads], weights[:, sizes.reads :]
        if grad_read is None:
            grad_read = memory.new_zeros(len(memory), sizes.reads, sizes.width)
        through_write, grad_add, grad_erase, grad_memory = _write_back(instructions, writing, memory, grad_written)
        through = torch.cat([torch.bmm(grad_read, memory), through_write], 1)
        if grad_weights is not None:
            through.add_(grad_weights)

        grad_logits = _softmax_back(through, weights)
        grad_sharpen = (grad_logits * logs).sum(-1)
        grad_shifted = grad_logits.mul_(instructions.sharpen).div_(shifted)
        grad_shift = _rotate_back(grad_shifted, gated, shift.shape[-1])
        grad_gated = rotate(grad_shifted, shift.flip(-1))
        grad_gate = (grad_gated * (content - last)).sum(-1)
        grad_content = grad_gated * instructions.gate
        grad_last = grad_gated.sub_(grad_content)

        grad_cosine = _softmax_back(grad_content, content)
        grad_strength = (grad_cosine * cosine).sum(-1)
        grad_cosine.mul_(instructions.strength)
        grad_product = grad_cosine * slot_scale
        grad_unit = torch.bmm(grad_product, memory.mT)
        along = (unit * grad_unit).sum(-1, keepdim=True)
        grad_key = grad_unit.addcmul_(unit, along, value=-1).mul_(key_scale)
        grad_memory.baddbmm_(torch.cat([grad_read, unit], 1).mT, torch.cat([reading, grad_product], 1))
        radial = grad_cosine.mul_(cosine).sum(1, keepdim=True).mul_(slot_scale * slot_scale)
        grad_memory.addcmul_(memory, radial, value=-1)

        grad_bounded = torch.cat([grad_key.flatten(1), grad_add.flatten(1)], 1)
        grad_opened = torch.cat([grad_gate, grad_erase.flatten(1)], 1)
        grad_positive = torch.cat([grad_strength, grad_sharpen], 1)
        below = emitted.split(sizes.groups, -1)[2].sigmoid()
        grad_emitted = torch.cat(
            [
                grad_bounded.mul_(1 - bounded * bounded),
                grad_opened.mul_(opened).mul_(1 - opened),
                grad_positive.mul_(below),
                _softmax_back(grad_shift, shift).flatten(1),
            ],
            1,
        )
        return grad_emitted, grad_memory, grad_last, None


def _activated(emitted: Tensor, sizes: HeadSizes) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    bounded, opened, positive, shift = emitted.split(sizes.groups, -1)
    shift = shift.unflatten(-1, (sizes.heads, 2 * sizes.max_shift + 1))
    return bounded.tanh(), opened.sigmoid(), functional.softplus(positive).clamp(max=LIMIT - 1), shift.softmax(-1)


def _parts(bounded: Tensor, opened: Tensor, positive: Tensor, shift: Tensor, sizes: HeadSizes) -> Instructions:
    heads, width = sizes.heads, sizes.width
    key, add = bounded.unflatten(-1, (-1, width)).split([heads, sizes.writes], 1)
    gate, erase = opened[:, :heads].unsqueeze(-1), opened[:, heads:].unflatten(-1, (-1, width))
    strength, sharpen = positive.unsqueeze(-1).split(heads, 1)
    return Instructions(key, add, gate, erase, strength, 1 + sharpen, shift)


def _around(weights: Tensor, max_shift: int) -> Tensor:
    """Pad circularly by max_shift slots at each end."""
    return torch.cat([weights[..., weights.shape[-1] - max_shift :], weights, weights[..., :max_shift]], -1)


def _rotate_back(grad: Tensor, weights: Tensor, count: int) -> Tensor:
    """The gradient of the shifts."""
    slots, around = weights.shape[-1], _around(weights, count // 2)
    dots = [torch.linalg.vecdot(grad, around[..., offset : offset + slots]) for offset in reversed(range(count))]
    return torch.stack(dots, -1)


def _erased(erase: Tensor, writing: Tensor, *, without: int = -1) -> Tensor:
    """1 - prod_h (1 - w_h(i) e_h): the fraction of each number in the memory that all write heads together erase."""
    first, *others = (
        erase[:, head].unsqueeze(-1) * writing[:, head].unsqueeze(1)
        for head in range(erase.shape[1])
        if head != without
    )
    for more in others:
        first = first + more - first * more
    return first


def _write_back(
    instructions: Instructions, writing: Tensor, memory: Tensor, grad: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the weights of write heads, of add and erase, and of the memory before writing."""
    if grad is None:
        return (
            torch.zeros_like(writing),
            torch.zeros_like(instructions.add),
            torch.zeros_like(instructions.add),
            torch.zeros_like(memory),
        )
    grad_memory = torch.addcmul(grad, grad, _erased(instructions.erase, writing), value=-1)
    grad_add, through = torch.bmm(writing, grad.mT), torch.bmm(instructions.add, grad)
    through_erased = grad * memory
    writes = writing.shape[1]
    if writes == 1:
        grad_erase = torch.bmm(writing, through_erased.mT).neg_()
        return through.baddbmm_(instructions.erase, through_erased, alpha=-1), grad_add, grad_erase, grad_memory
    grads = []
    for head in range(writes):
        kept = _erased(instructions.erase, writing, without=head)
        part = torch.addcmul(through_erased, through_erased, kept, value=-1)
        grads.append(torch.bmm(writing[:, head : head + 1], part.mT))
        through[:, head : head + 1].baddbmm_(instructions.erase[:, head : head + 1], part, alpha=-1)
    return through, grad_add, torch.cat(grads, 1).neg_(), grad_memory


def _softmax_back(grad: Tensor, output: Tensor) -> Tensor:
    return torch._softmax_backward_data(grad, output, -1, output.dtype)
