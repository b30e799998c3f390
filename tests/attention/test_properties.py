"""The declared properties of each score and alignment hold, on inputs that hypothesis chooses."""

import pytest
import torch
from helpers.attention import MAKE_ALIGN, MAKE_SCORE, NUM_KEYS, NUM_QUERIES, PAIRS, QUERY_DIM, inputs, make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from regard import align, attend
from regard.attention.attend import as_score

SAMPLES = ("hard", "hard_gumbel")

every_pair = pytest.mark.parametrize(("score_name", "align_name"), PAIRS)
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32 - 1)


@st.composite
def cases(draw):
    """A seed, a scale of the inputs, how open the mask is, and whether there is a bias."""
    return (
        draw(seeds),
        draw(st.sampled_from([0.1, 1.0, 10.0])),
        draw(st.sampled_from([0.0, 0.3, 0.9, 1.0])),
        draw(st.booleans()),
    )


def drawn(score_name, align_name, case, dtype=torch.float64):
    """A score and an alignment; a query, key and value; what else `attend` is given."""
    seed, scale, openness, has_bias = case
    torch.manual_seed(seed)
    made, alignment = make(score_name, align_name, dtype)
    parts = inputs(score_name, 2, dtype=dtype)
    parts = [part if part is None or not part.is_floating_point() else part * scale for part in parts]
    options = {"score": made, "align": alignment, "mask": torch.rand(2, NUM_QUERIES, NUM_KEYS) < openness}
    if has_bias:
        options["bias"] = torch.rand(2, NUM_QUERIES, NUM_KEYS, dtype=dtype) * scale
    return parts, options


def tolerance(options, query, key, value):
    """How far two orders of the same sums may lie apart, from the size of their terms.

    The terms of a logit are at most (|query| + |key|)^2 in the projected features, products and squares alike, and the
    bias. An error of a logit is one of its weight, and a context sums the weights of all keys.
    """
    made = as_score(options["score"])
    query, key = made.project_query(made.learned_query() if query is None else query), made.project_key(key)
    largest = 1.0 + options["bias"].max().item() if "bias" in options else 1.0
    if query.is_floating_point() and key.is_floating_point():
        largest += query.shape[-1] * (query.abs().max() + key.abs().max()).square().item()
    weights = 32 * torch.finfo(value.dtype).eps * largest
    context = weights * NUM_KEYS * max(1.0, value.abs().max().item()) * (largest if made.differentiable else 1)
    return {"rtol": 0, "atol": weights}, {"rtol": 0, "atol": context}


@every_pair
@few
@given(cases())
def test_weights_are_zero_where_masked_and_sum_to_one_where_declared(score_name, align_name, case):
    (query, key, value), options = drawn(score_name, align_name, case, torch.float32)
    context, weights = attend(query, key, value, weights=True, **options)
    allowed = options["mask"]
    assert weights.isfinite().all()
    assert weights[~allowed].eq(0).all()
    rounding = 4 * NUM_KEYS * torch.finfo(torch.float32).eps
    assert ((context - weights @ value).abs() <= rounding * (weights.abs() @ value.abs())).all()
    if options["align"].normalised:
        total = weights.sum(-1)
        assert weights.ge(0).all()
        assert ((total - 1).abs().lt(1e-4) | total.eq(0)).all()
        assert total[~allowed.any(-1)].eq(0).all()
        reachable = align_name not in ("local_m", "spatial") and score_name not in ("location", "equality", "prefix")
        assert not reachable or total[allowed.any(-1)].gt(0).all()


@every_pair
@few
@given(cases())
def test_padding_never_changes_a_result(score_name, align_name, case):
    (query, key, value), options = drawn(score_name, align_name, case)
    # The length that local-p and the circle of the NTM take from the mask must be that of the source.
    options["mask"][..., -1] = True
    if align_name in SAMPLES:
        options["align"].eval()
    _, more_key, more_value = inputs(score_name, 2, num_keys=4, dtype=torch.float64)
    longer_key, longer_value = torch.cat([key, more_key], 1), torch.cat([value, more_value], 1)
    of_weights, of_context = tolerance(options, query, longer_key, longer_value)
    longer = {name: functional.pad(options[name], (0, 4)) for name in ("mask", "bias") if name in options}
    plain = attend(query, key, value, weights=True, **options)
    padded = attend(query, longer_key, longer_value, weights=True, **options | longer)
    torch.testing.assert_close(padded.context, plain.context, **of_context)
    torch.testing.assert_close(padded.weights[..., :NUM_KEYS], plain.weights, **of_weights)
    assert padded.weights[..., NUM_KEYS:].eq(0).all()


@every_pair
@few
@given(cases())
def test_a_batch_equals_its_examples_one_by_one(score_name, align_name, case):
    parts, options = drawn(score_name, align_name, case)
    options["align"].eval()
    _, of_context = tolerance(options, *parts)
    together = attend(*parts, **options)
    for b in range(2):
        one = [None if part is None else part[b : b + 1] for part in parts]
        of_one = {name: options[name][b : b + 1] for name in ("mask", "bias") if name in options}
        alone = attend(*one, **options | of_one)
        torch.testing.assert_close(together.context[b : b + 1], alone.context, **of_context)


@pytest.mark.parametrize(
    ("score_name", "align_name"),
    [
        (s, a)
        for s, a in PAIRS
        if as_score(MAKE_SCORE[s]()).position_free
        and MAKE_ALIGN[a](QUERY_DIM).equivariant
        and a not in SAMPLES
        # Of several keys that match equally well, the order says which is taken.
        and not (a == "hard_most_likely" and s in ("equality", "prefix"))
    ],
)
@few
@given(cases())
def test_permuting_the_keys_permutes_the_weights_where_declared(score_name, align_name, case):
    (query, key, value), options = drawn(score_name, align_name, case)
    of_weights, of_context = tolerance(options, query, key, value)
    order = torch.randperm(NUM_KEYS)
    plain = attend(query, key, value, weights=True, **options)
    of_order = {name: options[name][..., order] for name in ("mask", "bias") if name in options}
    permuted = attend(query, key[:, order], value[:, order], weights=True, **options | of_order)
    torch.testing.assert_close(permuted.weights, plain.weights[..., order], **of_weights)
    torch.testing.assert_close(permuted.context, plain.context, **of_context)


@pytest.mark.parametrize("align_name", [name for name in MAKE_ALIGN if not MAKE_ALIGN[name](QUERY_DIM).equivariant])
def test_alignments_that_declare_positions_do_depend_on_them(align_name):
    made, alignment = make("dot", align_name)
    query, key, value = inputs("dot", 2)
    order = torch.arange(NUM_KEYS).flip(0)
    plain = attend(query, key, value, score=made, align=alignment).context
    flipped = attend(query, key[:, order], value[:, order], score=made, align=alignment).context
    assert not torch.allclose(plain, flipped)


def test_every_alignment_has_a_name_and_is_in_the_catalogue():
    assert set(align.ALIGNMENTS) <= set(MAKE_ALIGN)
    assert all(issubclass(made, align.Align) for made in align.ALIGNMENTS.values())
