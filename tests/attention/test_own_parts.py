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
    [
        "softmax",
        None,
        3,
        lambda logits: logits,
        lambda logits, temperature=2.0: logits / temperature,
        torch.softmax,
        nn.functional.softmax,
        nn.functional.gumbel_softmax,
        nn.Softmax(-1),
        nn.ReLU,
    ],
    ids=["text", "none", "number", "one argument", "option", "builtin", "axis", "torch", "module", "class"],
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
    with pytest.raises(OptionError, match=r"must define weigh\(logits, allowed, state, window, \*, soft=False\)"):
        attend(QUERY, KEY, align=align.Align())
    with pytest.raises(TypeError, match=r"must define reference\(query, key\)"):
        attend(QUERY, KEY, score=score.Score())


class Careless(align.Align):
    """Ignores the mask."""

    def weigh(self, logits, allowed, state, window, *, soft=False):
        return Focus(logits.softmax(-1))


class CarelessChoice(align.Align):
    """Chooses the first key, whether or not it is masked."""

    def weigh(self, logits, allowed, state, window, *, soft=False):
        return Focus(index=torch.zeros(logits.shape[:-1], dtype=torch.int64))


class CarelessWindow(Careless):
    def choose_window(self, query, num_keys, mask, state):
        return align.Window.around(torch.ones(query.shape[:-1]), 2, num_keys)


@pytest.mark.parametrize("own", [Careless(), CarelessChoice(), CarelessWindow()], ids=lambda own: type(own).__name__)
def test_an_own_alignment_never_gives_weight_to_a_masked_key(own):
    hidden = ALLOWED.clone()
    hidden[:, :, 0] = False
    attended = attend(QUERY, KEY, VALUE, align=own, mask=hidden, weights=True)
    assert attended.weights.masked_select(~hidden).eq(0).all()
    torch.testing.assert_close(attended.context, attended.weights @ VALUE)
    heads = MultiHead(6, 2, align=own)(torch.randn(2, 3, 6), causal=True, weights=True)
    assert heads.weights.triu(1).eq(0).all()


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("returned", "error", "says"),
    [
        (
            lambda logits: logits.softmax(-1),
            DtypeError,
            r"Own returned a torch\.float32 tensor .*return Focus\(weights",
        ),
        (lambda logits: Focus(logits.sum(-1)), ShapeError, r"weights a torch\.float32 tensor \(2, 3\).*\(2, 3, 7\)"),
        (lambda logits: Focus(), ShapeError, "without weights, and with the index NoneType"),
        (lambda logits: Focus(index=logits), ShapeError, r"torch\.int64 tensor \(\.\.\., q\) = \(2, 3\)"),
    ],
    ids=["tensor", "shape", "nothing", "index"],
)
def test_what_an_own_class_must_return_is_explained(returned, error, says):
    class Own(align.Align):
        def weigh(self, logits, allowed, state, window, *, soft=False):
            return returned(logits)

    with pytest.raises(error, match=says):
        attend(QUERY, KEY, align=Own())


def test_a_signature_of_weigh_that_cannot_be_called_is_refused_with_the_right_one():
    with pytest.raises(OptionError, match=r"Own\.weigh\(.*'soft'.* Define it as weigh\(self, logits, .*soft=False\)"):

        class Own(align.Align):
            def weigh(self, logits, allowed, state, window):
                return Focus(logits.softmax(-1))


@pytest.mark.parametrize("own", [align.uniform, align.Spatial(window=2)], ids=["uniform", "spatial"])
def test_a_bias_of_minus_infinity_hides_keys_where_there_are_no_scores(own):
    bias = torch.where(ALLOWED, 0.5, -torch.inf)
    expected = attend(QUERY, KEY, VALUE, align=own, mask=ALLOWED, weights=True)
    hidden = attend(QUERY, KEY, VALUE, align=own, bias=bias, weights=True)
    torch.testing.assert_close(hidden.weights, expected.weights, rtol=0, atol=0)
    earlier = mask.window(3, 7, before=2)
    both = attend(QUERY, KEY, VALUE, align=own, mask=earlier, bias=bias, weights=True)
    expected = attend(QUERY, KEY, VALUE, align=own, mask=earlier & ALLOWED, weights=True)
    torch.testing.assert_close(both.weights, expected.weights, rtol=0, atol=0)


@pytest.mark.usefixtures("as_a_user")
def test_a_score_is_no_alignment_and_an_alignment_no_score():
    with pytest.raises(OptionError, match="Softmax is an alignment, not a score"):
        attend(QUERY, KEY, score=align.softmax)
    with pytest.raises(OptionError, match="Dot is a score, not an alignment"):
        attend(QUERY, KEY, align=score.dot)


def test_the_sizes_of_a_score_of_heads_are_told():
    with pytest.raises(OptionError, match=r"takes 16\. Create it with query_dim=8 and, if it is a score, key_dim=8"):
        MultiHead(16, 2, score=score.Additive(16, 16, 8))
    assert MultiHead(16, 2, score=score.Additive(8, 8, 8))(torch.randn(2, 3, 16)).context.shape == (2, 3, 16)
