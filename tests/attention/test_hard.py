"""Hard attention: one key per query, sampled or most likely, with what REINFORCE needs."""

import pytest
import torch
from scipy import stats

from regard import Attention, align, attend, mask, score
from regard.errors import OptionError, ShapeError


def given(logits):
    return lambda query, key: logits


def test_evaluation_takes_the_most_likely_key_and_training_samples():
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 4)
    attention = Attention(score.dot, align.Hard())
    memory = attention.eval().remember(key, values=value)
    context, weights = attention(query, memory, weights=True)
    best = (query @ key.mT).argmax(-1)
    torch.testing.assert_close(weights.argmax(-1), best)
    torch.testing.assert_close(context, torch.stack([value[b, best[b]] for b in range(2)]))
    assert weights.sum(-1).eq(1).all()
    assert attention(query, memory).log_prob is None
    attention.train()
    draws = torch.stack([attention(query, memory).extras["index"] for _ in range(50)])
    assert (draws != draws[0]).any()


def test_samples_follow_the_softmax():
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.0, 1.1, -3.0]])
    allowed = torch.tensor([[True, True, True, False, True, True]])
    draws = 20_000
    hard = align.Hard(generator=torch.Generator().manual_seed(11))
    index = attend(
        torch.zeros(draws, 1, 2),
        torch.zeros(draws, 6, 2),
        score=given(logits.expand(draws, 1, 6)),
        align=hard,
        mask=allowed,
    ).extras["index"]
    counts = torch.bincount(index.flatten(), minlength=6)
    expected = logits.masked_fill(~allowed, -torch.inf).softmax(-1).flatten()
    assert counts[3] == 0
    seen = allowed.flatten()
    assert stats.chisquare(counts[seen], expected[seen].double() / expected[seen].double().sum() * draws).pvalue > 0.01


def test_a_generator_makes_sampling_repeatable():
    query, key = torch.randn(4, 30, 5), torch.randn(4, 50, 5)

    def draw(seed):
        return attend(query, key, align=align.Hard(generator=torch.Generator().manual_seed(seed))).extras["index"]

    assert draw(3).equal(draw(3))
    assert not draw(3).equal(draw(4))


def test_log_probability_and_entropy_are_those_of_the_softmax():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    allowed = mask.padding(torch.tensor([7, 4]))
    result = attend(query, key, align=align.Hard(), mask=allowed)
    soft = attend(query, key, mask=allowed, weights=True).weights
    chosen = soft.gather(-1, result.extras["index"].unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(result.log_prob, chosen.log())
    torch.testing.assert_close(result.extras["entropy"], torch.distributions.Categorical(soft).entropy())


def test_reinforce_estimates_the_exact_gradient():
    """E[reward grad log p] over samples equals the gradient of the expected reward, within four standard errors."""
    logits = torch.tensor([[0.5, -0.2, 1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    reward_of = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    (exact,) = torch.autograd.grad((logits.softmax(-1) * reward_of).sum(), logits)
    draws = 20_000
    each = logits.expand(draws, 1, 4).clone().detach().requires_grad_()
    result = attend(
        torch.zeros(draws, 1, 2, dtype=torch.float64),
        torch.zeros(draws, 4, 2, dtype=torch.float64),
        reward_of.view(1, 4, 1).expand(draws, 4, 1),
        score=given(each),
        align=align.Hard(generator=torch.Generator().manual_seed(5)),
    )
    reward = result.context.squeeze(-1).detach()
    (samples,) = torch.autograd.grad(((reward - reward.mean()) * result.log_prob).sum(), each)
    estimate, error = samples.mean(0), samples.std(0) / draws**0.5
    assert ((estimate - exact).abs() < 4 * error).all()
    assert (error < 0.02).all(), "the estimate must be sharp enough to tell right from wrong"


def test_the_context_of_a_sample_passes_gradients_to_the_value_only():
    query, key, value = (torch.randn(2, n, 5, requires_grad=True) for n in (3, 7, 7))
    attend(query, key, value, align=align.Hard()).context.sum().backward()
    assert query.grad is None or query.grad.eq(0).all()
    assert value.grad.sum() == pytest.approx(2 * 3 * 5)


def test_straight_through_gumbel_is_one_hot_forward_and_soft_backward():
    query, key, value = (torch.randn(2, n, 5, requires_grad=True) for n in (3, 7, 7))
    result = attend(query, key, value, align=align.Hard(temperature=0.5), weights=True)
    torch.testing.assert_close(result.weights.amax(-1), torch.ones(2, 3))
    torch.testing.assert_close(result.weights.sum(-1), torch.ones(2, 3))
    result.context.square().sum().backward()
    assert query.grad.abs().sum() > 0
    assert attend(query, key, align=align.Hard(temperature=0.5).eval()).log_prob is None


def test_a_temperature_must_be_positive():
    with pytest.raises(OptionError, match=r"above 0 or none; got -1"):
        align.Hard(temperature=-1.0)


def test_a_soft_start_is_soft_attention_in_training_and_hard_in_evaluation():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    hard = align.Hard()
    started = attend(query, key, align=hard, weights=True, soft=True)
    torch.testing.assert_close(started.weights, attend(query, key, weights=True).weights)
    assert started.log_prob is None
    assert (attend(query, key, align=hard.eval(), weights=True, soft=True).weights.amax(-1) == 1).all()


def test_each_row_of_a_batch_can_be_soft_or_hard():
    query, key, value = torch.randn(4, 3, 5), torch.randn(4, 7, 5), torch.randn(4, 7, 2)
    hard = align.Hard()
    soft_rows = torch.tensor([True, False, True, False])
    allowed = mask.padding(torch.tensor([7, 4, 3, 7]))
    found = attend(query, key, value, align=hard, weights=True, mask=allowed, soft=soft_rows)
    soft = attend(query, key, value, weights=True, mask=mask.padding(torch.tensor([7, 4, 3, 7])))
    torch.testing.assert_close(found.weights[::2], soft.weights[::2])
    torch.testing.assert_close(found.context[::2], soft.context[::2])
    assert (found.weights[1::2].amax(-1) == 1).all()
    assert (found.weights[1::2].sum(-1) == 1).all()
    assert found.log_prob[::2].eq(0).all()
    assert found.log_prob[1::2].lt(0).all()
    hard.eval()
    evaluated = attend(query, key, value, align=hard, weights=True, soft=soft_rows)
    assert evaluated.weights.amax(-1).eq(1).all(), "evaluation is hard"


def test_soft_holds_for_one_call_only():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    attention = Attention(score.dot, align.Hard())
    memory = attention.remember(key)
    assert attention(query, memory, weights=True, soft=True).weights.amax(-1).lt(1).all()
    assert attention(query, memory, weights=True).weights.amax(-1).eq(1).all()


def test_a_soft_tensor_of_another_size_is_explained(as_a_user):
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    with pytest.raises(ShapeError, match=r"tensor \(2,\), one entry per row of the batch; got shape \(3,\)"):
        attend(query, key, align=align.Hard(), soft=torch.tensor([True, False, True]))


@pytest.mark.parametrize("sample", [None, False, True])
@pytest.mark.parametrize("temperature", [None, 0.7])
def test_soft_for_all_rows_is_soft_for_the_batch(sample, temperature):
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    hard = align.Hard(sample=sample, temperature=temperature)
    whole, rows = (
        attend(query, key, align=hard, weights=True, soft=soft).weights for soft in (True, torch.tensor([True, True]))
    )
    torch.testing.assert_close(rows, whole)


def test_rows_of_the_most_likely_key_stay_hard_beside_soft_rows():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    found = attend(query, key, align=align.Hard(sample=False), weights=True, soft=torch.tensor([True, False]))
    torch.testing.assert_close(found.weights[0], attend(query, key, weights=True).weights[0])
    best = attend(query, key, align=align.Hard(sample=False), weights=True)
    assert found.weights[1].equal(best.weights[1])
    assert found.extras["index"].equal(best.extras["index"])
    assert found.log_prob is None


def test_straight_through_gradients_reach_the_hard_rows_of_a_batch_with_soft_rows():
    query, value = torch.randn(2, 3, 5), torch.randn(2, 7, 4)

    def key_gradient(soft):
        torch.manual_seed(3)
        key = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
        attend(query, key, value, align=align.Hard(temperature=0.7), soft=soft).context.square().sum().backward()
        return key.grad

    assert key_gradient(False).abs().sum() > 0
    torch.testing.assert_close(key_gradient(torch.tensor([False, False])), key_gradient(False))
