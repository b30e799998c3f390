"""Coverage: attention that sees how much each key was attended to so far."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from regard.attention.align import softmax
from regard.attention.attend import Attended, Attention, Kernel, ScoreLike
from regard.attention.focus import Align, widen
from regard.attention.memory import Memory
from regard.errors import OptionError


@dataclass(frozen=True)
class Covered:
    """What coverage carries from query to query."""

    total: Float[Tensor, "... 1 k"]
    """c_i: the sum of the weights of each key so far."""
    align_state: Any = None
    """What the alignment itself carries."""


class Coverage(Attention):
    """Attention whose keys know how much was read from them: score(s_t, U h_i + w c_ti), c_t = sum_(t' < t) weights_t'.

    With the additive score this is v' tanh(W s_t + U h_i + w c_ti), equation 11 of See et al. 2017 (without its bias);
    with any other score, c_t enters where the projected keys do. Tu et al. 2016 (section 3.1) had the idea for
    translation; they divide c_t by a predicted fertility, or let a GRU keep it: here it is the plain sum. w begins as
    0, so that a new model looks as one without coverage does.

    `extras["overlap"]` is sum_i min(weights_ti, c_ti), which See et al. add to the loss (equation 12). Queries wait for
    each other, so they are asked one after the other, in the order of time.
    """

    def __init__(self, score: ScoreLike, align: Align = softmax, *, key_dim: int) -> None:
        super().__init__(score, align)
        if self.score.compares_codes or self.score.own_query() is not None:
            raise OptionError(f"{type(self.score).__name__} has no sequence of queries that coverage could follow.")
        keys = self.score.project_key(torch.zeros(1, key_dim))
        if not keys.is_floating_point():
            raise OptionError(
                f"Coverage enters through the features of the keys, and {type(self.score).__name__} looks at none. Use "
                "another score."
            )
        self.direction = nn.Parameter(torch.zeros(keys.shape[-1]))

    def forward(
        self,
        query: Shaped[Tensor, "... q d"] | None,
        memory: Memory,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        weights: bool = False,
        kernel: Kernel = "auto",
        state: Any = None,
        override: Float[Tensor, "... k"] | None = None,
    ) -> Attended:
        """Attend with each query in turn; the state is a `Covered`."""
        if query is None:
            raise OptionError("Coverage follows a sequence of queries; got query=None.")
        steps: list[Attended] = []
        for step in range(query.shape[-2]):
            asked = Memory(memory.keys, memory.values, _row(memory.mask, step))
            attended = self._one(
                query[..., step : step + 1, :],
                asked,
                state if not steps else steps[-1].state,
                mask=_row(mask, step),
                kernel=kernel,
                override=_row(override, step),
            )
            steps.append(attended if weights else replace(attended, weights=None))
        if not steps:
            nothing = super().forward(query, memory, mask=mask, weights=weights, kernel=kernel, override=override)
            return replace(nothing, state=state)
        return _joined(steps)

    def _one(self, query: Tensor, memory: Memory, state: Covered | None, **options: Any) -> Attended:
        keys, align_state = memory.keys, None
        if state is not None:
            align_state = state.align_state
            added = widen(state.total).mT * self.direction.to(widen(keys).dtype)
            keys = (widen(keys) + added).to(keys.dtype)
        asked = Memory(keys, memory.values, memory.mask)
        attended = super().forward(query, asked, weights=True, state=align_state, **options)
        assert attended.weights is not None  # noqa: S101 - they were asked for
        looked = widen(attended.weights)
        before = torch.zeros_like(looked) if state is None else state.total
        extras = attended.extras | {"overlap": torch.minimum(looked, before).sum(-1)}
        return replace(attended, state=Covered(before + looked, attended.state), extras=extras)


def _row(part: Tensor | None, step: int) -> Tensor | None:
    """What of a mask or an override is for one query: its row, or all of it where it is for every query."""
    if part is None or part.ndim < 2 or part.shape[-2] == 1:
        return part
    return part[..., step : step + 1, :]


def _joined(steps: list[Attended]) -> Attended:
    """One after the other as one answer, with the last state."""

    def along(dim: int, parts: list[Any]) -> Any:
        return None if parts[0] is None else torch.cat(parts, dim)

    return Attended(
        along(-2, [step.context for step in steps]),
        along(-2, [step.weights for step in steps]),
        along(-1, [step.log_prob for step in steps]),
        steps[-1].state,
        {name: along(-1, [step.extras[name] for step in steps]) for name in steps[0].extras},
    )
