"""Alignments over all keys, and the table of all alignments.

local.py has the local ones (local-m, local-p, spatial), addressing.py that of the neural Turing machine. A plain
function (logits, mask) -> weights serves as an alignment too.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.attention.addressing import Addressing
from regard.attention.interfaces import Align, Focus, Mask, Soft, Window, masked_softmax, shared
from regard.attention.local import LocalMonotonic, LocalPredictive, Spatial
from regard.errors import OptionError, ShapeError
from regard.extras import require

Logits = Float[Tensor, "... q k"]

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
    """Soft attention over all keys: exp(logit_i) / sum_j exp(logit_j) (Bahdanau et al. 2015, section 3.1)."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute the softmax over the allowed keys."""
        return Focus(masked_softmax(logits, allowed))


class Unnormalised(Align):
    """The scores themselves as weights: context = sum_i score(q, k_i) v_i.

    With `score.equality` this is a database look-up: a query that matches two rows reads the sum of both.
    """

    normalised = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return the scores, with 0 for masked keys and for scores of minus infinity."""
        closed = logits == -math.inf
        return Focus(logits.masked_fill(closed if allowed is None else closed | ~allowed, 0))


class Uniform(Align):
    """Equal weights for all allowed keys, independent of the scores: a baseline for learned attention."""

    uses_scores = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return 1 / n for each of the n allowed keys."""
        return Focus(masked_softmax(torch.zeros_like(logits), allowed))


class Sparsemax(Align):
    """Projection of the logits onto the simplex, which gives most keys exactly 0 (Martins and Astudillo 2016).

    Requires the package entmax: pip install 'regard[sparse]'.
    """

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute sparsemax over the allowed keys."""
        sparsemax = require("Sparsemax", "entmax").sparsemax
        closed = logits == -math.inf
        closed = closed if allowed is None else closed | ~allowed
        # Sparsemax is invariant to adding a constant to all logits, and a key 2 below the best gets exactly 0.
        best = logits.detach().masked_fill(closed, -math.inf).amax(-1, keepdim=True)
        below = (logits - torch.where(best > -math.inf, best, 0)).masked_fill(closed, -2)
        weights: Tensor = sparsemax(below, dim=-1)
        return Focus(weights.masked_fill(closed, 0))


class Hard(Align):
    """Hard attention: one key per query, sampled from the softmax in training, the most likely one in evaluation.

    A sampled focus has a log-probability, for REINFORCE (Xu et al. 2015, section 4.1), and extras["entropy"], the
    entropy of the distribution, for an entropy bonus. The most likely key requires neither a softmax nor a sum over
    values. `sample=True` or `sample=False` overrides the choice by mode. `generator` makes sampling reproducible.

    With `temperature`, training uses straight-through Gumbel-softmax (Jang et al. 2017): one-hot weights in the forward
    pass, the gradient of the tempered softmax in the backward pass.

    A call with `soft=True` reads with the whole softmax in training mode, as soft attention does: a warm start, since
    early random choices earn too little reward to learn from. `soft` may be a bool tensor (b,), one entry per row of
    the batch: Xu et al. (section 4.1) decide for each row at random. A soft row has log-probability 0. Evaluation is
    always hard.
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
        self.differentiable = temperature is not None

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Choose a key for each query, as an index or as one-hot weights with a gradient."""
        if self.training and soft is True:
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
        if self.training and isinstance(soft, Tensor):
            if soft.shape != log_prob.shape[:1]:
                raise ShapeError(
                    f"`soft` must be a bool or a bool tensor ({log_prob.shape[0]},), one entry per row of the batch; "
                    f"got shape {tuple(soft.shape)}."
                )
            is_soft = soft.view(-1, *[1] * (log_prob.ndim - 1)).expand_as(log_prob)
            one_hot = torch.zeros_like(log_weights).scatter(-1, index.unsqueeze(-1), 1)
            mixed = torch.where(is_soft.unsqueeze(-1), log_weights.exp(), one_hot)
            mixed = mixed.masked_fill(~is_open.unsqueeze(-1), 0)
            return Focus(mixed, log_prob=log_prob.masked_fill(is_soft, 0), extras=extras)
        if self.temperature is None:
            return Focus(index=chosen, log_prob=log_prob, extras=extras)

        tempered = torch.softmax((logits + noise) / self.temperature, dim=-1)
        one_hot = torch.zeros_like(tempered).scatter(-1, index.unsqueeze(-1), 1)
        straight_through = one_hot + (tempered - tempered.detach())
        return Focus(straight_through.masked_fill(~is_open.unsqueeze(-1), 0), log_prob=log_prob, extras=extras)


class Normalised(Align):
    """Scores divided by their sum, for scores that are never negative, such as look-ups: the mean of the matches."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return score_i / sum_j score_j, and 0 where nothing matches."""
        scores = logits if allowed is None else logits.masked_fill(~allowed, 0)
        if scores.device.type != "meta" and (scores.detach() < 0).any():
            raise OptionError(
                "align.normalised takes scores that are 0 or more; the smallest here is "
                f"{scores.min().item():.4g}. Use align.softmax for scores of either sign."
            )
        total = scores.sum(-1, keepdim=True)
        return Focus(scores / total.masked_fill(total == 0, 1))


softmax = shared(Softmax())
none = shared(Unnormalised())
normalised = shared(Normalised())
sparsemax = shared(Sparsemax())
uniform = shared(Uniform())

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
