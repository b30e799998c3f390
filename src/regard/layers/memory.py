"""An external memory with heads that read and write it (Graves et al. 2014, section 3)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.align import Addressing
from regard.attention.attend import attend
from regard.attention.score import Cosine
from regard.errors import OptionError
from regard.kernels.hoisted import Hoisted
from regard.kernels.turing_heads import HeadSizes, Instructions, access, instructions

Kernel = Literal["auto", "reference", "fused"]
INITIAL_CONTENT = 1e-6
"""Every number of a new memory: with a small constant, training converges from more seeds than with random numbers
(Collier and Beel 2018)."""

GATE_BIAS, SHARPEN_BIAS = -2.0, 1.0
"""Added to the initial biases of gates and sharpening exponents. New heads then mostly keep their place and stay sharp:
with open gates, the focus is spread over the whole memory after a few steps, and no gradient tells where it was."""
ADD_GAIN = 3.0
"""Factor of the initial parameters of what write heads add. What is first written is small, and would be read too
faintly for a controller with a memory of its own to care."""


@dataclass(frozen=True)
class MemoryState:
    """A memory between two steps."""

    content: Float[Tensor, "b d n"]
    """One column per slot."""
    weights: Float[Tensor, "b h n"]
    """Where the heads are; those that read come first."""

    @property
    def slots(self) -> Float[Tensor, "b n d"]:
        """The content, one row per slot."""
        return self.content.mT


@dataclass(frozen=True)
class Accessed:
    """The result of one memory access."""

    read: Float[Tensor, "b r d"]
    """The vector that each read head read."""
    state: MemoryState
    instructions: Instructions | None = None
    """The head instructions, if requested."""


class ExternalMemory(nn.Module):
    """Heads that find slots of a memory by content and by location, read them, erase them and add to them.

    In each step a layer turns the features of a controller into the instructions of all heads. Each head focuses with
    `Addressing`; all heads look at the memory M as the step before left it:

        r = w M                                  for each read head, with weights w
        M <- M prod_h (1 - w_h e_h') + sum_h w_h a_h'      over the write heads, with erase vectors e and add vectors a

    The number of slots is no part of the parameters: a memory may be started with more or fewer than it has by default.
    """

    def __init__(
        self,
        features: int,
        *,
        slots: int = 128,
        width: int = 20,
        num_reads: int = 1,
        num_writes: int = 1,
        max_shift: int = 1,
    ) -> None:
        super().__init__()
        for name, value in (("slots", slots), ("width", width), ("num_reads", num_reads), ("num_writes", num_writes)):
            if value < 1:
                raise OptionError(f"{name} must be 1 or more; got {value}.")
        self.slots = slots
        self.sizes = HeadSizes(num_reads, num_writes, width, max_shift)
        self._check_slots(slots)
        self.heads = Hoisted(features, self.sizes.total)
        self._initialise()

    @property
    def read_size(self) -> int:
        """Numbers that all read heads read in a step."""
        return self.sizes.reads * self.sizes.width

    def start(self, batch: int, *, slots: int | None = None) -> MemoryState:
        """An empty memory, with all heads at its first slot."""
        slots = self.slots if slots is None else slots
        self._check_slots(slots)
        like = self.heads.weight
        weights = like.new_zeros(batch, self.sizes.heads, slots, dtype=torch.float32)
        weights[..., 0] = 1
        content = like.new_full((batch, self.sizes.width, slots), INITIAL_CONTENT, dtype=torch.float32)
        return MemoryState(content, weights)

    def forward(
        self,
        features: Float[Tensor, "b f"],
        state: MemoryState,
        *,
        kernel: Kernel = "auto",
        with_instructions: bool = False,
    ) -> Accessed:
        """One step of all heads; the kernel "reference" computes it with `attend`, by the plain formulas."""
        step = access_reference if kernel == "reference" else access
        emitted = self.heads(features)
        read, weights, content = step(emitted, state.content, state.weights, self.sizes)
        given = instructions(emitted, self.sizes) if with_instructions else None
        return Accessed(read, MemoryState(content, weights), given)

    @torch.no_grad()
    def _initialise(self) -> None:
        """Heads that keep their place, stay sharp, and write numbers that are large enough to be of use."""
        (bounded, opened, _, _), count, width = self.sizes.groups, self.sizes.heads, self.sizes.width
        bias = self.heads.bias
        bias[bounded : bounded + count] += GATE_BIAS
        bias[bounded + opened + count : bounded + opened + 2 * count] += SHARPEN_BIAS
        self.heads.weight[count * width : bounded] *= ADD_GAIN

    def _check_slots(self, slots: int) -> None:
        if not 0 <= self.sizes.max_shift < slots:
            raise OptionError(
                f"A memory needs more slots than a head shifts in a step (max_shift, 0 or more); got {slots} slots and "
                f"max_shift {self.sizes.max_shift}."
            )


def access_reference(
    emitted: Float[Tensor, "b _"],
    content: Float[Tensor, "b d n"],
    last: Float[Tensor, "b h n"],
    sizes: HeadSizes,
) -> tuple[Float[Tensor, "b r d"], Float[Tensor, "b h n"], Float[Tensor, "b d n"]]:
    """One step of all heads by the plain formulas: what was read, the weights, the new content."""
    key, add, gate, erase, strength, sharpen, shift = instructions(emitted.to(content.dtype), sizes)
    addressing = Addressing(gate, shift, sharpen)
    _, weights = attend(
        key, content.mT, score=Cosine(strength), align=addressing, state=last, weights=True, kernel="reference"
    )
    reading, writing = weights.split([sizes.reads, sizes.writes], 1)
    kept = (1 - writing.unsqueeze(2) * erase.unsqueeze(-1)).prod(1)
    return reading @ content.mT, weights, content * kept + add.mT @ writing
