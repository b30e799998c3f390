"""Each score against its formula, written out one pair at a time, and against torch where torch has it."""

import math

import pytest
import torch
from helpers.attention import KEY_DIM, MAKE_SCORE, QUERY_DIM, SAME_SIZE, inputs
from torch.nn import functional

from regard import attend, score
from regard.attention.attend import as_score

BATCH = 2


def one_by_one(formula, query, key):
    """formula(s, h) for every pair, in a Python loop."""
    rows = [[[formula(s, h) for h in keys] for s in queries] for queries, keys in zip(query, key, strict=True)]
    return torch.tensor(rows)


def additive(s: score.Additive):
    return lambda q, k: s.direction @ torch.tanh(s.query_layer.weight @ q + s.key_layer.weight @ k)


def concat(s: score.Concat):
    return lambda q, k: s.direction @ torch.tanh(s.layer.weight @ torch.cat([q, k]))


def mlp(s: score.MLP):
    def formula(q, k):
        features = s.first(torch.cat([q, k]))
        for layer in s.layers:
            features = layer(features.tanh())
        return features

    return formula


FORMULAS = {
    "additive": additive,
    "concat": concat,
    "cosine": lambda s: lambda q, k: s.strength * (q @ k) / (q.norm() * k.norm()),
    "dot": lambda s: lambda q, k: q @ k,
    "general": lambda s: lambda q, k: q @ s.layer.weight @ k,
    "mlp": mlp,
    "projected": lambda s: lambda q, k: (s.query_layer.weight @ q) @ (s.key_layer.weight @ k),
    "scaled_dot": lambda s: lambda q, k: q @ k / math.sqrt(QUERY_DIM),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_score_is_the_formula_of_its_paper(name):
    made = MAKE_SCORE[name]()
    query, key, _ = inputs(name, BATCH)
    with torch.no_grad():
        expected = one_by_one(FORMULAS[name](made), query, key)
        torch.testing.assert_close(made(query, key), expected, rtol=1e-5, atol=1e-5)
        projected = made.project_query(query), made.project_key(key)
        torch.testing.assert_close(made.reference(*projected), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(MAKE_SCORE) - SAME_SIZE - {"equality"}))
def test_query_and_key_may_differ_in_size_where_the_formula_allows(name):
    query, key, value = inputs(name, BATCH)
    assert query is None or query.shape[-1] != key.shape[-1]
    assert attend(query, key, value, score=MAKE_SCORE[name]()).context.isfinite().all()


def test_the_projected_score_is_general_with_the_product_of_its_matrices():
    projected, general = score.Projected(QUERY_DIM, KEY_DIM, 3), score.General(QUERY_DIM, KEY_DIM)
    query, key, _ = inputs("general", BATCH)
    with torch.no_grad():
        general.layer.weight.copy_(projected.query_layer.weight.T @ projected.key_layer.weight)
        found, expected = (attend(query, key, score=each, weights=True) for each in (projected, general))
    torch.testing.assert_close(found.weights, expected.weights)
    torch.testing.assert_close(found.context, found.weights @ key, msg="the values are the keys before the projection")


def test_context_score_learns_one_query_per_output():
    linear, tanh = score.Context(3, KEY_DIM), score.Context(3, KEY_DIM, hidden=5)
    key = torch.randn(BATCH, 11, KEY_DIM)
    weights = attend(None, key, score=linear, weights=True).weights
    torch.testing.assert_close(weights, (linear.query @ key.mT).softmax(-1))
    u = torch.tanh(key @ tanh.layer.weight.T + tanh.layer.bias)
    context, weights = attend(None, key, score=tanh, weights=True)
    torch.testing.assert_close(weights, (tanh.query @ u.mT).softmax(-1))
    torch.testing.assert_close(context, weights @ key)


def test_location_score_sees_positions_only_and_nothing_beyond_its_length():
    made = score.Location(QUERY_DIM, max_length=4)
    query = torch.randn(BATCH, 3, QUERY_DIM)
    logits = query @ made.layer.weight.T
    for num_keys in (2, 4, 7):
        key = torch.randn(BATCH, num_keys, KEY_DIM)
        weights = attend(query, key, score=made, weights=True).weights
        torch.testing.assert_close(weights[..., :4], logits[..., :num_keys].softmax(-1))
        assert weights[..., 4:].eq(0).all()


PERSONS = ["005123174812", "015843268901", "005123174823"]


def test_equality_and_prefix_are_database_look_ups():
    key = score.codes(PERSONS)
    assert score.equality(score.codes(["015843268901"]), key).tolist() == [[0, 1, 0]]
    assert score.equality(score.codes(["01584326890"]), key).tolist() == [[0, 0, 0]]
    assert score.prefix(score.codes(["00512317"]), key).tolist() == [[1, 0, 1]]
    assert score.prefix(score.codes(["", "005123174812999"]), key).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_a_plain_function_is_a_score():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 11, 5)
    weights = attend(query, key, score=lambda q, k: -torch.cdist(q, k), weights=True).weights
    torch.testing.assert_close(weights, (-torch.cdist(query, key)).softmax(-1))


def test_key_strength_may_differ_from_query_to_query():
    query, key = torch.randn(2, 3, 5), torch.randn(2, 11, 5)
    strength = torch.rand(2, 3, 1) * 10
    expected = (strength * functional.cosine_similarity(query[:, :, None], key[:, None], dim=-1)).softmax(-1)
    torch.testing.assert_close(attend(query, key, score=score.Cosine(strength), weights=True).weights, expected)


def test_the_cosine_of_a_zero_vector_is_zero():
    query = torch.zeros(1, 2, 5, requires_grad=True)
    logits = score.cosine(query, torch.randn(1, 3, 5))
    logits.sum().backward()
    assert logits.eq(0).all()
    assert query.grad.isfinite().all()


@pytest.mark.parametrize("name", MAKE_SCORE)
def test_compare_equals_reference(name):
    made = as_score(MAKE_SCORE[name]())
    query, key, _ = inputs(name, 2, 3)
    query = made.learned_query() if query is None else made.project_query(query)
    key = made.project_key(key)
    torch.testing.assert_close(made.compare(query, key), made.reference(query, key), rtol=1e-5, atol=1e-5)


def test_every_score_has_a_name_and_is_in_the_catalogue():
    assert set(score.SCORES) <= set(MAKE_SCORE)
    assert all(issubclass(made, score.Score) for made in score.SCORES.values())
