import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.encoders.recurrent import RecurrentEncoder, packed_positions
from regard.errors import ShapeError


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("lengths", [[3, 7, 1, 7, 5], [2], [4, 4]])
def test_the_states_and_gradients_are_those_of_torchs_own_packing(device, cell, bidirectional, num_layers, lengths):
    width, lengths = max(lengths) + 1, torch.tensor(lengths)
    encoder = RecurrentEncoder(nn.Embedding(9, 6), 5, cell=cell, num_layers=num_layers, bidirectional=bidirectional).to(
        device
    )
    source = torch.randint(9, (len(lengths), width), device=device)

    def packed_by_torch():
        packed = pack_padded_sequence(encoder.embedding(source), lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(encoder.network(packed)[0], batch_first=True, total_length=width)[0]

    ours, theirs = encoder(source, lengths).states, packed_by_torch()
    torch.testing.assert_close(ours, theirs)
    weights = list(encoder.parameters())
    pull = torch.randn_like(ours)
    ours, theirs = (torch.autograd.grad(states, weights, pull) for states in (ours, theirs))
    torch.testing.assert_close(ours, theirs)


def test_lengths_may_be_on_either_device(device):
    encoder, source = RecurrentEncoder(nn.Embedding(9, 6), 5).to(device), torch.randint(9, (2, 4), device=device)
    here, there = (encoder(source, torch.tensor([4, 2], device=where)) for where in ("cpu", device))
    torch.testing.assert_close(here.states, there.states)
    assert here.mask.device.type == here.summary.device.type == device


def test_packing_is_word_by_word_with_the_longest_sentence_first():
    positions, rows = packed_positions(torch.tensor([1, 3]), width=4)
    assert positions.tolist() == [4, 0, 5, 6]
    assert rows.tolist() == [2, 1, 1]


@pytest.mark.parametrize("lengths", [[0, 2], [2, 5], []])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ShapeError, match="from 1 to 4 here"):
        packed_positions(torch.tensor(lengths, dtype=torch.long), width=4)


@pytest.mark.usefixtures("as_a_user")
def test_there_must_be_one_length_per_sentence():
    encoder = RecurrentEncoder(nn.Embedding(9, 6), 5)
    with pytest.raises(ShapeError, match=r"one length per sentence; got lengths \(1,\) for sentences \(2, 4\)"):
        encoder(torch.zeros(2, 4, dtype=torch.long), torch.tensor([4]))
