"""Wrong input gets an error that shows what was given and says what to change."""

import pytest
import torch

from regard import Attention, MultiHead, RegardError, align, attend, mask, score
from regard.errors import DtypeError, KernelError, MaskError, NonFiniteError, OptionError, ShapeError

pytestmark = pytest.mark.usefixtures("as_a_user")

QUERY, KEY, VALUE = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 11)
CODES = score.codes(["ab", "cd"])


@pytest.mark.parametrize(
    ("query", "key", "value", "options", "error", "says"),
    [
        (QUERY, KEY, VALUE[:, :4], {}, ShapeError, r"key \(2, 7, 5\) has 7, the value \(2, 4, 11\) has 4"),
        (QUERY[..., :4], KEY, VALUE, {}, ShapeError, r"got 4 and 5.*General\(query_dim=4, key_dim=5\)"),
        (QUERY[:1].expand(3, 3, 5), KEY, VALUE, {}, ShapeError, r"leading axes.*\(3, 3, 5\), \(2, 7, 5\)"),
        (QUERY[0, 0], KEY, VALUE, {}, ShapeError, r"query must have the axes \(\.\.\., q, d\); got \(5,\)"),
        (QUERY, KEY, VALUE, {"score": score.Additive(4, 5, 3)}, ShapeError, "queries of 4 features; these have 5"),
        (QUERY, KEY, VALUE, {"score": score.Additive(5, 4, 3)}, ShapeError, "keys of 4 features; these have 5"),
        (QUERY, KEY, VALUE, {"score": score.MLP(5, 4)}, ShapeError, "keys of 4 features; these have 5"),
        (QUERY, KEY, VALUE, {"score": score.Location(4, 9)}, ShapeError, "queries of 4 features"),
        (QUERY.long(), KEY, VALUE, {}, DtypeError, r"query must have a floating dtype; got torch\.int64"),
        (QUERY, KEY, VALUE.int(), {}, DtypeError, r"value must have a floating dtype.*value\.float\(\)"),
        (QUERY, KEY, VALUE.double(), {}, DtypeError, "key and value must have one dtype.*float32 and torch.float64"),
        (QUERY.half(), KEY, VALUE, {}, DtypeError, "query and value must have one dtype.*float16 and torch.float32"),
        (
            QUERY.double(),
            KEY.double(),
            VALUE.double(),
            {"score": score.General(5, 5)},
            DtypeError,
            "parameters of General",
        ),
        (QUERY, KEY.tolist(), VALUE, {}, DtypeError, "key must be a tensor; got list"),
        (CODES, CODES, None, {"score": score.equality}, DtypeError, "pass a value to read"),
        (None, KEY, VALUE, {}, OptionError, "ScaledDot needs a query"),
        (QUERY, KEY, VALUE, {"score": score.Context(3, 5)}, OptionError, r"query=None; got a torch.float32 tensor"),
        (QUERY, KEY, VALUE, {"kernel": "fast"}, KernelError, "'auto', 'reference', 'fused'; got 'fast'"),
        (QUERY, KEY, VALUE, {"kernel": "fused", "weights": True}, KernelError, "does not return weights"),
        (
            QUERY,
            KEY,
            VALUE,
            {"kernel": "fused", "align": align.Hard()},
            KernelError,
            "no fused kernel for ScaledDot with",
        ),
        (QUERY, KEY, VALUE, {"align": align.normalised}, OptionError, "0 or more; the smallest here is -"),
        (QUERY, KEY, VALUE, {"mask": torch.ones(2, 7).bool()}, MaskError, r"\(2, 7\).*mask\.padding\(lengths\)"),
        (QUERY, KEY, VALUE, {"mask": torch.ones(3, 6).bool()}, MaskError, r"\(3, 6\).*= \(2, 3, 7\)"),
        (QUERY, KEY, VALUE, {"mask": torch.ones(2, 3, 7)}, MaskError, "bool tensor in which True means 'may attend'"),
        (QUERY, KEY, VALUE, {"mask": "causal"}, MaskError, "got str 'causal'"),
        (QUERY[None], KEY[None], VALUE[None], {"mask": torch.ones(2, 3, 7).bool()[None, None]}, MaskError, "broadcast"),
        (QUERY[:, 0], KEY, VALUE, {}, ShapeError, r"query \(2, 5\) and key \(2, 7, 5\).*query\.unsqueeze\(-2\)"),
        (QUERY, KEY, VALUE, {"score": "dot"}, OptionError, "got str 'dot'"),
        (QUERY, KEY, VALUE, {"score": score.Dot}, OptionError, r"Dot\(\.\.\.\), not the class"),
        (QUERY, KEY, VALUE, {"align": "softmax"}, OptionError, "got str 'softmax'"),
        (QUERY, KEY, VALUE, {"align": align.Hard}, OptionError, r"Hard\(\.\.\.\), not the class"),
        (QUERY, KEY, VALUE, {"score": lambda q, k: q.sum(-1)}, ShapeError, r"logits \(2, 3\) .*= \(2, 3, 7\)"),
        (QUERY, KEY, VALUE, {"mask": mask.padding(torch.tensor([5, 2]))}, MaskError, r"padding\(lengths, size=7\)"),
        (
            QUERY * torch.nan,
            KEY,
            VALUE,
            {"check_finite": True},
            NonFiniteError,
            r"query .* 30 value\(s\).*nan at \[0, 0",
        ),
        (QUERY, KEY / 0, VALUE, {"check_finite": True}, NonFiniteError, "key"),
    ],
)
def test_wrong_input_is_explained(query, key, value, options, error, says):
    with pytest.raises(error, match=f"(?s){says}") as caught:
        attend(query, key, value, **options)
    assert isinstance(caught.value, RegardError)


def test_a_mask_without_an_axis_for_heads_is_explained():
    query, key = QUERY[:, None].expand(2, 4, 3, 5), KEY[:, None].expand(2, 4, 7, 5)
    with pytest.raises(MaskError, match=r"There are heads.*mask\.unsqueeze\(1\)"):
        attend(query, key, mask=torch.ones(2, 3, 7).bool())
    attend(query, key, mask=torch.ones(2, 3, 7).bool().unsqueeze(1))


def test_a_memory_is_checked_when_it_is_created_and_when_it_is_queried():
    attention = Attention(score.Additive(5, 7, 3))
    with pytest.raises(ShapeError, match="keys of 7 features; these have 5"):
        attention.remember(KEY)
    memory = attention.remember(torch.randn(2, 4, 7))
    with pytest.raises(OptionError, match=r"Create a memory with remember\(states\)"):
        attention(QUERY, KEY)
    with pytest.raises(ShapeError, match="queries of 5 features; these have 11"):
        attention(torch.randn(2, 3, 11), memory)
    with pytest.raises(MaskError, match=r"= \(2, 3, 4\)"):
        attention(QUERY, attention.remember(torch.randn(2, 4, 7), mask.padding(torch.tensor([2, 2]), size=9)))


def test_the_activation_of_a_network_must_not_have_parameters():
    with pytest.raises(OptionError, match="must have no parameters"):
        score.MLP(5, 7, activation=torch.nn.PReLU())
    with pytest.raises(OptionError, match=r"dims=\(\)"):
        score.MLP(5, 7, dims=())


def test_finite_input_passes_the_check():
    torch.testing.assert_close(attend(QUERY, KEY, check_finite=True).context, attend(QUERY, KEY).context)


def test_errors_are_also_the_errors_of_python():
    assert issubclass(ShapeError, ValueError)
    assert issubclass(DtypeError, TypeError)


def test_tensors_on_other_devices_are_refused():
    with pytest.raises(DtypeError, match="key and value must be on one device; got cpu and meta"):
        attend(QUERY, KEY, VALUE.to("meta"))
    with pytest.raises(DtypeError, match="query and value must be on one device; got meta and cpu"):
        attend(QUERY.to("meta"), KEY, VALUE)
    with pytest.raises(MaskError, match="mask is on meta, the values on cpu"):
        attend(QUERY, KEY, VALUE, mask=torch.ones(3, 7, dtype=torch.bool, device="meta"))


def test_a_memory_of_another_attention_is_refused():
    other = Attention(score.Additive(5, 5, 4)).remember(KEY)
    with pytest.raises(ShapeError, match="compares 3 features, but the keys of this memory were projected to 4"):
        Attention(score.Additive(5, 5, 3))(QUERY, other)


def test_parts_that_cannot_work_are_refused_when_they_are_created():
    with pytest.raises(OptionError, match="max_length=0"):
        score.Location(5, 0)
    with pytest.raises(OptionError, match=r"whole number .*window=1\.5"):
        align.LocalMonotonic(1.5)
    with pytest.raises(OptionError, match="must have no parameters and draw"):
        score.MLP(5, 7, activation=torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Dropout(0.5)))
    with pytest.raises(ShapeError, match="gate must be a tensor"):
        align.Addressing(0.5, torch.ones(1, 3), torch.ones(1, 1))
    with pytest.raises(DtypeError, match=r"parameters of LocalPredictive must have one dtype; got torch\.float64"):
        attend(QUERY.double(), KEY.double(), VALUE.double(), align=align.LocalPredictive(5))


def test_an_override_of_the_wrong_size_is_refused():
    attention = Attention()
    with pytest.raises(ShapeError, match=r"override is \(2, 1, 6\).*= \(2, 3, 7\)"):
        attention(QUERY, attention.remember(KEY), override=torch.ones(2, 1, 6))


@pytest.mark.parametrize("made", [score.scaled_dot, score.dot, score.cosine], ids=["scaled_dot", "dot", "cosine"])
@pytest.mark.parametrize("num_queries", [1, 3])
def test_queries_without_features_match_every_key_equally(made, num_queries):
    query, key = torch.zeros(2, num_queries, 0), torch.zeros(2, 7, 0)
    for kernel in ("auto", "reference"):
        context = attend(query, key, VALUE, score=made, kernel=kernel).context
        torch.testing.assert_close(context, VALUE.mean(1, keepdim=True).expand(2, num_queries, 11))


def test_shapes_can_be_computed_on_the_meta_device():
    query, key, value = QUERY.to("meta"), KEY.to("meta"), VALUE.to("meta")
    for alignment in (
        align.softmax,
        align.none,
        align.normalised,
        align.uniform,
        align.Hard(),
        align.LocalMonotonic(2),
    ):
        context, weights = attend(query, key, value, align=alignment, weights=True, check_finite=True)
        assert (context.shape, weights.shape, context.device.type) == ((2, 3, 11), (2, 3, 7), "meta")
    for made in (score.Additive(5, 5, 3), score.MLP(5, 5), score.General(5, 5), score.Location(5, 9)):
        assert attend(query, key, value, score=made.to("meta")).context.shape == (2, 3, 11)


def test_parts_on_another_device_are_explained():
    for made in (score.Additive(5, 5, 3), score.Location(5, 9)):
        with pytest.raises(DtypeError, match=f"parameters of {type(made).__name__} must be on one device"):
            attend(QUERY, KEY, VALUE, score=made.to("meta"))
    with pytest.raises(DtypeError, match="buffers of Cosine must be on one device"):
        attend(QUERY, KEY, VALUE, score=score.Cosine(torch.ones(3, 1, device="meta")))
    with pytest.raises(DtypeError, match=r"query and the parameters of LocalPredictive .* got cpu and meta"):
        attend(QUERY, KEY, VALUE, align=align.LocalPredictive(5).to("meta"))
    with pytest.raises(DtypeError, match=r"query and the buffers of Addressing .* got cpu and meta"):
        attend(QUERY, KEY, VALUE, align=align.Addressing(*(torch.ones(3, n, device="meta") for n in (1, 3, 1))))
    with pytest.raises(DtypeError, match=r"query and the parameters of this MultiHead .* got cpu and meta"):
        MultiHead(6, 2).to("meta")(torch.randn(2, 3, 6))


def test_masks_of_impossible_sizes_are_refused():
    with pytest.raises(OptionError, match="Lengths must be 0 or more; got -1"):
        mask.padding(torch.tensor([3, -1]))
    with pytest.raises(OptionError, match="Lengths must be 0 or more; got -2"):
        mask.padding(torch.tensor([3, -2]), 5)
    with pytest.raises(OptionError, match=r"whole number, 0 or more; got 2\.5"):
        mask.padding(torch.tensor([1]), 2.5)
    with pytest.raises(OptionError, match=r"give the size: padding\(lengths, size=\.\.\.\)"):
        mask.padding(torch.zeros(2, dtype=torch.long, device="meta"))
    with pytest.raises(OptionError, match="num_queries=-1"):
        mask.window(-1, 3, before=1)


def test_an_override_must_be_a_tensor_of_weights():
    attention = Attention()
    with pytest.raises(DtypeError, match=r"override must be a tensor of weights.*got str 'first'"):
        attention(QUERY, attention.remember(KEY), override="first")
