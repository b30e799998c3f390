"""attend as a whole: against torch, on every path, under every mask, in every precision."""

import copy
import math

import pytest
import torch
from helpers.attention import (
    KEY_DIM,
    MAKE_ALIGN,
    MAKE_SCORE,
    NUM_KEYS,
    NUM_QUERIES,
    PAIRS,
    QUERY_DIM,
    VALUE_DIM,
    inputs,
    make,
)
from torch import nn
from torch.nn import functional

from regard import Attended, Attention, MultiHead, align, attend, mask, score


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


ROUTES = {"fused": {}, "weights": {"weights": True}, "reference": {"kernel": "reference"}}
every_route = pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)


@every_route
@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 11), (3, 5, 11), (2, 1, 1, 11), (5, 1), (11,)], ids=str)
def test_a_bias_is_that_of_torch(shape, masked, route, device):
    query, key, value = (torch.randn(2, 3, n, d, device=device) for n, d in ((5, 7), (11, 7), (11, 4)))
    bias, allowed = torch.randn(shape, device=device, requires_grad=True), torch.ones(5, 11, device=device).bool()
    if masked:
        allowed = torch.rand(2, 1, 5, 11, device=device) > 0.3
    added = torch.where(allowed, bias, -torch.inf)
    expected = functional.scaled_dot_product_attention(query, key, value, added.expand(2, 3, 5, 11))
    context = attend(query, key, value, bias=bias, mask=allowed if masked else None, **route).context
    torch.testing.assert_close(context, expected)
    upstream = torch.randn_like(context)
    gradients = [torch.autograd.grad(each, bias, upstream)[0] for each in (context, expected)]
    torch.testing.assert_close(*gradients)


@every_route
def test_a_bias_of_minus_infinity_hides_a_key(route):
    query, key, value = (torch.randn(2, n, 5, requires_grad=True) for n in (3, 7, 7))
    allowed = torch.rand(2, 3, 7) > 0.4
    allowed[:, 1] = False
    bias = torch.zeros(2, 3, 7).masked_fill(~allowed, -torch.inf).requires_grad_()
    hidden, masked = attend(query, key, value, bias=bias, **route), attend(query, key, value, mask=allowed, **route)
    torch.testing.assert_close(hidden.context, masked.context)
    assert hidden.context[:, 1].eq(0).all()
    for gradient in torch.autograd.grad(hidden.context.square().sum(), [query, key, value, bias]):
        assert gradient.isfinite().all()


@every_route
def test_dropout_is_that_of_torch(route):
    query, key, value = (torch.randn(2, 3, n, d) for n, d in ((5, 7), (11, 7), (11, 7)))
    allowed = torch.rand(2, 1, 5, 11) > 0.3
    torch.manual_seed(1)
    expected = functional.scaled_dot_product_attention(query, key, value, allowed, dropout_p=0.4)
    torch.manual_seed(1)
    torch.testing.assert_close(attend(query, key, value, mask=allowed, dropout=0.4, **route).context, expected)


@pytest.mark.parametrize("align_name", sorted(set(MAKE_ALIGN) - {"normalised"}))
def test_dropout_leaves_out_weights_and_returns_what_they_were(align_name):
    """The values are one-hot, so that the context shows with which weights it was read."""
    query, key, value = torch.randn(400, 3, 5), torch.randn(400, 11, 5), torch.eye(11).expand(400, 11, 11)
    read, weights = attend(query, key, value, align=MAKE_ALIGN[align_name](5), dropout=0.25, weights=True)
    kept = read != 0
    torch.testing.assert_close(read[kept], weights[kept] / 0.75)
    assert 0.65 < kept[weights != 0].float().mean() < 0.85


def test_a_module_drops_weights_in_training_mode_only():
    attention = Attention(score.dot, dropout=0.5)
    query, memory = torch.randn(2, 3, 5), attention.remember(torch.randn(2, 7, 5))
    drawn = [attention(query, memory).context for _ in range(2)]
    assert not drawn[0].equal(drawn[1])
    plain = attention.eval()(query, memory).context
    torch.testing.assert_close(plain, attend(query, memory.keys, score=score.dot).context)
    given = torch.full((2, 3, 7), 1 / 7)
    assert not attention.train()(query, memory, override=given).context.equal(given @ memory.values)
    assert attention.eval()(query, memory, override=given).context.equal(given @ memory.values)


@every_route
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads_are_those_of_torch(causal, route):
    query, key, value = (torch.randn(2, h, n, 5, requires_grad=True) for h, n in ((6, 7), (2, 7), (2, 7)))
    given = mask.causal(7) if causal else None
    context = attend(query, key, value, grouped=True, mask=given, **route).context
    expected = functional.scaled_dot_product_attention(query, key, value, given, enable_gqa=True)
    torch.testing.assert_close(context, expected)
    upstream = torch.randn_like(context)
    gradients = [torch.autograd.grad(each, [query, key, value], upstream) for each in (context, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("align_name", ["hard_most_likely", "local_m", "local_p", "softmax"])
@pytest.mark.parametrize("name", ["additive", "cosine", "mlp", "scaled_dot"])
def test_grouped_heads_equal_repeated_keys(name, align_name):
    made, alignment = make(name, align_name)
    query, key, value = (part[:, :heads] for part, heads in zip(inputs(name, 2, 6), (6, 2, 2), strict=True))
    bias, allowed = torch.randn(6, NUM_QUERIES, NUM_KEYS), torch.rand(2, 6, NUM_QUERIES, NUM_KEYS) > 0.3
    options = {"score": made, "align": alignment, "bias": bias, "mask": allowed}
    repeated = attend(query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1), **options, weights=True)
    for route in ROUTES.values():
        grouped = attend(query, key, value, **options, grouped=True, **route)
        torch.testing.assert_close(grouped.context, repeated.context)
        assert grouped.weights is None or grouped.weights.shape == repeated.weights.shape
    assert attend(query, key[..., :0, :], value[..., :0, :], grouped=True, score=made).context.eq(0).all()


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
def test_fused_kernels_equal_the_reference_with_gradients(name, masked, device):
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


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "function"])
def test_autocast_leaves_scores_and_sums_in_float32(name):
    """These scores have no layers that autocast may run in half precision, so nothing may change."""
    made = MAKE_SCORE[name]()
    query, key, value = inputs(name, 2)
    plain = attend(query, key, value, score=made, weights=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = attend(query, key, value, score=made, weights=True)
        fused = attend(query, key, value, score=made)
    torch.testing.assert_close(under.weights, plain.weights, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(under.context, plain.context, rtol=1e-6, atol=1e-7)
    assert fused.context.dtype == torch.float32
    torch.testing.assert_close(fused.context, plain.context, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("align_name", ["softmax", "local_p", "hard_most_likely"])
@pytest.mark.parametrize("name", ["additive", "general", "mlp"])
def test_autocast_runs_with_layers_of_its_own(name, align_name):
    made, alignment = make(name, align_name)
    query, key, value = inputs(name, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half_query = torch.nn.functional.linear(query, torch.eye(QUERY_DIM))
        assert half_query.dtype == torch.bfloat16
        assert attend(half_query, key, value, score=made, align=alignment).context.isfinite().all()


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
        if query.shape[-2] == 1:  # a window of keys for each query
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
    expected = (query @ attention.score.layer(states).mT).masked_fill(~allowed, -math.inf).softmax(-1)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(context, expected @ values)


def test_one_set_of_queries_serves_a_whole_batch():
    query, key = torch.randn(1, 3, KEY_DIM), torch.randn(2, 11, KEY_DIM)
    torch.testing.assert_close(attend(query, key).context, attend(query.expand(2, 3, KEY_DIM), key).context)


def fused_calls(monkeypatch):
    calls, original = [], functional.scaled_dot_product_attention

    def counted(*args, **kwargs):
        calls.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", counted)
    return calls


def test_dot_like_scores_take_torchs_fused_attention_unless_weights_are_asked_for(monkeypatch):
    calls = fused_calls(monkeypatch)
    for name in ("dot", "scaled_dot", "cosine", "general", "context", "context_tanh"):
        query, key, value = inputs(name, 2)
        for kernel in ("auto", "fused"):
            attend(query, key, value, score=MAKE_SCORE[name](), kernel=kernel)
            assert len(calls) == 1, name
            calls.clear()
        attend(query, key, value, score=MAKE_SCORE[name](), weights=True)
        attend(query, key, value, score=MAKE_SCORE[name](), kernel="reference")
        assert not calls


def test_a_score_with_a_product_of_its_own_is_not_fused(monkeypatch):
    class Halved(score.Dot):
        def compare(self, query, key):
            return super().compare(query, key) / 2

    calls = fused_calls(monkeypatch)
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    torch.testing.assert_close(attend(query, key, score=Halved()).context, ((query @ key.mT) / 2).softmax(-1) @ key)
    assert not calls


def test_a_mask_for_all_heads_is_not_expanded(monkeypatch):
    calls = fused_calls(monkeypatch)
    query, key = torch.randn(2, 4, 3, 5), torch.randn(2, 4, 7, 5)
    attend(query, key, mask=mask.window(3, 7, before=1))
    attend(query, key, mask=mask.padding(torch.tensor([7, 3])[:, None]))
    assert [tuple(call[3].shape) for call in calls] == [(1, 1, 3, 7), (2, 1, 1, 7)]


def test_the_reference_is_what_the_reference_kernel_runs():
    class Told(score.Score):
        def reference(self, query, key):
            return torch.zeros(*query.shape[:-1], key.shape[-2])

        def compare(self, query, key):
            return self.reference(query, key) + torch.arange(float(key.shape[-2]))

    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    even = attend(query, key, score=Told(), kernel="reference", weights=True).weights
    torch.testing.assert_close(even, torch.full((2, 3, 7), 1 / 7))
    assert attend(query, key, score=Told(), weights=True).weights[0, 0, -1] > 0.5


@pytest.mark.parametrize("shape", [(7,), (1, 7), (3, 1), (1, 1), (3, 7), (1, 3, 1), (2, 1, 7), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("align_name", ["softmax", "local_m", "local_p", "ntm", "sparsemax", "hard_most_likely"])
def test_masks_of_every_shape_that_broadcasts(align_name, shape):
    alignment = MAKE_ALIGN[align_name](5)
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 4)
    allowed = torch.rand(shape) > 0.3
    for weights in (False, True):
        small = attend(query, key, value, align=alignment, mask=allowed, weights=weights)
        whole = attend(query, key, value, align=alignment, mask=allowed.expand(2, 3, 7), weights=weights)
        torch.testing.assert_close(small.context, whole.context)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_the_cosine_of_zero_and_of_large_vectors_holds_in_half_precision(dtype, weights):
    query = torch.cat([torch.zeros(1, 1, 64), torch.full((1, 1, 64), 1e4)], dim=1).to(dtype).requires_grad_()
    key = torch.stack([torch.full((64,), 1e4), torch.zeros(64), torch.full((64,), -1e4)])[None].to(dtype)
    value = torch.eye(3, dtype=dtype)[None]
    context = attend(query, key, value, score=score.Cosine(3.0), weights=weights).context
    expected = torch.stack([torch.full((3,), 1 / 3), torch.tensor([3.0, 0.0, -3.0]).softmax(-1)])
    torch.testing.assert_close(context[0].float(), expected, rtol=0.02, atol=0.01)
    context.sum().backward()
    assert query.grad.isfinite().all()


def test_sparsemax_keeps_its_mass_at_any_height():
    logits = torch.tensor([[1e8, 1e8 - 50, 5.0, 7.0]])
    allowed = torch.tensor([[True, True, False, False]])
    weights = attend(
        torch.zeros(1, 1),
        torch.zeros(4, 1),
        score=lambda q, k: logits,
        align=align.sparsemax,
        mask=allowed,
        weights=True,
    ).weights
    assert weights.tolist() == [[1, 0, 0, 0]]


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    """The threshold, found by halving, is that at which the weights sum to 1."""
    logits = (torch.randn(40, 7, dtype=torch.float64) * torch.logspace(-2, 2, 40).double()[:, None]).requires_grad_()
    weights = align.sparsemax.weigh(logits, None, None, None).weights
    low, high = logits.amin(-1, keepdim=True) - 1, logits.amax(-1, keepdim=True)
    for _ in range(80):
        middle = (low + high) / 2
        is_low = (logits - middle).clamp_min(0).sum(-1, keepdim=True) > 1
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    torch.testing.assert_close(weights, (logits - low).clamp_min(0), rtol=0, atol=1e-12)
    assert weights[:5].gt(0).all()
    assert (weights[-10:] == 0).any(-1).all()


def test_hard_attention_touches_only_the_value_it_chose():
    query, key = torch.eye(3)[None], torch.eye(3)[None]
    value = torch.tensor([[[1.0], [torch.nan], [3.0]]])
    context = attend(query, key, value, align=align.Hard().eval()).context
    assert context[0, 0] == 1
    assert context[0, 1].isnan()
    assert context[0, 2] == 3


@pytest.mark.parametrize("align_name", ["local_m", "local_p"])
def test_local_attention_is_the_same_on_expanded_and_transposed_memories(align_name):
    alignment = MAKE_ALIGN[align_name](5)
    query, key = torch.randn(2, 3, 6, 5), torch.randn(2, 11, 3, 5).transpose(1, 2)
    shared = torch.randn(1, 1, 11, 5)
    for memory in (key, shared):
        plain = memory.expand(2, 3, 11, 5).contiguous()
        torch.testing.assert_close(
            attend(query, memory, align=alignment).context, attend(query, plain, align=alignment).context
        )


def test_override_is_read_and_carries_the_state_on():
    attention = Attention(score.dot, align.LocalMonotonic(1))
    memory = attention.remember(torch.randn(2, 7, 5), mask.padding(torch.tensor([7, 4])))
    given = torch.full((2, 1, 7), 1 / 7)
    first = attention(torch.randn(2, 1, 5), memory, override=given, weights=True)
    assert first.state == 1
    assert first.weights[1, 0, 4:].eq(0).all(), "what does not exist is not read"
    torch.testing.assert_close(first.context[0], memory.values[0].mean(0, keepdim=True))
    second = attention(torch.randn(2, 1, 5), memory, state=first.state, weights=True)
    assert second.weights[0, 0].nonzero().flatten().tolist() == [0, 1, 2]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("where", ["query", "key"])
@pytest.mark.parametrize("num_key_heads", [1, 2])
def test_every_route_shows_that_its_input_is_not_finite(num_key_heads, where, bad, masked, causal):
    heads = MultiHead(6, 2, num_key_heads=num_key_heads)
    query, states = torch.randn(2, 7, 6), torch.randn(2, 7, 6)
    (query if where == "query" else states)[0, 0, 0] = bad
    memory = heads.remember(states, mask.padding(torch.tensor([7, 5])) if masked else None)
    fused, reference = (heads(query, memory, causal=causal, kernel=kernel).context for kernel in ("auto", "reference"))
    torch.testing.assert_close(fused, reference, equal_nan=True)
    assert reference[0, 0].isnan().all()


def test_negative_scores_that_are_not_read_give_nan(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # as on a GPU
    query = torch.tensor([[[1.0], [-1.0]]])
    context = attend(query, torch.rand(1, 5, 1), score=score.dot, align=align.normalised).context
    assert context[0, 0].isfinite().all()
    assert context[0, 1].isnan().all()
