"""Local attention against the global formula under a mask, and at the cost of its window."""

import math

import pytest
import torch

from regard import Attention, align, attend, mask, score
from regard.errors import DtypeError, OptionError, ShapeError

SCORES = {
    "additive": lambda: score.Additive(5, 5, 7),
    "dot": lambda: score.dot,
    "general": lambda: score.General(5, 5),
    "location": lambda: score.Location(5, 9),
    "mlp": lambda: score.MLP(5, 5, (7, 3)),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("window", [0, 1, 3, 20])
def test_local_m_is_global_attention_under_a_window(name, window):
    made, query, key, value = SCORES[name](), torch.randn(2, 9, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 3)
    padding = mask.padding(torch.tensor([11, 6]))
    local = attend(query, key, value, score=made, align=align.LocalMonotonic(window), mask=padding, weights=True)
    nearby = mask.window(9, 11, before=window)
    everywhere = attend(query, key, value, score=made, mask=padding & nearby, weights=True)
    torch.testing.assert_close(local.weights, everywhere.weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(local.context, everywhere.context, rtol=1e-5, atol=1e-6)


def test_local_m_step_by_step_equals_all_queries_at_once():
    attention = Attention(score.dot, align.LocalMonotonic(2))
    memory = attention.remember(torch.randn(2, 11, 5))
    query = torch.randn(2, 7, 5)
    state, steps = None, []
    for t in range(7):
        attended = attention(query[:, t : t + 1], memory, state=state)
        state = attended.state
        steps.append(attended.context)
    torch.testing.assert_close(torch.cat(steps, 1), attention(query, memory).context)


def closed_form_of_local_p(local, query, key, value, lengths, direct_score):
    """Luong's section 3.2 as written: positions from 1 to n, one query at a time."""
    contexts, centres = [], []
    for b, n in enumerate(lengths.tolist()):
        for t in range(query.shape[1]):
            s_t = query[b, t]
            p_t = n * torch.sigmoid(local.direction.weight @ torch.tanh(local.layer.weight @ s_t)).squeeze()
            inside = [s for s in range(1, n + 1) if p_t - local.window <= s <= p_t + local.window]
            align_weights = torch.stack([direct_score(s_t, key[b, s - 1]) for s in inside]).softmax(0)
            sigma = local.window / 2
            weights = [
                a * torch.exp(-((s - p_t) ** 2) / (2 * sigma**2)) for a, s in zip(align_weights, inside, strict=True)
            ]
            contexts.append(sum(w * value[b, s - 1] for w, s in zip(weights, inside, strict=True)))
            centres.append(p_t)
    return torch.stack(contexts).view(*query.shape[:2], -1), torch.stack(centres).view(query.shape[:2])


@pytest.mark.parametrize("window", [1, 2, 5, 10])
def test_local_p_is_the_formula_of_the_paper(window):
    local = align.LocalPredictive(5, dim=3, window=window).double()
    with torch.no_grad():
        local.direction.weight.mul_(5)
    lengths = torch.tensor([13, 4])
    query, key, value = (torch.randn(2, n, 5, dtype=torch.float64) for n in (7, 13, 13))
    result = attend(query, key, value, score=score.dot, align=local, mask=mask.padding(lengths), weights=True)
    contexts, centres = closed_form_of_local_p(local, query, key, value, lengths, lambda s, h: s @ h)
    torch.testing.assert_close(result.context, contexts)
    torch.testing.assert_close(result.extras["centre"] + 1, centres)
    torch.testing.assert_close(result.weights @ value, contexts)
    assert centres.std() > 0.1, "the centres must differ for the test to mean anything"
    grads = [torch.autograd.grad(c.square().sum(), list(local.parameters())) for c in (result.context, contexts)]
    torch.testing.assert_close(*grads)
    assert grads[0][0].abs().sum() > 0, "gradients reach the predicted position"


def test_the_bell_over_all_keys_is_a_softmax_times_the_gaussian_and_differs_from_the_window():
    bell, local = align.LocalBell(5, dim=3, window=2).double(), align.LocalPredictive(5, dim=3, window=2).double()
    bell.load_state_dict(local.state_dict())
    lengths = torch.tensor([13, 4])
    query, key = torch.randn(2, 7, 5, dtype=torch.float64), torch.randn(2, 13, 5, dtype=torch.float64)
    options = {"score": score.dot, "mask": mask.padding(lengths), "weights": True}
    found = attend(query, key, align=bell, **options)
    centre = lengths[:, None] * torch.sigmoid(bell.direction(torch.tanh(bell.layer(query)))).squeeze(-1)
    distance = torch.arange(1, 14) - centre[..., None]
    everywhere = attend(query, key, **options).weights
    expected = everywhere * torch.exp(-distance.square() / 2)
    torch.testing.assert_close(found.weights, expected)
    inside = attend(query, key, align=local, **options).weights
    assert (found.weights.sum(-1) <= inside.sum(-1) + 1e-9).all(), "outside of the window the bell leaves little"
    assert (inside.sum(-1) < 1).all()


def test_spatial_attention_is_average_pooling():
    key = torch.randn(2, 11, 5)
    pooled = attend(key, key, align=align.Spatial(2), weights=True)
    expected = torch.nn.functional.avg_pool1d(key.mT, 5, stride=1, padding=2, count_include_pad=False).mT
    torch.testing.assert_close(pooled.context, expected)
    j, i = torch.meshgrid(torch.arange(11), torch.arange(11), indexing="ij")
    inside = ((j - i).abs() <= 2).float()
    torch.testing.assert_close(pooled.weights[0], inside / inside.sum(-1, keepdim=True))


@pytest.mark.parametrize("make", [lambda: align.LocalMonotonic(3), lambda: align.LocalPredictive(4, window=3)])
def test_only_the_window_is_scored(make):
    """Cost grows with the window: the score sees 2 * window + 1 keys per query, however many there are."""
    seen = []

    def watched(query, key):
        seen.append((tuple(query.shape), tuple(key.shape)))
        return query @ key.mT

    attend(torch.randn(2, 5, 4), torch.randn(2, 10_000, 4), score=watched, align=make())
    assert seen == [((2, 5, 1, 4), (2, 5, 7, 4))]


def test_no_tensor_of_local_attention_is_as_large_as_queries_times_keys():
    num_queries, num_keys = 300, 20_000
    sizes = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                sizes.append(result.untyped_storage().nbytes() // result.element_size())
            return result

    query, key = torch.randn(1, num_queries, 4), torch.randn(1, num_keys, 4)
    allowed = mask.padding(torch.tensor([num_keys - 7]), size=num_keys)
    with Watch():
        attend(query, key, align=align.LocalPredictive(4, window=10), mask=allowed)
    assert max(sizes) <= num_keys * 4 < num_queries * num_keys


def test_windows_that_extend_over_the_edge_keep_their_weights():
    local = align.LocalMonotonic(2)
    weights = attend(torch.randn(1, 20, 3), torch.randn(1, 11, 3), align=local, weights=True).weights
    torch.testing.assert_close(weights.sum(-1)[0, :13], torch.ones(13))
    assert weights[0, 13:].eq(0).all(), "queries more than `window` behind the last key see nothing"


def test_a_wrong_window_or_query_is_explained(as_a_user):
    with pytest.raises(OptionError, match="window must be a whole number, 1 or more; got 0"):
        align.LocalPredictive(5, window=0)
    with pytest.raises(ShapeError, match="queries of 4 features; these have 5"):
        attend(torch.randn(2, 3, 5), torch.randn(2, 7, 5), align=align.LocalPredictive(4))
    codes = score.codes(["ab", "cd"])
    with pytest.raises(DtypeError, match=r"parameters of LocalPredictive .* got torch\.int64 and torch\.float32"):
        attend(codes, codes, torch.eye(2), score=score.equality, align=align.LocalPredictive(2))


def test_long_sources_keep_exact_positions_in_half_precision():
    """bfloat16 cannot count past 256; the window must still be where the step is."""
    key = torch.arange(3001.0).view(1, -1, 1)
    query = torch.zeros(1, 1, 1, dtype=torch.bfloat16)
    weights = attend(query, key.bfloat16(), align=align.LocalMonotonic(1), weights=True, state=3000).weights
    assert weights[0, 0].nonzero().flatten().tolist() == [2999, 3000]
    assert math.isclose(weights.sum().item(), 1, abs_tol=1e-2)
