"""Scores and alignments of a user's own work like the built-in ones."""

import pytest
import torch
from torch import nn

from regard import Attention, MultiHead, align, attend, mask, score
from regard.attention.align import Focus, masked_softmax
from regard.attention.coverage import Coverage
from regard.attention.score import Product
from regard.errors import DtypeError, OptionError, ShapeError

QUERY, KEY, VALUE = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 4)
ALLOWED = mask.padding(torch.tensor([7, 4]))


class Bilinear(score.Score):
    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.matrix = nn.Parameter(torch.randn(query_dim, key_dim))

    def project_key(self, key):
        return key @ self.matrix.T

    def reference(self, query, key):
        return query @ key.mT


class Distance(Product):
    """Another formula under the name of a product: kernels for products must not serve it."""

    def reference(self, query, key):
        return -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)


class Sigmoid(score.Additive):
    """Another activation under the name of an additive score."""

    def reference(self, query, key):
        return torch.sigmoid(query.unsqueeze(-2) + key.unsqueeze(-3)) @ self.direction


class Sharp(align.Align):
    def weigh(self, logits, allowed, state, window, *, soft=False):
        return Focus(masked_softmax(2 * logits, allowed), state=(state or 0) + 1)


def sharp(logits, allowed):
    return (logits if allowed is None else logits.masked_fill(~allowed, -1e9)).mul(2).softmax(-1)


def test_an_own_score_equals_the_built_in_one():
    own, built_in = Bilinear(5, 5), score.General(5, 5)
    with torch.no_grad():
        built_in.layer.weight.copy_(own.matrix)
    for weights in (False, True):
        ours = attend(QUERY, KEY, VALUE, score=own, mask=ALLOWED, weights=weights)
        theirs = attend(QUERY, KEY, VALUE, score=built_in, mask=ALLOWED, weights=weights)
        torch.testing.assert_close(ours.context, theirs.context)
    with pytest.raises(ShapeError, match=r"keys of 5 features; these have 4\. Create it with key_dim=4"):
        attend(QUERY, KEY[..., :4], score=own)


@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize("own", [Distance(), Sigmoid(5, 5, 6)], ids=["product", "additive"])
def test_an_own_formula_in_a_subclass_is_never_replaced_by_a_kernel(own, kernel):
    logits = own.reference(own.project_query(QUERY), own.project_key(KEY))
    expected = logits.masked_fill(~ALLOWED, -torch.inf).softmax(-1) @ VALUE
    torch.testing.assert_close(attend(QUERY, KEY, VALUE, score=own, mask=ALLOWED, kernel=kernel).context, expected)
    torch.testing.assert_close(own(QUERY, KEY), logits)


@pytest.mark.parametrize("own", [Sharp(), sharp], ids=["class", "function"])
def test_an_own_alignment_works_everywhere(own):
    expected = attend(2 * QUERY, KEY, VALUE, mask=ALLOWED, weights=True)
    ours = attend(QUERY, KEY, VALUE, align=own, mask=ALLOWED, weights=True)
    torch.testing.assert_close(ours.context, expected.context)
    torch.testing.assert_close(ours.weights, expected.weights)
    attention = Attention(score.scaled_dot, own)
    torch.testing.assert_close(attention(QUERY, attention.remember(KEY, ALLOWED, VALUE)).context, expected.context)
    heads = MultiHead(8, 2, align=own)
    assert heads(torch.randn(2, 3, 8), weights=True).weights.shape == (2, 2, 3, 3)
    covered = Coverage(score.Additive(5, 5, 6), own, key_dim=5)
    assert covered(QUERY, covered.remember(KEY)).context.shape == (2, 3, 5)
    assert attend(QUERY, KEY, VALUE, align=own, mask=ALLOWED & False, weights=True).weights.eq(0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_an_own_alignment_may_have_parameters_of_another_dtype(dtype):
    class Tempered(align.Align):
        def __init__(self):
            super().__init__()
            self.temperature = nn.Parameter(torch.tensor(0.5))

        def weigh(self, logits, allowed, state, window, *, soft=False):
            return Focus(masked_softmax(logits / self.temperature, allowed))

    query, key = QUERY.to(dtype), KEY.to(dtype)
    expected = attend(2 * query, key, weights=True)
    torch.testing.assert_close(attend(query, key, align=Tempered(), weights=True).weights, expected.weights)
    codes = score.codes(["ab", "cd"])
    assert attend(codes, codes, torch.eye(2), score=score.equality, align=Tempered()).context.shape == (2, 2)


def test_an_own_alignment_keeps_its_state():
    attention = Attention(score.dot, Sharp())
    memory = attention.remember(KEY)
    first = attention(QUERY, memory)
    assert attention(QUERY, memory, state=first.state).state == 2


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    "wrong",
    ["softmax", None, 3, lambda logits: logits, torch.softmax, nn.Softmax(-1), nn.ReLU],
    ids=["text", "none", "number", "one argument", "builtin", "module", "class"],
)
def test_what_cannot_be_an_alignment_is_refused_with_how_to_write_one(wrong):
    with pytest.raises(
        OptionError, match=r"function \(logits, mask\) -> weights, or .* regard\.align\.Align .*weigh\("
    ):
        attend(QUERY, KEY, align=wrong)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda query, key: None, DtypeError, "returned NoneType None; it must return real logits"),
        (lambda query, key: 1.0, DtypeError, r"returned float 1\.0"),
        (lambda query, key: (query @ key.mT).to(torch.complex64), DtypeError, "complex logits, torch.complex64"),
        (lambda query, key: query @ key.mT[..., :3], ShapeError, r"logits \(2, 3, 3\) .*= \(2, 3, 7\)"),
    ],
    ids=["none", "number", "complex", "shape"],
)
def test_what_an_own_score_must_return_is_explained(wrong, error, says):
    with pytest.raises(error, match=says):
        attend(QUERY, KEY, score=wrong)


@pytest.mark.usefixtures("as_a_user")
def test_what_an_own_alignment_must_return_is_explained():
    with pytest.raises(ShapeError, match=r"returned NoneType for logits \(2, 3, 7\).*subclass of regard\.align\.Align"):
        attend(QUERY, KEY, align=lambda logits, allowed: None)
    with pytest.raises(ShapeError, match=r"returned torch\.float32 \(2, 3\) for logits \(2, 3, 7\)"):
        attend(QUERY, KEY, align=lambda logits, allowed: logits.sum(-1))
    with pytest.raises(TypeError, match=r"must define weigh\(logits, allowed, state, window, \*, soft=False\)"):
        attend(QUERY, KEY, align=align.Align())
    with pytest.raises(TypeError, match=r"must define reference\(query, key\)"):
        attend(QUERY, KEY, score=score.Score())
