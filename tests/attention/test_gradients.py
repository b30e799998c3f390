"""gradcheck in float64: of every score, of every alignment that is declared differentiable, and of every option."""

import pytest
import torch
from helpers.attention import MAKE_ALIGN, MAKE_OPTIONS, MAKE_SCORE, NUM_KEYS, NUM_QUERIES, PAIRS, inputs_for, make
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
# Each formula with one of all keys and one of a window; their gradients meet in the logits alone.
CHECKED = [(s, a, "plain") for s, a in DIFFERENTIABLE if s == "general" or a in ("softmax", "local_m")]
CHECKED += [("general", align_name, option) for align_name in ("softmax", "local_m") for option in MAKE_OPTIONS]


def test_all_but_look_ups_and_hard_choices_are_checked():
    assert {score_name for score_name, *_ in CHECKED} == set(MAKE_SCORE) - {"equality", "prefix"}
    learned = {"local_bell", "local_m", "local_p", "none", "ntm", "softmax", "sparsemax", "spatial", "uniform"}
    assert {align_name for _, align_name, _ in CHECKED} == {align_name for _, align_name in DIFFERENTIABLE} == learned


@pytest.mark.parametrize("weights", [False, True], ids=["context", "weights"])
@pytest.mark.parametrize(("score_name", "align_name", "option"), sorted(set(CHECKED)))
def test_gradients_are_those_of_finite_differences(score_name, align_name, option, weights):
    made, alignment = make(score_name, align_name, torch.float64)
    options = MAKE_OPTIONS[option](torch.float64)
    parts = [part for part in inputs_for(option, score_name, dtype=torch.float64) if part is not None]
    has_query = len(parts) == 3
    learned = [*(made.parameters() if isinstance(made, nn.Module) else []), *alignment.parameters()]
    allowed = torch.rand(NUM_QUERIES, NUM_KEYS) > 0.3
    allowed[1] = False

    def run(*leaves):
        # Parameters are leaves of the graph already; gradcheck varies them in place.
        query, key, value = leaves[:3] if has_query else (None, *leaves[:2])
        torch.manual_seed(1)  # dropout leaves out the same weights in every call
        result = attend(query, key, value, score=made, align=alignment, mask=allowed, weights=weights, **options)
        return (result.context, result.weights) if weights else result.context

    leaves = [*parts, *learned, *(part for part in options.values() if isinstance(part, torch.Tensor))]
    assert check_gradients(run, [leaf.requires_grad_() for leaf in leaves])
