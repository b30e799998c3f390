"""How far to trust attention as an explanation of one output: how sharp it is, how it moves, and whether it matters."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.arguments import checked
from regard.metrics.attention import entropy, map_variation
from regard.metrics.faithfulness import attended_effect
from regard.systems import registry
from regard.systems.config import Options
from regard.systems.system import System
from regard.viewing.view import MEASURED

SMALL_DROP = 0.05
"""Drops of log-probability below this count as none."""
WEAK_DROP = 0.25
"""Below this, little depends on the attended part, however it compares with others: without it, an output keeps more
than three quarters of its probability."""
CLEAR_RATIO = 1.5
"""Attention matters clearly where erasing the attended parts costs this many times as much as erasing random ones."""


@dataclass(frozen=True)
class Ablation:
    """What erasing the attended part of an input costs, beside a part chosen at random."""

    attended: float
    """Mean drop when the most attended part is erased."""
    random: float
    """The same for a part chosen at random: what any explanation reaches without looking."""
    unit: str
    """Which score is compared, such as the log-probability of a word."""
    method: str
    """What was erased, and what was compared."""

    @classmethod
    def from_effects(
        cls, weights: list[np.ndarray], effects: list[np.ndarray], *, unit: str, method: str
    ) -> "Ablation | None":
        """From maps of attention, and maps of the drop of each output without each part; None where all are empty."""
        found = attended_effect(weights, effects)
        return None if found is None else cls(*found, unit=unit, method=method)


@dataclass(frozen=True)
class Evidence:
    """What a system can say about the attention of one of its results."""

    weights: list[Float[np.ndarray, "_ _"]] = field(default_factory=list)
    """Maps from outputs to parts of the input, NaN where a part cannot be attended to, such as a word that is yet to be
    read; none where the model does not weigh parts."""
    parts: str = "inputs"
    """What the columns of the maps are, such as "source words"."""
    ablation: Ablation | None = None


@dataclass(frozen=True)
class Faithfulness:
    """How far to trust the attention of one output."""

    sentence: str
    """What follows from the numbers, in plain words."""
    entropy: float | None = None
    """Mean entropy of the attention of an output, in nats: 0 where all of it is on one part."""
    uniform_entropy: float | None = None
    """The entropy of attention that is spread evenly."""
    parts: str = ""
    """What is attended to, such as "source words"."""
    variation: float | None = None
    """Mean divergence between the attention of consecutive outputs: 0 where it never moves, 1 where it always does."""
    ablation: Ablation | None = None
    """Faithfulness: what erasing the attended part costs, beside a random one."""
    measured: str = ""
    """How right this model's attention is, where that was measured on a test set."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@checked
def faithfulness(model: System, given: Any, options: Options | None = None, /, **keywords: Any) -> Faithfulness:
    """Measure how far the attention of a model explains what it answers for one input.

    Options are those of the model's verb, as keywords or as an instance. The input is answered once more without some
    of its parts: by which parts, each system decides, and `Faithfulness.ablation.method` says it. All numbers are about
    this input alone.
    """
    # What was attended to is needed here, whatever else is reported.
    checked = replace(model.options(keywords, options), traces="main")
    result = model.answer([given], checked)[0]
    find = registry.entry(model.kind).evidence
    found: Evidence | None = None if find is None else find(model, given, checked, result)
    if found is None:
        return Faithfulness("This model has no attention, so there is nothing here to trust or to doubt.")
    measured = str(model.metrics.get(MEASURED, ""))
    rows = [row[~np.isnan(row)] for each in found.weights for row in np.asarray(each, dtype=np.float64)]
    rows = [row for row in rows if row.any()]
    return Faithfulness(
        sentence=_sentence(found.ablation),
        entropy=float(np.mean([entropy(row) for row in rows])) if rows else None,
        uniform_entropy=float(np.mean([np.log(len(row)) for row in rows])) if rows else None,
        parts=found.parts,
        variation=_variation(found.weights),
        ablation=found.ablation,
        measured=measured,
    )


def _variation(weights: list[Float[np.ndarray, "_ _"]]) -> float | None:
    """The mean over maps with at least two rows that attend to something."""
    maps = [np.nan_to_num(each) for each in weights]
    maps = [each for each in maps if each.any(-1).sum() > 1]
    return float(np.mean([map_variation(each) for each in maps])) if maps else None


def _sentence(ablation: Ablation | None) -> str:
    if ablation is None:
        return "Whether the attention matters could not be measured for this input; take it as a hint, not as a reason."
    attended, random = ablation.attended, ablation.random
    if max(abs(attended), abs(random)) < SMALL_DROP:
        return "Erasing what the attention points at hardly changes this output, and neither does a random part."
    if random < attended < WEAK_DROP:
        return (
            "Little depends on what the attention points at: erasing it costs more than a random part, but only "
            f"{attended:.2f} of the {ablation.unit}."
        )
    if attended >= CLEAR_RATIO * max(random, SMALL_DROP):
        times = attended / random if random > SMALL_DROP else np.inf
        than = f"{times:.1f} times as much as" if times < 100 else "far more than"
        return f"The attention matters here: erasing what it points at costs {than} erasing something at random."
    if attended > random:
        return "The attention matters somewhat here: erasing what it points at costs a little more than a random part."
    return "Do not take the attention as the reason here: erasing what it points at costs no more than a random part."
