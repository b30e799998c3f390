"""Attention under padding masks is exported with sizes that may change, and compiled as one graph."""

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from regard import Attention, MultiHead, align, attend, mask, score

pytestmark = pytest.mark.usefixtures("as_a_user")  # annotations that are checked would be traced too
DIM = 6
ATTENTIONS = {
    "additive": lambda: Attention(score.Additive(DIM, DIM, 11)),
    "dot": lambda: Attention(score.Dot()),
    "hard": lambda: Attention(score.Dot(), align.Hard()),
    "local_p": lambda: Attention(score.General(DIM, DIM), align.LocalPredictive(DIM, window=3)),
    "sparsemax": lambda: Attention(score.Dot(), align.sparsemax),
    "heads": lambda: MultiHead(DIM, 2),
}


class Padded(nn.Module):
    """Attention to the first `lengths` keys, by an attention, or by `attend`."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, key, lengths):
        allowed = mask.padding(lengths, key.shape[1])
        if self.attention is None:
            return attend(query, key, mask=allowed).context
        return self.attention(query, self.attention.remember(key), mask=allowed).context


def inputs(batch, num_queries, num_keys):
    lengths = torch.randint(1, num_keys + 1, (batch,))
    return torch.randn(batch, num_queries, DIM), torch.randn(batch, num_keys, DIM), lengths


@pytest.mark.parametrize("name", [None, *ATTENTIONS])
def test_an_exported_attention_takes_other_sizes(name):
    model = Padded(ATTENTIONS[name]() if name else None).eval()
    batch, queries, keys = (Dim(size, min=2, max=99) for size in ("batch", "queries", "keys"))
    shapes = {"query": {0: batch, 1: queries}, "key": {0: batch, 1: keys}, "lengths": {0: batch}}
    exported = export(model, inputs(2, 3, 7), dynamic_shapes=shapes, strict=False).module()
    for sizes in ((2, 3, 7), (5, 4, 11)):
        given = inputs(*sizes)
        torch.testing.assert_close(exported(*given), model(*given))


def test_a_padding_mask_of_a_given_size_compiles_as_one_graph():
    def masked(key, lengths):
        return key * mask.padding(lengths, key.shape[1]).mT

    compiled = torch.compile(masked, fullgraph=True, backend="eager")
    _, key, lengths = inputs(2, 3, 7)
    assert compiled(key, lengths).equal(masked(key, lengths))
