"""Dropout that stays the same for a sentence."""

import torch
from torch import nn

from regard.layers.dropout import DroppedWords, LockedDropout


def test_a_feature_is_dropped_from_every_word_of_a_sentence_or_from_none():
    dropped = LockedDropout(0.5)(torch.ones(7, 5, 11))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])


def test_a_word_is_dropped_wherever_it_occurs():
    words = torch.tensor([[1, 2, 3, 1], [3, 2, 1, 4]])
    embedding = nn.Embedding(13, 5)
    embedded = DroppedWords(embedding, 0.5)(words.repeat(1, 50))
    for word in range(1, 5):
        kinds = embedded[words.repeat(1, 50) == word] / embedding.weight[word]
        assert kinds.round(decimals=4).unique().numel() == 1


def test_nothing_is_dropped_in_evaluation_or_at_rate_0():
    states, embedding = torch.randn(2, 3, 5), nn.Embedding(7, 5)
    assert LockedDropout(0.5).eval()(states) is states
    assert LockedDropout(0.0)(states) is states
    words = torch.tensor([[1, 2]])
    assert torch.equal(DroppedWords(embedding, 0.9).eval()(words), embedding(words))
