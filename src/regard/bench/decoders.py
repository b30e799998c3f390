"""Attentional recurrent decoders side by side: the loop as one would write it, torch.compile of it, and regard's.

The sizes are those of RNNsearch in the paper: 80 sentences of 30 words, 1,000 units, words of 620 features, and 2,000
features of the source. cuDNN's GRU without any attention shows how far a loop could come at most.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.attention.mask import padding
from regard.bench.contest import Contest, device
from regard.decoders.bahdanau import Bahdanau
from regard.decoders.luong import Luong
from regard.encoders.encoded import Encoded
from regard.layers.cells import GRU


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    batch: int
    words: int
    hidden: int
    embedding: int
    memory: int


ON_GPU = Size(80, 30, 1000, 620, 2000)
ON_CPU = Size(16, 20, 256, 128, 512)


def contests(*, compiled: bool) -> list[Contest]:
    """RNNsearch and Luong's input feeding: forward and backward through all steps, without the output layer."""
    size = ON_GPU if device().type == "cuda" else ON_CPU
    return [_rnnsearch(size, compiled=compiled), _feeding(size)]


def _rnnsearch(size: Size, *, compiled: bool) -> Contest:
    inputs = _Inputs(size)
    attention = Attention(score.Additive(size.hidden, size.memory, size.hidden), align.softmax)
    decoder = Bahdanau(
        inputs.embedding,
        memory_dim=size.memory,
        summary_dim=size.memory,
        hidden=size.hidden,
        attention=attention,
        output=nn.Identity(),
        output_dim=size.embedding,
    ).to(device())
    rivals = {"the loop as written": _both(decoder, lambda: written_loop(decoder, inputs.encoded, inputs.target))}
    if compiled:
        faster = torch.compile(written_loop, mode="reduce-overhead" if device().type == "cuda" else "default")
        rivals["torch.compile of it"] = _both(decoder, lambda: faster(decoder, inputs.encoded, inputs.target))
    rivals["regard"] = _both(decoder, lambda: decoder(inputs.encoded, inputs.target).features)
    network = nn.GRU(size.embedding, size.hidden, batch_first=True).to(device())
    rivals["torch's GRU, no attention"] = _both(network, lambda: network(inputs.embedding(inputs.target))[0])
    return _contest("RNNsearch", size, rivals)


def _feeding(size: Size) -> Contest:
    inputs = _Inputs(size)
    decoder = Luong(
        inputs.embedding,
        memory_dim=size.memory,
        summary_dim=size.memory,
        hidden=size.hidden,
        attention=Attention(score.General(size.hidden, size.memory), align.softmax),
        output=nn.Identity(),
        output_dim=size.hidden,
    ).to(device())

    def one_by_one() -> Tensor:
        state, found = decoder.start(inputs.encoded), []
        for token in inputs.target.unbind(1):
            step = decoder.step(token, state)
            state = step.state
            found.append(step.logits)
        return torch.stack(found, 1)

    rivals = {
        "step by step": _both(decoder, one_by_one),
        "regard": _both(decoder, lambda: decoder(inputs.encoded, inputs.target).features),
    }
    return _contest("Luong, LSTM, input feeding", size, rivals)


class _Inputs:
    """An encoded source and a target, of random numbers."""

    def __init__(self, size: Size) -> None:
        torch.manual_seed(0)
        self.embedding = nn.Embedding(1000, size.embedding).to(device())
        lengths = torch.full((size.batch,), size.words, device=device())
        states = torch.randn(size.batch, size.words, size.memory, device=device())
        self.encoded = Encoded(states, padding(lengths), states[:, 0])
        self.target = torch.randint(1000, (size.batch, size.words), device=device())


def written_loop(decoder: Bahdanau, encoded: Encoded, target: Tensor) -> Tensor:
    """RNNsearch as its paper writes it, with the weights of a decoder; keys and words are projected once.

    The numbers are the decoder's own.
    """
    additive, cell = decoder.attention.score, decoder.cell  # type: ignore[union-attr]
    if not isinstance(additive, score.Additive) or not isinstance(cell, GRU):
        raise TypeError("The written loop is for additive scores and a GRU.")
    embedded = decoder.embedding(target)
    words = decoder.word_layer(embedded)
    keys = encoded.states @ additive.key_layer.weight.T
    hidden = torch.tanh(decoder.bridge(encoded.summary))
    states, contexts = [], []
    for step in words.unbind(1):
        query = hidden @ additive.query_layer.weight.T
        logits = torch.tanh(query.unsqueeze(1) + keys) @ additive.direction
        weights = logits.masked_fill(~encoded.mask[:, 0], float("-inf")).softmax(-1)
        context = (weights.unsqueeze(1) @ encoded.states).squeeze(1)
        states.append(hidden)
        contexts.append(context)
        entering = step + context @ decoder.context_layer.weight.T
        gates, candidate = entering.split([2 * decoder.hidden, decoder.hidden], dim=-1)
        update, reset = torch.sigmoid(gates + hidden @ cell.gates.weight.T).chunk(2, dim=-1)
        new = torch.tanh(candidate + (reset * hidden) @ cell.candidate.weight.T)
        hidden = (1 - update) * hidden + update * new
    return decoder.features(embedded, torch.stack(states, 1), torch.stack(contexts, 1))


def _both(module: nn.Module, run: Callable[[], Tensor]) -> Callable[[], object]:
    weights = [weight for weight in module.parameters() if weight.requires_grad]

    def step() -> object:
        return torch.autograd.grad(run().sum(), weights, allow_unused=True)

    return step


def _contest(name: str, size: Size, rivals: dict[str, Callable[[], object]]) -> Contest:
    what = f"{name} both passes, b={size.batch} m=n={size.words} hidden={size.hidden} memory={size.memory}"
    return Contest(what, rivals, things=size.batch * size.words)
