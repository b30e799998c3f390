"""Multi-head attention against torch's own, with caches and other scores inside the heads."""

import pytest
import torch
from torch import nn

from regard import MultiHead, align, mask, score
from regard.errors import DtypeError, MaskError, OptionError, ShapeError


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("kdim", "vdim"), [(None, None), (6, 6), (6, 5), (None, 5)])
def test_parity_with_torch(kdim, vdim, bias, dropout):
    theirs = nn.MultiheadAttention(12, 3, bias=bias, kdim=kdim, vdim=vdim, dropout=dropout, batch_first=True)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHead.from_torch(theirs)
    query, states, values = torch.randn(2, 5, 12), torch.randn(2, 7, kdim or 12), torch.randn(2, 7, vdim or 12)
    lengths, added = torch.tensor([7, 3]), torch.randn(2, 3, 5, 7)
    ignore = torch.zeros(2, 7).masked_fill(torch.arange(7) >= lengths[:, None], -torch.inf)
    options = {"key_padding_mask": ignore, "attn_mask": added.flatten(0, 1), "average_attn_weights": False}
    memory = ours.remember(states, mask.padding(lengths), values)
    for asked in (True, False):
        torch.manual_seed(7)
        context, weights = theirs(query, states, values, need_weights=asked, **options)
        torch.manual_seed(7)
        result = ours(query, memory, bias=added, weights=asked)
        torch.testing.assert_close(result.context, context)
        if asked and not dropout:  # after dropout, torch returns other weights
            torch.testing.assert_close(result.weights, weights)
    theirs.eval(), ours.eval()
    torch.testing.assert_close(ours(query, memory, bias=added).context, theirs(query, states, values, **options)[0])
    if kdim == vdim:
        torch.testing.assert_close(
            ours(query, ours.remember(states)).context, theirs(query, states, states, need_weights=False)[0]
        )


@pytest.mark.parametrize("num_key_heads", [1, 2])
def test_several_heads_of_queries_may_share_a_head_of_keys(num_key_heads):
    """As heads whose keys and values have the same parameters."""
    heads, full = MultiHead(12, 4, num_key_heads=num_key_heads), MultiHead(12, 4)
    with torch.no_grad():
        for name, layer in heads.named_children():
            if isinstance(layer, nn.Linear):
                for part in ("weight", "bias"):
                    given = getattr(layer, part)
                    if name in ("key_layer", "value_layer"):
                        nn.init.normal_(given)
                        given = given.unflatten(0, (num_key_heads, 3)).repeat_interleave(4 // num_key_heads, 0)
                    getattr(getattr(full, name), part).copy_(given.reshape(getattr(getattr(full, name), part).shape))
    x, added, narrow = torch.randn(2, 5, 12), torch.randn(1, 4, 5, 5), mask.padding(torch.tensor([5, 3]))
    assert heads.remember(x).keys.shape == (2, num_key_heads, 5, 3)
    for options in ({}, {"weights": True}, {"kernel": "reference"}):
        for causal in (False, True):
            asked = {"bias": added, "mask": narrow, "causal": causal, **options}
            ours, theirs = heads(x, **asked), full(x, **asked)
            torch.testing.assert_close(ours.context, theirs.context)
            assert (ours.weights is None) == (theirs.weights is None)
            if ours.weights is not None:
                torch.testing.assert_close(ours.weights, theirs.weights)
    memory = None
    for step in range(5):
        memory = heads.remember(x[:, step : step + 1], after=memory)
        last = heads(x[:, step : step + 1], memory, causal=True).context
    torch.testing.assert_close(last, full(x, causal=True).context[:, -1:])


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
    if weights:
        assert whole.weights.shape == (2, 3, 7, 7)
        assert inside == "local-p" or (whole.weights.sum(-1) - 1).abs().max() < 1e-5
    memory, steps = None, []
    for piece in x.split([1, 1, 3, 2], dim=1):
        memory = heads.remember(piece, after=memory)
        steps.append(heads(piece, memory, causal=True, weights=weights).context)
    torch.testing.assert_close(torch.cat(steps, 1), whole.context)
    assert len(memory) == 7


def test_padding_never_changes_a_result():
    heads = MultiHead(12, 3)
    short, lengths = torch.randn(1, 3, 12), torch.tensor([3])
    padded = torch.cat([short, torch.randn(1, 4, 12)], dim=1)
    memory = heads.remember(padded, mask.padding(lengths, size=7))
    torch.testing.assert_close(heads(short, memory).context, heads(short).context)


def test_wrong_sizes_are_explained(as_a_user):
    with pytest.raises(OptionError, match="dim=12, num_heads=5"):
        MultiHead(12, 5)
    with pytest.raises(OptionError, match="num_heads=4, num_key_heads=3"):
        MultiHead(12, 4, num_key_heads=3)
    with pytest.raises(OptionError, match="Each head has 4 features; this score or alignment takes 5"):
        MultiHead(12, 3, align=align.LocalPredictive(5))
    with pytest.raises(OptionError, match=r"dropout must be a number from 0 to below 1; got 1\.5"):
        MultiHead(12, 3, dropout=1.5)
    with pytest.raises(ShapeError, match=r"query .* \(batch, length, 12\); got \(2, 5, 8\)"):
        MultiHead(12, 3)(torch.randn(2, 5, 8))
    with pytest.raises(OptionError, match="add_bias_kv, which appends"):
        MultiHead.from_torch(nn.MultiheadAttention(12, 3, add_bias_kv=True))
    with pytest.raises(OptionError, match="add_zero_attn, which appends"):
        MultiHead.from_torch(nn.MultiheadAttention(12, 3, add_zero_attn=True))
    heads, x = MultiHead(12, 3, vdim=5), torch.randn(2, 5, 12)
    with pytest.raises(ShapeError, match=r"values .* \(batch, length, 5\); got \(2, 5, 12\)"):
        heads(x)
    with pytest.raises(ShapeError, match=r"states \(2, 5, 12\), values \(2, 4, 5\)"):
        heads.remember(x, None, x[:, :4, :5])
    heads = MultiHead(12, 3)
    with pytest.raises(ShapeError, match=r"The bias is \(2, 5, 4\) .* = \(2, 5, 5\)"):
        heads(x, bias=x[..., :4])
    with pytest.raises(OptionError, match=r"remember\(states\).*float32 tensor \(2, 5, 12\)"):
        heads(x, x)
    with pytest.raises(
        DtypeError, match=r"query and the parameters of this MultiHead .* got torch\.float64 and torch\.float32"
    ):
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
