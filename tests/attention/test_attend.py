"""attend as a whole: against torch, on every path, under every mask, in every precision."""

import copy
import math

import pytest
import torch
from catalogue import KEY_DIM, MAKE_ALIGN, MAKE_SCORE, NUM_KEYS, NUM_QUERIES, PAIRS, QUERY_DIM, VALUE_DIM, inputs, make
from torch import nn
from torch.nn import functional

from regard import Attended, Attention, align, attend, mask, score


def test_the_default_is_torchs_scaled_dot_product_attention():
    query, key, value = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7), torch.randn(2, 3, 11, 7)
    expected = functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(attend(query, key, value).context, expected)
    torch.testing.assert_close(attend(query, key, value, weights=True).context, expected)
    torch.testing.assert_close(attend(query, key, value, kernel="reference").context, expected)


def test_without_a_value_the_keys_are_read():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    torch.testing.assert_close(attend(query, key).context, attend(query, key, key).context)


def test_two_names_unpack_and_weights_come_only_when_asked_for():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    context, weights = attend(query, key, weights=True)
    torch.testing.assert_close(context, weights @ key)
    assert attend(query, key).weights is None
    assert isinstance(attend(query, key), Attended)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("name", MAKE_SCORE)
def test_any_number_of_leading_axes(name, lead):
    query, key, value = inputs(name, *lead)
    made = MAKE_SCORE[name]()
    result = attend(query, key, value, score=made, weights=True)
    assert result.context.shape == (*lead, NUM_QUERIES, VALUE_DIM)
    assert result.weights.shape == (*lead, NUM_QUERIES, NUM_KEYS)
    flat = [None if part is None else part.reshape(-1, *part.shape[-2:]) for part in (query, key, value)]
    for index in range(flat[1].shape[0]):
        one = attend(*(None if part is None else part[index] for part in flat), score=made)
        torch.testing.assert_close(
            one.context, result.context.reshape(-1, NUM_QUERIES, VALUE_DIM)[index], rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize("name", sorted(set(MAKE_SCORE) - {"equality", "prefix"}))
def test_fused_and_lean_paths_equal_the_reference_with_gradients(name, masked, device):
    made, _ = make(name, "softmax")
    parts = [part for part in inputs(name, 2, device=device) if part is not None]
    allowed = torch.rand(2, NUM_QUERIES, NUM_KEYS, device=device) > 0.4 if masked else None
    upstream = torch.randn(2, NUM_QUERIES, VALUE_DIM, device=device)

    def run(dtype, **options):
        learns = isinstance(made, nn.Module)
        typed = copy.deepcopy(made).to(device, dtype) if learns else made
        leaves = [part.detach().to(dtype).requires_grad_() for part in parts]
        query, key, value = leaves if len(leaves) == 3 else (None, *leaves)
        context = attend(query, key, value, score=typed, mask=allowed, **options).context
        leaves += list(typed.parameters()) if learns else []
        gradients = torch.autograd.grad(context, leaves, upstream.to(dtype), allow_unused=True)
        return [context.double(), *(None if g is None else g.double() for g in gradients)]

    exact = run(torch.float64, kernel="reference")
    for weights in (False, True):
        for ours, theirs in zip(run(torch.float32, weights=weights), exact, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("score_name", "align_name"), PAIRS)
def test_a_row_with_nothing_to_attend_to_gives_zeros_and_zero_gradients(score_name, align_name, weights, device):
    made, alignment = (
        part.to(device) if isinstance(part, nn.Module) else part for part in make(score_name, align_name)
    )
    query, key, value = inputs(score_name, 2, device=device)
    leaves = [part.requires_grad_() for part in (query, key, value) if part is not None and part.is_floating_point()]
    closed = torch.ones(2, NUM_QUERIES, NUM_KEYS, dtype=torch.bool, device=device)
    closed[:, 1] = False
    result = attend(query, key, value, score=made, align=alignment, mask=closed, weights=weights)
    assert result.context[:, 1].eq(0).all()
    assert result.context.isfinite().all()
    if weights:
        assert result.weights[:, 1].eq(0).all()
    if result.log_prob is not None:
        assert result.log_prob[:, 1].eq(0).all()
    (result.context[:, 1].sum() * 3).backward()
    learned = list(made.parameters()) if isinstance(made, nn.Module) else []
    for leaf in leaves + learned:
        assert leaf.grad is None or leaf.grad.eq(0).all()


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_a_memory_without_keys_reads_zeros(kernel):
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 0, 5), torch.randn(2, 0, 7)
    for made in (score.scaled_dot, score.Additive(5, 5, 3)):
        for alignment in (align.softmax, align.Hard(), align.LocalMonotonic(2), align.sparsemax):
            result = attend(query, key, value, score=made, align=alignment, weights=True, kernel=kernel)
            assert result.weights.shape == (2, 3, 0)
            assert result.context.shape == (2, 3, 7)
            assert result.context.eq(0).all()
    assert attend(query, key, value).context.eq(0).all()
    assert attend(None, key, value, score=score.Context(3, 5), kernel=kernel).context.eq(0).all()
    assert attend(query, key, value, align=align.Hard(), kernel=kernel).log_prob.eq(0).all()


@pytest.mark.parametrize("weights", [False, True], ids=["context", "weights"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", sorted(set(MAKE_SCORE) - {"equality", "prefix"}))
def test_half_precision_is_within_its_rounding(name, dtype, weights, device):
    """Sums are in float32, so that rounded inputs give a result within a few units of that rounding."""
    made, _ = make(name, "softmax", dtype)
    made = made.to(device) if isinstance(made, nn.Module) else made
    query, key, value = inputs(name, 2, dtype=dtype, device=device)
    half = attend(query, key, value, score=made, weights=weights)
    made = made.double() if isinstance(made, nn.Module) else made
    wide = [None if part is None else part.double() for part in (query, key, value)]
    full = attend(*wide, score=made, weights=weights)
    bound = 16 * torch.finfo(dtype).eps
    assert half.context.dtype == dtype
    torch.testing.assert_close(half.context.double(), full.context, rtol=bound, atol=bound)
    if weights:
        assert half.weights.dtype == dtype
        torch.testing.assert_close(half.weights.double(), full.weights, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["additive", "general", "mlp", "scaled_dot"])
def test_autocast_keeps_scores_and_sums_in_float32(name):
    made = MAKE_SCORE[name]()
    query, key, value = inputs(name, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = attend(query, key, value, score=made, weights=True)
    over = attend(query, key, value, score=made, weights=True)
    assert under.weights.dtype == torch.float32
    torch.testing.assert_close(under.weights, over.weights, rtol=0.05, atol=0.02)
    # Sums of bfloat16 weights would miss 1 by more than this.
    torch.testing.assert_close(under.weights.sum(-1), torch.ones(2, NUM_QUERIES), rtol=0, atol=1e-5)


@pytest.mark.parametrize("weights", [False, True], ids=["fused", "weights"])
@pytest.mark.parametrize("size", [1e2, 1e9, 1e18])
@pytest.mark.parametrize("name", ["dot", "scaled_dot", "general", "cosine", "additive", "concat", "mlp", "location"])
def test_extreme_inputs_do_not_give_nan(name, size, weights, device):
    made = MAKE_SCORE[name]().to(device)
    query, key, value = inputs(name, 2, device=device)
    query, key = (query * size).requires_grad_(), (key * size).requires_grad_()
    context = attend(query, key, value, score=made, weights=weights).context
    context.sum().backward()
    assert context.isfinite().all()
    assert not query.grad.isnan().any()
    assert name == "location" or not key.grad.isnan().any()


@pytest.mark.parametrize("align_name", sorted(set(MAKE_ALIGN) - {"normalised"}))
def test_extreme_logits_do_not_give_nan(align_name):
    alignment = MAKE_ALIGN[align_name](QUERY_DIM)
    logits = torch.tensor([1e4, -1e4, 0.0, 1e30, -1e30, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expand(NUM_QUERIES, NUM_KEYS)
    logits = logits.clone().requires_grad_()
    query, value = torch.randn(NUM_QUERIES, QUERY_DIM), torch.eye(NUM_KEYS)

    def given(query, key):
        if key.ndim > query.ndim - 1 and key.shape[-2] != NUM_KEYS:
            return logits[:, None, : key.shape[-2]]
        return logits

    context = attend(query, torch.randn(NUM_KEYS, QUERY_DIM), value, score=given, align=alignment).context
    assert not context.isnan().any()
    context.sum().backward() if context.requires_grad else None
    assert logits.grad is None or not logits.grad.isnan().any()


def test_the_lectures_apple_attends_to_the_words_before_it():
    """The lecture's numbers: a = (0.1, 0.1, 0.5, 0.1, 0.2) over the previous words, and v_apple read with it."""
    words = ["she", "is", "eating", "a", "green", "apple"]
    wanted = torch.tensor([0.1, 0.1, 0.5, 0.1, 0.2])
    key = torch.eye(6)
    query = torch.zeros(6, 6)
    query[5, :5] = wanted.log()
    value = torch.randn(6, 7)
    allowed = mask.causal(6, strict=True)
    context, weights = attend(query, key, value, score=score.dot, mask=allowed, weights=True)
    apple = words.index("apple")
    torch.testing.assert_close(weights[apple], torch.tensor([0.1, 0.1, 0.5, 0.1, 0.2, 0.0]))
    torch.testing.assert_close(context[apple], wanted @ value[:5])
    assert context[0].eq(0).all(), "the first word has nothing before it"


def test_attention_projects_the_keys_once_and_serves_many_queries():
    attention = Attention(score.Additive(5, 7, 13))
    states, lengths = torch.randn(2, 11, 7), torch.tensor([11, 4])
    calls = []
    attention.score.key_layer.register_forward_hook(lambda *_: calls.append(1))
    memory = attention.remember(states, mask.padding(lengths))
    queries = torch.randn(2, 3, 5)
    stepwise = [attention(queries[:, t : t + 1], memory, weights=True) for t in range(3)]
    assert len(calls) == 1
    whole = attend(queries, states, score=attention.score, mask=mask.padding(lengths), weights=True)
    torch.testing.assert_close(torch.cat([step.context for step in stepwise], 1), whole.context)
    torch.testing.assert_close(torch.cat([step.weights for step in stepwise], 1), whole.weights)


def test_a_memory_may_read_other_values_and_a_query_may_narrow_its_mask():
    attention = Attention(score.General(5, 7))
    states, values, query = torch.randn(2, 11, 7), torch.randn(2, 11, 3), torch.randn(2, 4, 5)
    memory = attention.remember(states, mask.padding(torch.tensor([11, 6])), values)
    context, weights = attention(query, memory, mask=mask.window(4, 11, before=2), weights=True)
    allowed = mask.padding(torch.tensor([11, 6])) & mask.window(4, 11, before=2)
    expected = (query @ attention.score.weight(states).mT).masked_fill(~allowed, -math.inf).softmax(-1)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(context, expected @ values)


def test_one_set_of_queries_serves_a_whole_batch():
    query, key = torch.randn(1, 3, KEY_DIM), torch.randn(2, 11, KEY_DIM)
    torch.testing.assert_close(attend(query, key).context, attend(query.expand(2, 3, KEY_DIM), key).context)
