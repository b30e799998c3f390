"""Controllers of a neural Turing machine: what turns the input and what was read into features (Graves et al. 2014).

The part of a controller that depends on the input alone is computed for all steps at once (`project`), so that a step
only adds what depends on the step before.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.cells import lstm
from regard.kernels.hoisted import Hoisted

State = tuple[Float[Tensor, "b h"], ...]
FORGET_BIAS = -2.0
"""Added to the initial biases of the forget gates. A controller that forgets quickly learns to use the memory; one that
retains state memorises short sequences first, and may never get further."""


class Controller(nn.Module):
    """Base class: features from the projected input, what was read, and the controller's own state."""

    def __init__(self, inputs: int, read: int, hidden: int, *, gates: int, recurrent: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.input = nn.Linear(inputs, gates * hidden)
        self.inside = Hoisted(recurrent + read, gates * hidden, bias=False)

    def project(self, inputs: Float[Tensor, "b t c"]) -> Float[Tensor, "t b g"]:
        """The part of the gates that comes from the inputs, for all steps at once."""
        projected: Tensor = self.input(inputs.transpose(0, 1))
        return projected

    def start(self, batch: int) -> State:
        """The state before the first step."""
        raise TypeError(f"{type(self).__name__} does not define start(batch).")

    def forward(
        self, projected: Float[Tensor, "b g"], read: Float[Tensor, "b r"], state: State
    ) -> tuple[Float[Tensor, "b h"], State]:
        """One step: the features and the next state."""
        raise TypeError(f"{type(self).__name__} does not define forward(projected, read, state).")


class FeedForwardController(Controller):
    """tanh(W x_t + U r_(t-1) + b): everything that it remembers is in the memory."""

    def __init__(self, inputs: int, read: int, hidden: int) -> None:
        super().__init__(inputs, read, hidden, gates=1, recurrent=0)

    def start(self, batch: int) -> State:
        """No state."""
        return ()

    def forward(
        self, projected: Float[Tensor, "b g"], read: Float[Tensor, "b r"], state: State
    ) -> tuple[Float[Tensor, "b h"], State]:
        """One step."""
        return torch.tanh(projected + self.inside(read)), state


class LSTMController(Controller):
    """Long short-term memory over the input and what was read, with a memory of its own beside the external one."""

    def __init__(self, inputs: int, read: int, hidden: int) -> None:
        super().__init__(inputs, read, hidden, gates=4, recurrent=hidden)
        with torch.no_grad():
            self.input.bias[hidden : 2 * hidden] += FORGET_BIAS

    def start(self, batch: int) -> State:
        """Zeros."""
        zeros = self.input.weight.new_zeros(batch, self.hidden)
        return zeros, zeros

    def forward(
        self, projected: Float[Tensor, "b g"], read: Float[Tensor, "b r"], state: State
    ) -> tuple[Float[Tensor, "b h"], State]:
        """One step."""
        hidden, cell = state
        state = lstm(projected, self.inside(torch.cat([hidden, read], -1)), cell)
        return state[0], state


CONTROLLERS: dict[str, type[FeedForwardController] | type[LSTMController]] = {
    "feedforward": FeedForwardController,
    "lstm": LSTMController,
}
"""Every controller by its name."""
