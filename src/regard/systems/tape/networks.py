"""Networks that answer tapes: the neural Turing machine, an LSTM, and attention over the inputs."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import mask
from regard.attention.attend import Attention
from regard.kernels.cuda_graphs import STEP_MULTIPLE, GraphedLoop
from regard.kernels.hoisted import hoisting
from regard.kernels.turing_heads import Instructions
from regard.layers.controllers import CONTROLLERS, Controller
from regard.layers.memory import ExternalMemory, Kernel, MemoryState
from regard.parts import build_part

READ_GAIN = 3.0
"""Factor of the initial parameters that what was read enters the answer with; see `layers.memory.ADD_GAIN`."""
CONTROLS = ("gate", "strength", "sharpening", "shift")
"""What is reported of a head in each step: how much of its focus is found by content rather than kept from the step
before, how strongly similar slots are preferred, the exponent of its weights, and how far it moves on average."""
Inputs = Float[Tensor, "b t c"]
Logits = Float[Tensor, "b t y"]


@dataclass(frozen=True)
class UnrolledTape:
    """What a network answers at each step, and what it attended to."""

    logits: Logits
    """A logit for each bit."""
    weights: dict[str, Float[Tensor, "b t n"]] = field(default_factory=dict)
    """By name: where each head was, over the slots of the memory, or what was attended to, over the steps."""
    vectors: dict[str, Float[Tensor, "b t d"]] = field(default_factory=dict)
    """By name: what each head read, or added, in each step."""
    memory: Float[Tensor, "b n d"] | None = None
    """The memory after the last step."""
    slot_sizes: Float[Tensor, "b t n"] | None = None
    """The root mean square of each slot of the memory after each step."""
    controls: dict[str, Float[Tensor, "b t"]] = field(default_factory=dict)
    """By name, such as "read 1 gate": the instructions of a head in each step (see `CONTROLS`)."""

    def row(self, number: int) -> "UnrolledTape":
        """One row of the batch, as a batch of one, on the CPU."""

        def of(tensor: Tensor) -> Tensor:
            return tensor[number : number + 1].float().cpu()

        weights, vectors = ({name: of(part) for name, part in each.items()} for each in (self.weights, self.vectors))
        memory, sizes = (None if each is None else of(each) for each in (self.memory, self.slot_sizes))
        controls = {name: of(part) for name, part in self.controls.items()}
        return UnrolledTape(of(self.logits), weights, vectors, memory, sizes, controls)


class TapeNetwork(nn.Module):
    """Base class: a network that answers at every step of a tape, and never looks ahead."""

    def forward(self, inputs: Inputs) -> Logits:
        """A logit for each bit of the answer, at each step."""
        raise TypeError(f"{type(self).__name__} does not define forward(inputs).")

    def unroll(self, inputs: Inputs, *, slots: int | None = None) -> UnrolledTape:
        """The logits, and what was attended to."""
        return UnrolledTape(self(inputs))


class TuringNetwork(TapeNetwork):
    """The neural Turing machine (Graves et al. 2014): a controller, and a memory that it reads and writes.

    In each step the controller sees the input and what was read in the step before; the answer is computed from its
    features and what is read in this step. On a GPU, training records the loop over the steps as CUDA graphs.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        controller: str = "lstm",
        hidden: int = 100,
        slots: int = 128,
        width: int = 20,
        num_reads: int = 1,
        num_writes: int = 1,
        max_shift: int = 1,
    ) -> None:
        super().__init__()
        self.memory = ExternalMemory(
            hidden, slots=slots, width=width, num_reads=num_reads, num_writes=num_writes, max_shift=max_shift
        )
        if controller in CONTROLLERS:
            self.controller: Controller = CONTROLLERS[controller](inputs, self.memory.read_size, hidden)
        else:
            self.controller = build_part(
                controller, {"inputs": inputs, "read": self.memory.read_size, "hidden": hidden}
            )
        self.first_read = nn.Parameter(torch.zeros(self.memory.read_size))
        self.output = nn.Linear(hidden + self.memory.read_size, outputs)
        with torch.no_grad():
            self.output.weight[:, hidden:] *= READ_GAIN
        self.graphs = GraphedLoop()

    def forward(self, inputs: Inputs, *, kernel: Kernel = "auto") -> Logits:
        """A logit for each bit of the answer, at each step."""
        recorded = self.graphs.record and inputs.is_cuda and self.training and torch.is_grad_enabled()
        if recorded and kernel == "auto" and inputs.shape[1]:
            parameters = dict(self.named_parameters())
            return self.graphs(self, self._logits, [inputs], parameters, multiples=[(1, STEP_MULTIPLE)])[0]
        return self._loop(inputs, kernel=kernel)[0]

    def unroll(self, inputs: Inputs, *, slots: int | None = None) -> UnrolledTape:
        """The logits, the movements of the heads, what they read and added, and the memory at the end."""
        steps: list[tuple[Tensor, ...]] = []
        sizes = self.memory.sizes
        logits, memory = self._loop(inputs, slots=slots, record=steps)
        if not steps:
            return UnrolledTape(logits, memory=memory.slots)
        weights, read, add, slot_sizes, controls = (torch.stack(part, 1) for part in zip(*steps, strict=True))
        names = [f"read {head}" for head in range(1, sizes.reads + 1)]
        names += [f"write {head}" for head in range(1, sizes.writes + 1)]
        vectors = {f"reads {head + 1}": read[:, :, head] for head in range(sizes.reads)}
        vectors |= {f"adds {head + 1}": add[:, :, head] for head in range(sizes.writes)}
        by_head = {name: weights[:, :, head] for head, name in enumerate(names)}
        by_control = {
            f"{name} {control}": controls[:, :, head, index]
            for head, name in enumerate(names)
            for index, control in enumerate(CONTROLS)
        }
        return UnrolledTape(logits, by_head, vectors, memory.slots, slot_sizes, by_control)

    def _logits(self, inputs: Inputs) -> tuple[Logits]:
        return (self._loop(inputs)[0],)

    def _loop(
        self,
        inputs: Inputs,
        *,
        slots: int | None = None,
        kernel: Kernel = "auto",
        record: list[tuple[Tensor, ...]] | None = None,
    ) -> tuple[Logits, MemoryState]:
        batch = len(inputs)
        state, memory = self.controller.start(batch), self.memory.start(batch, slots=slots)
        read = self.first_read.expand(batch, -1)
        features = []
        with hoisting(self):
            for each in self.controller.project(inputs).unbind(0):
                hidden, state = self.controller(each, read, state)
                accessed = self.memory(hidden, memory, kernel=kernel, with_instructions=record is not None)
                read, memory = accessed.read.flatten(1), accessed.state
                features.append(torch.cat([hidden, read], -1))
                if record is not None:
                    slot_sizes = memory.content.square().mean(1).sqrt()
                    controls = _controls(accessed.instructions)
                    record.append((memory.weights, accessed.read, accessed.instructions.add, slot_sizes, controls))
        if not features:
            return inputs.new_zeros(batch, 0, self.output.out_features), memory
        return self.output(torch.stack(features, 1)), memory


def _controls(of: Instructions) -> Float[Tensor, "b h 4"]:
    """The CONTROLS of each head; the shift is the mean of its distribution."""
    max_shift = of.shift.shape[-1] // 2
    shifts = torch.arange(-max_shift, max_shift + 1, device=of.shift.device, dtype=of.shift.dtype)
    return torch.cat([of.gate, of.strength, of.sharpen, (of.shift * shifts).sum(-1, keepdim=True)], -1)


class LSTMNetwork(TapeNetwork):
    """Layers of LSTM and nothing beside them: the baseline without an external memory."""

    def __init__(self, inputs: int, outputs: int, *, hidden: int, layers: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, inputs: Inputs) -> Logits:
        """A logit for each bit of the answer, at each step."""
        logits: Tensor = self.output(_states(self.lstm, inputs))
        return logits


class AttentionNetwork(TapeNetwork):
    """An LSTM that at each step attends to all steps up to this one, with the inputs themselves as values.

    logits = W [h_t; sum_i softmax_i(q_t' k_i / sqrt(d)) V x_i], with q = Q h and k = K h. `attention` may have another
    score and another alignment.
    """

    def __init__(
        self, inputs: int, outputs: int, *, hidden: int, layers: int = 1, attention: Attention | None = None
    ) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)
        self.attention = attention or Attention()
        self.query, self.key = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.value = nn.Linear(inputs, hidden, bias=False)
        self.output = nn.Linear(2 * hidden, outputs)

    def forward(self, inputs: Inputs) -> Logits:
        """A logit for each bit of the answer, at each step."""
        return self._attend(inputs, weights=False).logits

    def unroll(self, inputs: Inputs, *, slots: int | None = None) -> UnrolledTape:
        """The logits, and the attention of each step to the steps up to it."""
        return self._attend(inputs, weights=True)

    def _attend(self, inputs: Inputs, *, weights: bool) -> UnrolledTape:
        states = _states(self.lstm, inputs)
        allowed = mask.causal(inputs.shape[1], device=inputs.device)
        memory = self.attention.remember(self.key(states), values=self.value(inputs))
        context, attended = self.attention(self.query(states), memory, mask=allowed, weights=weights)
        logits = self.output(torch.cat([states, context], -1))
        return UnrolledTape(logits, {} if attended is None else {"attention": attended})


def _states(lstm: nn.LSTM, inputs: Inputs) -> Float[Tensor, "b t h"]:
    """The states of all steps; torch refuses sequences without steps."""
    if not inputs.shape[1]:
        return inputs.new_zeros(len(inputs), 0, lstm.hidden_size)
    states: Tensor = lstm(inputs)[0]
    return states
