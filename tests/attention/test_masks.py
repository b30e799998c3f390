"""Masks: True means may attend."""

import pytest
import torch

from regard import mask
from regard.errors import DtypeError, OptionError


def test_padding_opens_the_first_keys_of_each_example():
    allowed = mask.padding(torch.tensor([3, 1]))
    assert allowed.shape == (2, 1, 3)
    assert allowed[:, 0].tolist() == [[True, True, True], [True, False, False]]
    assert mask.padding(torch.tensor([3, 1]), size=5).shape == (2, 1, 5)
    assert mask.padding(torch.tensor([3, 1])[:, None], size=5).shape == (2, 1, 1, 5)


def test_causal_opens_the_past_and_strict_leaves_out_the_word_itself():
    assert mask.causal(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert mask.causal(3, strict=True).tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    assert mask.causal(2, past=2).tolist() == [[True, True, True, False], [True, True, True, True]]


def test_window_opens_the_neighbours():
    assert mask.window(3, 4, before=1, after=0).tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [False, True, True, False],
    ]
    assert mask.window(2, 3, before=1).equal(mask.window(2, 3, before=1, after=1))


def test_a_padding_mask_under_vmap_has_a_given_size(as_a_user):
    lengths = torch.tensor([[3, 1], [4, 0]])
    assert torch.vmap(lambda each: mask.padding(each, 4))(lengths).equal(mask.padding(lengths, 4))
    with pytest.raises(OptionError, match=r"under torch\.vmap have no values; give the size"):
        torch.vmap(mask.padding)(lengths)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
@pytest.mark.filterwarnings("error::torch.jit.TracerWarning")
@pytest.mark.parametrize("sized", [False, True])
def test_a_traced_padding_mask_follows_its_sizes(as_a_user, sized):
    def masked(key, lengths):
        return mask.padding(lengths, key.shape[1]) if sized else mask.padding(lengths)

    traced = torch.jit.trace(masked, (torch.randn(2, 5, 3), torch.tensor([5, 3])))
    given = torch.randn(3, 7, 3), torch.tensor([7, 1, 2])
    assert traced(*given).equal(masked(*given))


def test_masks_combine():
    padding, causal = mask.padding(torch.tensor([2, 3])), mask.causal(3)
    both, either = padding & causal, padding | causal
    assert both.shape == either.shape == (2, 3, 3)
    assert both[0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert either[0, 2].all()


def test_unpadded_length_is_one_past_the_last_open_key():
    allowed = torch.tensor([[True, True, False, False], [True, False, True, False], [False] * 4])
    assert mask.unpadded_length(allowed).tolist() == [2, 3, 0]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda: mask.padding([3, 1]), DtypeError, "integers.*got list"),
        (lambda: mask.padding(torch.tensor([3.0, 1.0])), DtypeError, r"got torch.float32 \(2,\)"),
        (lambda: mask.padding(torch.tensor([7, 4]), 5), OptionError, "size=5 would cut a length of 7"),
        (lambda: mask.padding(torch.tensor([3, -1])), OptionError, "Lengths must be 0 or more; got -1"),
        (lambda: mask.padding(torch.tensor([3, -2]), 5), OptionError, "Lengths must be 0 or more; got -2"),
        (lambda: mask.padding(torch.tensor([1]), 2.5), OptionError, r"whole number, 0 or more; got 2\.5"),
        (lambda: mask.padding(torch.tensor([1]), -1), OptionError, "whole number, 0 or more; got -1"),
        (lambda: mask.padding(torch.zeros(2, device="meta").long()), OptionError, r"padding\(lengths, size=\.\.\.\)"),
        (lambda: mask.causal(-1), OptionError, "n=-1"),
        (lambda: mask.window(3, 3, before=-2), OptionError, "before=-2"),
        (lambda: mask.window(-1, 3, before=1), OptionError, "num_queries=-1"),
    ],
)
def test_wrong_sizes_are_explained(as_a_user, wrong, error, says):
    with pytest.raises(error, match=says):
        wrong()
