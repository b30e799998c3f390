"""Alignments over all keys, and the list of all alignments: from logits to a focus.

The local ones (local-m, local-p, spatial) are in local.py, those of the neural Turing machine in addressing.py.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention.addressing import Addressing
from regard.attention.focus import Align, Focus, Logits, Mask, Window, masked_softmax
from regard.attention.local import LocalMonotonic, LocalPredictive, Spatial
from regard.errors import OptionError

__all__ = [
    "ALIGNMENTS",
    "Addressing",
    "Align",
    "Hard",
    "LocalMonotonic",
    "LocalPredictive",
    "Normalised",
    "Softmax",
    "Sparsemax",
    "Spatial",
    "Uniform",
    "Unnormalised",
    "none",
    "normalised",
    "softmax",
    "sparsemax",
    "uniform",
]


class Softmax(Align):
    """Global soft attention: exp(logit_i) / sum_j exp(logit_j) (Bahdanau et al. 2015, section 3.1)."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """Masked softmax over all keys."""
        return Focus(masked_softmax(logits, allowed))


class Unnormalised(Align):
    """Weights are the scores themselves: Similarity(q, k, v) = sum_i Similarity(q, k_i) v_i.

    The database look-up of the lectures: a query that matches two rows reads the sum of both.
    """

    normalised = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """The scores, 0 where masked (and where a score says that a key is out of reach)."""
        closed = logits == -math.inf
        return Focus(logits.masked_fill(closed if allowed is None else closed | ~allowed, 0))


class Uniform(Align):
    """Equal weights for all that may be attended to, whatever the scores: the control that attention must beat."""

    uses_scores = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """1 / n."""
        return Focus(masked_softmax(torch.zeros_like(logits), allowed))


class Sparsemax(Align):
    """The nearest point of the simplex, so that far-off keys get exactly 0 (Martins and Astudillo 2016).

    Needs the package entmax: pip install 'regard[sparse]'.
    """

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """Masked sparsemax over all keys."""
        try:
            from entmax import sparsemax
        except ImportError as error:
            raise OptionError("Sparsemax needs the package entmax: pip install 'regard[sparse]'.") from error
        closed = logits == -math.inf
        closed = closed if allowed is None else closed | ~allowed
        # Sparsemax does not change when all logits move together, and a key 2 below the best gets exactly 0.
        best = logits.detach().masked_fill(closed, -math.inf).amax(-1, keepdim=True)
        below = (logits - torch.where(best > -math.inf, best, 0)).masked_fill(closed, -2)
        weights: Tensor = sparsemax(below, dim=-1)
        return Focus(weights.masked_fill(closed, 0))


class Hard(Align):
    """One key per query, read by gather: sampled from the softmax in training, the most likely one in evaluation.

    A sampled focus carries its log-probability, for REINFORCE (Xu et al. 2015, section 4.1), and in extras the entropy
    of the distribution, for a bonus on it. The most likely key needs neither a softmax nor a sum over values. `sample`
    fixes the choice whatever the mode. `generator` makes sampling repeatable.

    With `temperature`, training is straight-through Gumbel-softmax instead (Jang et al. 2017): one-hot weights forward,
    the gradient of the tempered softmax backward.

    While `soft` is True, training reads with the whole softmax, as soft attention does: a warm start, since choices
    made before anything is known earn no reward to learn from. As a tensor, it says so for each row of the batch: Xu et
    al. (section 4.1) toss a coin for each. A soft row has log-probability 0. Evaluation is hard all the same.
    """

    def __init__(
        self,
        *,
        sample: bool | None = None,
        temperature: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if temperature is not None and temperature <= 0:
            raise OptionError(f"The temperature of Gumbel-softmax must be above 0; got {temperature}.")
        self.sample, self.temperature, self.generator = sample, temperature, generator
        self.soft: bool | Tensor = False
        self.differentiable = temperature is not None

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """The chosen index, or one-hot weights with a gradient."""
        if self.training and self.soft is True:
            return Focus(masked_softmax(logits, allowed))
        is_sampled = self.training if self.sample is None else self.sample
        if allowed is None and not is_sampled:
            index = logits.detach().argmax(-1)
            return Focus(index=index, always=True, extras={"index": index})
        if allowed is not None:
            logits = logits.masked_fill(~allowed, -math.inf)
        best, index = logits.detach().max(-1)
        is_open = best > -math.inf
        if not is_sampled:
            index = index.masked_fill(~is_open, -1)
            return Focus(index=index, extras={"index": index})

        logits = logits.masked_fill(~is_open.unsqueeze(-1), 0)
        # argmax(logit + Gumbel noise) is a draw from the softmax, and -log of an exponential draw is Gumbel noise.
        noise = -torch.empty_like(logits).exponential_(generator=self.generator).log()
        index = (logits.detach() + noise).argmax(-1)
        log_weights = functional.log_softmax(logits, dim=-1)
        log_prob = log_weights.gather(-1, index.unsqueeze(-1)).squeeze(-1).masked_fill(~is_open, 0)
        possible = log_weights.masked_fill(log_weights == -math.inf, 0)
        entropy = -(log_weights.exp() * possible).sum(-1).masked_fill(~is_open, 0)
        chosen = index.masked_fill(~is_open, -1)
        extras = {"index": chosen, "entropy": entropy}
        if self.training and isinstance(self.soft, Tensor):
            is_soft = self.soft.view(-1, *[1] * (log_prob.ndim - 1)).expand_as(log_prob)
            one_hot = torch.zeros_like(log_weights).scatter(-1, index.unsqueeze(-1), 1)
            mixed = torch.where(is_soft.unsqueeze(-1), log_weights.exp(), one_hot)
            mixed = mixed.masked_fill(~is_open.unsqueeze(-1), 0)
            return Focus(mixed, log_prob=log_prob.masked_fill(is_soft, 0), extras=extras)
        if self.temperature is None:
            return Focus(index=chosen, log_prob=log_prob, extras=extras)

        soft = torch.softmax((logits + noise) / self.temperature, dim=-1)
        one_hot = torch.zeros_like(soft).scatter(-1, index.unsqueeze(-1), 1)
        straight_through = one_hot + (soft - soft.detach())
        return Focus(straight_through.masked_fill(~is_open.unsqueeze(-1), 0), log_prob=log_prob, extras=extras)


class Normalised(Align):
    """Scores over their sum: the average of what matched. For scores that are never negative, such as look-ups."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """score_i / sum_j score_j, and 0 where nothing matches."""
        scores = logits if allowed is None else logits.masked_fill(~allowed, 0)
        if (scores.detach() < 0).any():
            raise OptionError(
                f"align.normalised averages scores that are zero or more; the smallest here is "
                f"{scores.min().item():.4g}. Use align.softmax for scores of either sign."
            )
        total = scores.sum(-1, keepdim=True)
        return Focus(scores / total.masked_fill(total == 0, 1))


softmax = Softmax()
none = Unnormalised()
normalised = Normalised()
sparsemax = Sparsemax()
uniform = Uniform()

ALIGNMENTS: dict[str, type[Align]] = {
    "hard": Hard,
    "local_m": LocalMonotonic,
    "local_p": LocalPredictive,
    "none": Unnormalised,
    "normalised": Normalised,
    "ntm": Addressing,
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "spatial": Spatial,
    "uniform": Uniform,
}
