"""Coverage: attention takes into account how much each key was attended to, and is otherwise unchanged."""

import pytest
import torch
from helpers.attention import KEY_DIM, NUM_KEYS, NUM_QUERIES, QUERY_DIM, SAME_SIZE, inputs, make
from helpers.signatures import check_gradients
from torch import nn

from regard import Attention, align, mask, score
from regard.attention.coverage import Coverage
from regard.errors import OptionError

SCORES = ["additive", "concat", "dot", "general", "mlp", "scaled_dot"]
ALIGNMENTS = ["hard_most_likely", "local_m", "local_p", "softmax", "sparsemax", "uniform"]
# Coverage enters the keys of a score and adds up the weights of an alignment, which meet in the logits alone.
PAIRS = [(score_name, "softmax") for score_name in SCORES] + [("additive", name) for name in ALIGNMENTS]
every_pair = pytest.mark.parametrize(("score_name", "align_name"), sorted(set(PAIRS)))


def covering(score_name, align_name, dtype=torch.float32):
    made, alignment = make(score_name, align_name)
    attention = Coverage(made, alignment, key_dim=QUERY_DIM if score_name in SAME_SIZE else KEY_DIM)
    nn.init.normal_(attention.direction)
    return attention.to(dtype)


def test_the_additive_score_with_coverage_one_step_at_a_time():
    attention = covering("additive", "softmax", torch.float64)
    query, key, value = inputs("additive", 2, dtype=torch.float64)
    result = attention(query, attention.remember(key, values=value), weights=True)
    made, covered = attention.score, torch.zeros(2, NUM_KEYS, dtype=torch.float64)
    for step in range(NUM_QUERIES):
        for row in range(2):
            logits = [
                made.direction
                @ torch.tanh(
                    made.query_layer.weight @ query[row, step]
                    + made.key_layer.weight @ key[row, i]
                    + attention.direction * covered[row, i]
                )
                for i in range(NUM_KEYS)
            ]
            torch.testing.assert_close(result.weights[row, step], torch.stack(logits).softmax(0))
        overlap = torch.minimum(result.weights[:, step], covered).sum(-1)
        torch.testing.assert_close(result.extras["overlap"][:, step], overlap)
        covered = covered + result.weights[:, step]
    torch.testing.assert_close(result.state.total[:, 0], covered)
    torch.testing.assert_close(result.context, result.weights @ value)


@every_pair
def test_all_queries_at_once_equal_one_after_the_other(score_name, align_name):
    attention = covering(score_name, align_name)
    query, key, value = inputs(score_name, 2)
    allowed, bias = torch.rand(2, NUM_QUERIES, NUM_KEYS) < 0.7, torch.randn(2, NUM_QUERIES, NUM_KEYS)
    memory = attention.remember(key, values=value)
    whole = attention(query, memory, mask=allowed, bias=bias, weights=True)
    state, again = None, []
    for step in range(NUM_QUERIES):
        now = slice(step, step + 1)
        one = attention(query[:, now], memory, mask=allowed[:, now], bias=bias[:, now], weights=True, state=state)
        state = one.state
        again.append(one.weights)
    torch.testing.assert_close(whole.weights, torch.cat(again, 1), rtol=1e-5, atol=1e-6)
    assert whole.weights[~allowed].eq(0).all()


@every_pair
def test_new_coverage_attends_like_attention_without_coverage(score_name, align_name):
    attention = covering(score_name, align_name)
    nn.init.zeros_(attention.direction)
    query, key, value = inputs(score_name, 2)
    allowed = torch.rand(2, NUM_QUERIES, NUM_KEYS) < 0.7
    plain = Attention(attention.score, attention.align)
    expected = plain(query, plain.remember(key, values=value), mask=allowed, weights=True)
    result = attention(query, attention.remember(key, values=value), mask=allowed, weights=True)
    torch.testing.assert_close(result.weights, expected.weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(result.context, expected.context, rtol=1e-5, atol=1e-6)
    assert attention(query, attention.remember(key, values=value)).weights is None


@every_pair
def test_padding_never_changes_a_result(score_name, align_name):
    attention = covering(score_name, align_name)
    query, key, value = inputs(score_name, 2)
    _, more_key, more_value = inputs(score_name, 2, num_keys=4)
    alone = attention(query, attention.remember(key, values=value), weights=True)
    padding = mask.padding(torch.full((2,), NUM_KEYS), size=NUM_KEYS + 4)
    padded_memory = attention.remember(torch.cat([key, more_key], 1), padding, values=torch.cat([value, more_value], 1))
    padded = attention(query, padded_memory, weights=True)
    torch.testing.assert_close(padded.context, alone.context, rtol=1e-5, atol=1e-5)
    assert padded.weights[..., NUM_KEYS:].eq(0).all()


@pytest.mark.parametrize("score_name", ["additive", "general"])
def test_gradients_flow_through_what_was_covered(score_name):
    attention = covering(score_name, "softmax", torch.float64)
    query, key, value = inputs(score_name, 1, dtype=torch.float64)
    allowed = torch.rand(1, NUM_QUERIES, NUM_KEYS) > 0.3
    allowed[:, 1] = False

    def run(query, key, value, *learned):
        result = attention(query, attention.remember(key, values=value), mask=allowed, weights=True)
        return result.context, result.extras["overlap"]

    leaves = [part.requires_grad_() for part in (query, key, value)] + list(attention.parameters())
    assert check_gradients(run, leaves)


def test_an_override_counts_as_covered():
    attention = covering("additive", "softmax")
    query, key, value = inputs("additive", 2)
    memory = attention.remember(key, values=value)
    instead = torch.rand(2, NUM_QUERIES, NUM_KEYS).softmax(-1)
    result = attention(query, memory, override=instead, weights=True)
    torch.testing.assert_close(result.state.total, instead.sum(1, keepdim=True))
    torch.testing.assert_close(result.weights, instead)


def test_the_sum_is_kept_in_float32():
    attention = covering("additive", "softmax", torch.bfloat16)
    query, key, value = inputs("additive", 2, dtype=torch.bfloat16)
    result = attention(query, attention.remember(key, values=value), weights=True)
    assert result.context.dtype == torch.bfloat16
    assert result.state.total.dtype == torch.float32


def test_empty_queries_and_keys_are_accepted():
    attention = covering("additive", "softmax")
    query, key, value = inputs("additive", 2)
    assert attention(query[:, :0], attention.remember(key, values=value), weights=True).weights.shape == (
        2,
        0,
        NUM_KEYS,
    )
    assert attention(query, attention.remember(key[:, :0], values=value[:, :0])).context.eq(0).all()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (score.Location(5, 7), "which Location ignores"),
        (score.equality, "which Equality does not have"),
        (score.Context(2, 7), "which Context does not have"),
    ],
)
def test_scores_that_cannot_see_coverage_are_refused(made, says):
    with pytest.raises(OptionError, match=says):
        Coverage(made, align.softmax, key_dim=7)
