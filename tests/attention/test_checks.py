"""Wrong input gets an error that shows what was given and says what to change."""

import pytest
import torch
from torch import nn

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


def test_finite_input_passes_the_check():
    torch.testing.assert_close(attend(QUERY, KEY, check_finite=True).context, attend(QUERY, KEY).context)


def test_errors_are_also_the_errors_of_python():
    assert issubclass(ShapeError, ValueError)
    assert issubclass(DtypeError, TypeError)


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


META = torch.device("meta")
HEADED = {"query": QUERY[:, None].expand(2, 4, 3, 5), "key": KEY[:, None].expand(2, 4, 7, 5)}
ADDITIVE, PLAIN = Attention(score.Additive(5, 7, 3)), Attention()
REMEMBERED = ADDITIVE.remember(torch.randn(2, 4, 7))


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        # Parts that cannot work.
        (lambda: score.Location(5, 0), OptionError, "max_length must be a whole number, 1 or more; got 0"),
        (lambda: score.MLP(5, 7, activation=nn.PReLU()), OptionError, "must have no parameters"),
        (
            lambda: score.MLP(5, 7, activation=nn.Sequential(nn.Tanh(), nn.Dropout(0.5))),
            OptionError,
            "must have no parameters and draw",
        ),
        (lambda: score.MLP(5, 7, dims=()), OptionError, r"dims=\(\)"),
        (lambda: align.LocalMonotonic(1.5), OptionError, r"window must be a whole number, 0 or more; got 1\.5"),
        (lambda: align.Addressing(0.5, torch.ones(1, 3), torch.ones(1, 1)), ShapeError, "gate must be a tensor"),
        (lambda: Attention(dropout=1), OptionError, "dropout must be a number from 0 to below 1; got 1"),
        # Memories.
        (lambda: ADDITIVE.remember(KEY), ShapeError, "keys of 7 features; these have 5"),
        (lambda: ADDITIVE(QUERY, KEY), OptionError, r"Create a memory with remember\(states\)"),
        (lambda: ADDITIVE(torch.randn(2, 3, 11), REMEMBERED), ShapeError, "queries of 5 features; these have 11"),
        (
            lambda: ADDITIVE(
                QUERY, ADDITIVE.remember(torch.randn(2, 4, 7), mask.padding(torch.tensor([2, 2]), size=9))
            ),
            MaskError,
            r"= \(2, 1, 4\)",
        ),
        (
            lambda: Attention(score.Additive(5, 5, 3))(QUERY, Attention(score.Additive(5, 5, 4)).remember(KEY)),
            ShapeError,
            "compares 3 features, but the keys of this memory were projected to 4",
        ),
        # What is added to the logits, or replaces the weights.
        (
            lambda: attend(**HEADED, mask=torch.ones(2, 3, 7).bool()),
            MaskError,
            r"There are heads.*mask\.unsqueeze\(1\)",
        ),
        (lambda: attend(QUERY, KEY, bias=torch.ones(3, 7).bool()), DtypeError, r"got a torch\.bool .* is a mask"),
        (lambda: attend(QUERY, KEY, bias=torch.ones(3, 6)), ShapeError, r"bias is \(3, 6\) .* = \(2, 3, 7\)"),
        (lambda: attend(QUERY, KEY, bias=torch.ones(3, 7, device=META)), DtypeError, "bias is on meta, the values on"),
        (lambda: attend(QUERY, KEY, dropout=-0.1), OptionError, r"from 0 to below 1; got -0\.1"),
        (lambda: attend(QUERY, KEY, grouped=True), ShapeError, r"multiple of those of key and value, \(\.\.\., b, g"),
        (lambda: attend(HEADED["query"], HEADED["key"][:, :3], grouped=True), ShapeError, r"\(2, 3, 7, 5\)"),
        (
            lambda: PLAIN(QUERY, PLAIN.remember(KEY), override=torch.ones(2, 1, 6)),
            ShapeError,
            r"override is \(2, 1, 6\).*= \(2, 3, 7\)",
        ),
        (
            lambda: PLAIN(QUERY, PLAIN.remember(KEY), override="first"),
            DtypeError,
            r"override must be a tensor of weights.*got str 'first'",
        ),
        # Devices and dtypes.
        (lambda: attend(QUERY, KEY, VALUE.to(META)), DtypeError, "key and value must be on one .*cpu and meta"),
        (lambda: attend(QUERY.to(META), KEY, VALUE), DtypeError, "query and value must be on one .*meta and cpu"),
        (lambda: attend(QUERY, KEY, mask=torch.ones(3, 7, device=META).bool()), MaskError, "is on meta, the values on"),
        (
            lambda: attend(QUERY.double(), KEY.double(), align=align.LocalPredictive(5)),
            DtypeError,
            r"parameters of LocalPredictive must have one dtype; got torch\.float64",
        ),
        *[
            (lambda made=made: attend(QUERY, KEY, score=made), DtypeError, f"{name} must be on one device")
            for made, name in (
                (score.Additive(5, 5, 3).to(META), "parameters of Additive"),
                (score.Location(5, 9).to(META), "parameters of Location"),
                (score.Cosine(torch.ones(3, 1, device=META)), "buffers of Cosine"),
            )
        ],
        *[
            (lambda made=made: attend(QUERY, KEY, align=made), DtypeError, f"query and the {name} .* got cpu and meta")
            for made, name in (
                (align.LocalPredictive(5).to(META), "parameters of LocalPredictive"),
                (align.Addressing(*(torch.ones(3, n, device=META) for n in (1, 3, 1))), "buffers of Addressing"),
            )
        ],
        (lambda: MultiHead(6, 2).to(META)(torch.randn(2, 3, 6)), DtypeError, "of this MultiHead .* got cpu and meta"),
    ],
)
def test_what_cannot_work_is_explained(wrong, error, says):
    with pytest.raises(error, match=f"(?s){says}"):
        wrong()


def test_heads_may_have_a_mask_for_all_of_them():
    attend(**HEADED, mask=torch.ones(2, 3, 7).bool().unsqueeze(1))
