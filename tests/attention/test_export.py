"""Attention under padding masks is exported with sizes that may change, and compiled as one graph."""

import os
import subprocess
import sys

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


COMPILED = """
import torch
from helpers.attention import MAKE_ALIGN, MAKE_SCORE, NUM_KEYS, inputs, make

from regard import MultiHead, attend, mask


def check(attended, given, leaves):
    compiled = torch.compile(attended, fullgraph=True, backend="aot_eager")
    both = [function(*given) for function in (compiled, attended)]
    torch.testing.assert_close(*both)
    gradients = [torch.autograd.grad(sum(each.square().sum() for each in found), leaves) for found in both]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


scores = [(name, "softmax") for name in MAKE_SCORE]
alignments = [("general", name) for name in MAKE_ALIGN if name not in ("hard", "hard_gumbel", "normalised")]
for names in (scores, alignments):
    pairs, calls = [make(*pair) for pair in names], [inputs(score_name, 2) for score_name, _ in names]
    for weights in (False, True):
        def attended(lengths):
            allowed = mask.padding(lengths, NUM_KEYS)
            return [
                attend(*call, score=score, align=align, mask=allowed, weights=weights).context
                for call, (score, align) in zip(calls, pairs)
            ]

        check(attended, [torch.tensor([NUM_KEYS, 4])], [call[2].requires_grad_() for call in calls])

heads = MultiHead(6, 2, num_key_heads=1)
check(
    lambda x, bias, lengths: [
        heads(x, heads.remember(x, mask.padding(lengths, x.shape[1])), bias=bias, causal=True).context
    ],
    [torch.randn(2, 5, 6), torch.randn(2, 2, 5, 5), torch.tensor([5, 3])],
    list(heads.parameters()),
)
"""


def test_every_part_compiles_as_one_graph():
    """In a process whose signatures are not checked: torch.compile does not follow such checks."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
