"""Multi-head attention against torch's own, with caches and other scores inside the heads."""

import pytest
import torch
from torch import nn

from regard import MultiHead, align, mask, score
from regard.errors import DtypeError, MaskError, OptionError, ShapeError


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("memory_dim", [None, 6])
def test_parity_with_torch(bias, memory_dim):
    theirs = nn.MultiheadAttention(12, 3, bias=bias, kdim=memory_dim, vdim=memory_dim, batch_first=True)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHead.from_torch(theirs)
    query, states = torch.randn(2, 5, 12), torch.randn(2, 7, memory_dim or 12)
    lengths = torch.tensor([7, 3])
    ignore = torch.arange(7) >= lengths[:, None]
    context, weights = theirs(query, states, states, key_padding_mask=ignore, average_attn_weights=False)
    memory = ours.remember(states, mask.padding(lengths))
    result = ours(query, memory, weights=True)
    torch.testing.assert_close(result.context, context)
    torch.testing.assert_close(result.weights, weights)
    torch.testing.assert_close(ours(query, memory).context, context)


def test_causal_self_attention_equals_torch():
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    ours = MultiHead.from_torch(theirs)
    x = torch.randn(2, 5, 12)
    context, _ = theirs(x, x, x, attn_mask=~mask.causal(5))
    for weights in (False, True):
        torch.testing.assert_close(ours(x, causal=True, weights=weights).context, context)
        torch.testing.assert_close(ours(x, mask=mask.causal(5), weights=weights).context, context)


INSIDE = {
    "scaled dot": (score.scaled_dot, align.softmax),
    "additive": (score.Additive(4, 4, 5), align.softmax),
    "cosine": (score.Cosine(3.0), align.sparsemax),
    "local-m": (score.dot, align.LocalMonotonic(1)),
    "local-p": (score.General(4, 4), align.LocalPredictive(4, window=2)),
    "spatial": (score.dot, align.Spatial(1)),
}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("inside", INSIDE)
def test_a_growing_cache_equals_all_at_once(weights, inside):
    made, alignment = INSIDE[inside]
    heads, x = MultiHead(12, 3, score=made, align=alignment), torch.randn(2, 7, 12)
    whole = heads(x, causal=True, weights=weights)
    memory, steps = None, []
    for piece in x.split([1, 1, 3, 2], dim=1):
        memory = heads.remember(piece, after=memory)
        steps.append(heads(piece, memory, causal=True, weights=weights).context)
    torch.testing.assert_close(torch.cat(steps, 1), whole.context)
    assert len(memory) == 7


def test_other_scores_and_alignments_work_within_each_head():
    x = torch.randn(2, 5, 12)
    for made, alignment in [
        (score.Additive(4, 4, 5), align.softmax),
        (score.Cosine(3.0), align.sparsemax),
        (score.dot, align.LocalMonotonic(1)),
    ]:
        heads = MultiHead(12, 3, score=made, align=alignment)
        result = heads(x, weights=True)
        assert result.weights.shape == (2, 3, 5, 5)
        one_head = result.weights[:, 1]
        torch.testing.assert_close(one_head.sum(-1), torch.ones(2, 5))


def test_padding_never_changes_a_result():
    heads = MultiHead(12, 3)
    short, lengths = torch.randn(1, 3, 12), torch.tensor([3])
    padded = torch.cat([short, torch.randn(1, 4, 12)], dim=1)
    memory = heads.remember(padded, mask.padding(lengths, size=7))
    torch.testing.assert_close(heads(short, memory).context, heads(short).context)


def test_wrong_sizes_are_explained(as_a_user):
    with pytest.raises(OptionError, match="dim=12, num_heads=5"):
        MultiHead(12, 5)
    with pytest.raises(ShapeError, match=r"query .* \(batch, length, 12\); got \(2, 5, 8\)"):
        MultiHead(12, 3)(torch.randn(2, 5, 8))
    with pytest.raises(OptionError, match="bias_k"):
        MultiHead.from_torch(nn.MultiheadAttention(12, 3, add_bias_kv=True))
    heads, x = MultiHead(12, 3), torch.randn(2, 5, 12)
    with pytest.raises(OptionError, match=r"remember\(states\).*float32 tensor \(2, 5, 12\)"):
        heads(x, x)
    with pytest.raises(DtypeError, match=r"float32, the query is torch\.float64"):
        heads(x.double())
    with pytest.raises(ShapeError, match="5 queries and only 3 keys"):
        heads(x, heads.remember(x[:, :3]), causal=True)
    with pytest.raises(MaskError, match=r"\(2, 5\).*mask.padding\(lengths\)"):
        heads.remember(x, torch.ones(2, 5, dtype=torch.bool))
    with pytest.raises(MaskError, match=r"The mask is \(2, 1, 4\).*size=5"):
        heads(x, mask=mask.padding(torch.tensor([4, 2])))
    with pytest.raises(OptionError, match="which Context cannot"):
        MultiHead(12, 3, score=score.Context(5, 4))
    counts_positions = MultiHead(12, 3, score=score.Location(4, 9))
    with pytest.raises(OptionError, match="positions, which start at 0"):
        counts_positions.remember(x, after=counts_positions.remember(x))


def test_a_padded_memory_can_grow():
    heads, prompt, more = MultiHead(12, 3), torch.randn(2, 5, 12), torch.randn(2, 2, 12)
    memory = heads.remember(more, after=heads.remember(prompt, mask.padding(torch.tensor([5, 2]))))
    context = heads(more, memory, causal=True).context
    short = heads.remember(more[1:], after=heads.remember(prompt[1:, :2]))
    torch.testing.assert_close(context[1:], heads(more[1:], short, causal=True).context)


@pytest.mark.parametrize("weights", [False, True])
def test_causal_combines_with_other_masks(weights):
    heads, x, lengths = MultiHead(12, 3), torch.randn(2, 5, 12), torch.tensor([5, 3])
    narrow = mask.window(5, 5, before=2)
    expected = heads(x, mask=mask.padding(lengths) & mask.causal(5) & narrow, weights=weights).context
    memory = heads.remember(x, mask.padding(lengths))
    torch.testing.assert_close(heads(x, memory, mask=narrow, causal=True, weights=weights).context, expected)


def test_heads_may_have_masks_of_their_own():
    heads, x = MultiHead(12, 3), torch.randn(2, 5, 12)
    each = torch.rand(2, 3, 5, 5) > 0.3
    weights = heads(x, mask=each, weights=True).weights
    assert weights[~each].eq(0).all()
    torch.testing.assert_close(heads(x, mask=each).context, heads(x, mask=each, weights=True).context)


@pytest.mark.parametrize("sizes", [(0, 5), (2, 0)], ids=str)
def test_nothing_in_nothing_out(sizes):
    assert MultiHead(12, 3)(torch.randn(*sizes, 12), causal=True).context.shape == (*sizes, 12)


def test_the_dtype_and_the_mode_of_torchs_module_are_kept():
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    ours = MultiHead.from_torch(theirs.eval())
    assert ours.query_layer.weight.equal(theirs.in_proj_weight[:12]), "no detour through float32"
    assert not any(module.training for module in ours.modules())


def test_a_state_reaches_the_alignment():
    heads, x = MultiHead(12, 3, align=align.LocalMonotonic(0)), torch.randn(1, 5, 12)
    weights = heads(x[:, :1], heads.remember(x), weights=True, state=3).weights
    assert weights[0, 0, 0].tolist() == [0, 0, 0, 1, 0]


def test_the_mode_of_one_model_does_not_reach_another():
    first, second = MultiHead(8, 2), MultiHead(8, 2)
    first.eval()
    assert all(module.training for module in second.modules())
    align.softmax.eval()
    try:
        assert all(module.training for module in MultiHead(8, 2).modules())
    finally:
        align.softmax.train()
