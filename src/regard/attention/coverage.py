"""Coverage: attention that takes into account how much each key has been attended to so far."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from regard.attention.align import softmax
from regard.attention.attend import AlignLike, Attention, ScoreLike
from regard.attention.memory import Attended, Memory
from regard.errors import OptionError
from regard.kernels.numerics import widen


@dataclass(frozen=True)
class CoverageState:
    """The state of coverage between queries."""

    total: Float[Tensor, "... 1 k"]
    """c_i: the sum of the attention weights of each key so far."""
    align_state: Any = None
    """The state of the alignment."""


class Coverage(Attention):
    """Attention with coverage: score(s_t, U h_i + w c_ti), where c_t = sum_(t' < t) weights_t'.

    With the additive score this is v' tanh(W s_t + U h_i + w c_ti), equation 11 of See et al. 2017 (without its bias);
    with any other score, w c_t is added to the projected keys. Tu et al. 2016 (section 3.1) proposed coverage for
    translation; they divide c_t by a predicted fertility, or update it with a GRU. Here it is the plain sum. w is
    initialised to 0, so that a new model behaves like one without coverage.

    `extras["overlap"]` is sum_i min(weights_ti, c_ti), which See et al. add to the loss (equation 12). Each query
    depends on the previous ones, so queries are processed one after the other.
    """

    def __init__(self, score: ScoreLike, align: AlignLike = softmax, *, key_dim: int, dropout: float = 0.0) -> None:
        super().__init__(score, align, dropout=dropout)
        if self.score.compares_codes or self.score.learned_query() is not None:
            raise OptionError(
                f"Coverage needs a sequence of queries, which {type(self.score).__name__} does not have. Use another "
                "score."
            )
        keys = self.score.project_key(torch.zeros(1, key_dim))
        if not keys.is_floating_point():
            raise OptionError(
                f"Coverage is added to the features of the keys, which {type(self.score).__name__} ignores. Use "
                "another score."
            )
        self.direction = nn.Parameter(torch.zeros(keys.shape[-1]))

    def attend(
        self,
        query: Shaped[Tensor, "... q d"] | None,
        memory: Memory,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
        weights: bool = False,
        state: Any = None,
        override: Float[Tensor, "... k"] | None = None,
        **options: Any,
    ) -> Attended:
        """Attend with each query in turn; the state is a `CoverageState`. The arguments are those of `Attention`."""
        assert query is not None  # noqa: S101 - `check_call` refuses None, since the score learns no queries
        steps: list[Attended] = []
        for step in range(query.shape[-2]):
            attended = self._step(
                query[..., step : step + 1, :],
                Memory(memory.keys, memory.values, _row(memory.mask, step)),
                state if not steps else steps[-1].state,
                mask=_row(mask, step),
                bias=_row(bias, step),
                override=_row(override, step),
                **options,
            )
            steps.append(attended if weights else replace(attended, weights=None))
        if not steps:
            empty = super().attend(query, memory, mask=mask, weights=weights, override=override, **options)
            return replace(empty, state=state)
        return _joined(steps)

    def _step(self, query: Tensor, memory: Memory, state: CoverageState | None, **options: Any) -> Attended:
        keys, align_state = memory.keys, None
        if state is not None:
            align_state = state.align_state
            added = widen(state.total).mT * self.direction.to(widen(keys).dtype)
            keys = (widen(keys) + added).to(keys.dtype)
        covered = Memory(keys, memory.values, memory.mask)
        attended = super().attend(query, covered, weights=True, state=align_state, **options)
        assert attended.weights is not None  # noqa: S101 - they were asked for
        weights = widen(attended.weights)
        before = torch.zeros_like(weights) if state is None else state.total
        extras = attended.extras | {"overlap": torch.minimum(weights, before).sum(-1)}
        return replace(attended, state=CoverageState(before + weights, attended.state), extras=extras)


def _row(part: Tensor | None, step: int) -> Tensor | None:
    """Return the row of one query in a mask, bias or override; all of it if it is the same for every query."""
    if part is None or part.ndim < 2 or part.shape[-2] == 1:
        return part
    return part[..., step : step + 1, :]


def _joined(steps: list[Attended]) -> Attended:
    """Join the results of consecutive steps into one, with the last state."""

    def along(dim: int, parts: list[Any]) -> Any:
        return None if parts[0] is None else torch.cat(parts, dim)

    return Attended(
        along(-2, [step.context for step in steps]),
        along(-2, [step.weights for step in steps]),
        along(-1, [step.log_prob for step in steps]),
        steps[-1].state,
        {name: along(-1, [step.extras[name] for step in steps]) for name in steps[0].extras},
    )
