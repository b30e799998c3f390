"""Search with a decoder of torch: its rules are computed in NumPy on a CPU, and in torch on a GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.kernels.threads import threads_for
from regard.search.decode import decode
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.log_probs import MIN_TEMPERATURE, ArrayLogProbs
from regard.search.options import Search
from regard.search.steps import Predicted


@torch.no_grad()
def search(
    decoder: Decoder, state: Any, rules: Rules, options: Search, *, num_inputs: int, device: torch.device | str
) -> list[list[Hypothesis]]:
    """Decode from a state and return the outputs of each input, as `decode` does.

    `state` is that of `decoder.start(encoded)`, or any other state of the decoder; `num_inputs` is the number of inputs
    in its batch and `device` where its tensors are.
    """
    parameters = sum(map(torch.numel, decoder.parameters()))
    with threads_for(num_inputs * options.num_hypotheses * parameters):
        return decode(DecoderSteps(decoder, device), state, rules, options, num_inputs=num_inputs)


class DecoderSteps:
    """A decoder as search uses it, with lists of numbers for tokens and rows."""

    def __init__(self, decoder: Decoder, device: torch.device | str) -> None:
        self.decoder, self.device = decoder, torch.device(device)

    @torch.no_grad()
    def step(self, tokens: Sequence[int], state: Any) -> Predicted:
        """Read the last token of each hypothesis, and predict the next."""
        step = self.decoder.step(self._numbers(tokens), state)
        logits, attended = step.logits.detach().float(), step.attended
        weights = None if attended is None or attended.weights is None else attended.weights[:, 0]
        log_probs = (
            ArrayLogProbs.of_logits(logits.numpy()) if logits.device.type == "cpu" else TensorLogProbs.of_logits(logits)
        )
        return Predicted(log_probs, step.state, weights)

    def select(self, state: Any, rows: Sequence[int], *, same_inputs: bool = False) -> Any:
        """The rows of a state in this order."""
        return select(state, self._numbers(rows), same_inputs=same_inputs)

    def source_mask(self, state: Any) -> Bool[np.ndarray, "b n"] | None:
        """Which source positions exist; None if all of them do."""
        mask = self.decoder.source_mask(state)
        return None if mask is None else mask.cpu().numpy()

    def stack(self, weights: Sequence[Any]) -> Float[np.ndarray, "m n"]:
        """Rows of attention weights as one array."""
        stacked: Float[np.ndarray, "m n"] = torch.stack(list(weights)).detach().float().cpu().numpy()
        return stacked

    def random(self, seed: int | None) -> np.random.Generator:
        """What samples are drawn with; without a seed, torch's global random state decides."""
        return np.random.default_rng(int(torch.randint(2**63 - 1, ())) if seed is None else seed)

    def _numbers(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)


class TensorLogProbs:
    """`LogProbs` in torch, for devices from which the logits of every step would be slow to copy."""

    def __init__(self, values: Float[Tensor, "r y"]) -> None:
        self.values = values

    @classmethod
    def of_logits(cls, logits: Float[Tensor, "r y"]) -> "TensorLogProbs":
        """Normalise logits, which are not changed."""
        return cls(logits.log_softmax(-1))

    @property
    def width(self) -> int:
        """The number of tokens."""
        return self.values.shape[-1]

    def at(self, rows: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """The log-probability of one token of each of these rows."""
        found: list[float] = self.values[self._on_device(rows), self._on_device(tokens)].tolist()
        return found

    def forbid(self, tokens: Sequence[int], row: int | None = None) -> None:
        """Make these tokens impossible, in all rows or in one."""
        (self.values if row is None else self.values[row : row + 1])[:, self._on_device(tokens)] = -torch.inf

    def demand(self, rows: Sequence[int], tokens: Sequence[int], values: Sequence[float]) -> None:
        """Make all tokens of each of these rows impossible but one, whose log-probability is given."""
        places = self._on_device(rows)
        self.values[places] = -torch.inf
        self.values[places, self._on_device(tokens)] = self.values.new_tensor(values)

    def largest(self, scores: Sequence[float], size: int, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """The best extensions of the rows of each input."""
        table = (self.values + self.values.new_tensor(scores).unsqueeze(1)).view(-1, size * self.width)
        values, places = table.topk(min(count, table.shape[1]))
        return values.tolist(), places.tolist()

    def most_likely(self) -> list[int]:
        """The most likely token of each row."""
        found: list[int] = self.values.argmax(-1).tolist()
        return found

    def draw(self, uniform: Float[np.ndarray, "r"], temperature: float, top_k: int, top_p: float) -> list[int]:
        """A token of each row by a number from 0 to 1."""
        logits = _truncated(self.values.double() / max(temperature, MIN_TEMPERATURE), top_k, top_p)
        total = (logits - logits.amax(-1, keepdim=True)).exp().cumsum(-1)
        below = total <= torch.from_numpy(uniform).to(total).unsqueeze(1) * total[:, -1:]
        found: list[int] = torch.where(total[:, -1].isnan(), self.values.argmax(-1), below.sum(-1)).tolist()
        return found

    def _on_device(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.values.device)


def _truncated(logits: Float[Tensor, "r y"], top_k: int, top_p: float) -> Float[Tensor, "r y"]:
    """Set the logits of all but the most likely tokens to minus infinity."""
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p < 1:
        ranked, order = logits.softmax(-1).sort(descending=True, stable=True)
        # A token is kept if the more likely ones do not add up to top_p already.
        beyond = ranked.cumsum(-1) - ranked >= top_p
        logits = logits.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return logits
