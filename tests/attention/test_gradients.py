"""gradcheck in float64, for every score with every alignment that is declared differentiable."""

import pytest
import torch
from helpers.attention import MAKE_ALIGN, MAKE_SCORE, NUM_KEYS, NUM_QUERIES, PAIRS, inputs, make
from helpers.signatures import check_gradients
from torch import nn

from regard import attend
from regard.attention.attend import as_score

DIFFERENTIABLE = [
    (score_name, align_name)
    for score_name, align_name in PAIRS
    if as_score(MAKE_SCORE[score_name]()).differentiable
    and MAKE_ALIGN[align_name](5).differentiable
    and align_name != "hard_gumbel"  # whose gradient is by design not that of its output
]


def test_all_but_look_ups_and_hard_choices_are_checked():
    assert {score_name for score_name, _ in DIFFERENTIABLE} == set(MAKE_SCORE) - {"equality", "prefix"}
    learned = {"local_m", "local_p", "none", "ntm", "softmax", "sparsemax", "spatial", "uniform"}
    assert {name for _, name in DIFFERENTIABLE} == learned


@pytest.mark.parametrize("weights", [False, True], ids=["context", "weights"])
@pytest.mark.parametrize(("score_name", "align_name"), DIFFERENTIABLE)
def test_gradients_are_those_of_finite_differences(score_name, align_name, weights):
    made, alignment = make(score_name, align_name, torch.float64)
    query, key, value = inputs(score_name, 1, dtype=torch.float64)
    parts = [part for part in (query, key, value) if part is not None]
    learned = [*(made.parameters() if isinstance(made, nn.Module) else []), *alignment.parameters()]
    allowed = torch.rand(1, NUM_QUERIES, NUM_KEYS) > 0.3
    allowed[:, 1] = False

    def run(*leaves):
        # Parameters are leaves of the graph already; gradcheck varies them in place.
        query_, key_, value_ = leaves[:3] if query is not None else (None, *leaves[:2])
        result = attend(query_, key_, value_, score=made, align=alignment, mask=allowed, weights=weights)
        return (result.context, result.weights) if weights else result.context

    leaves = [part.requires_grad_() for part in parts] + learned
    assert check_gradients(run, leaves)
