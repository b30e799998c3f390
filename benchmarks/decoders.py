"""Time training steps of recurrent decoders: a plain loop over the steps, torch.compile of it, and regard's decoder.

    python benchmarks/decoders.py --compiled

On a GPU the sizes are those of RNNsearch (Bahdanau et al. 2015): 80 sentences of 30 words, 1,000 units, word embeddings
of 620 features and encoder states of 2,000. torch's GRU without attention is the upper bound for a loop. Times are
medians of runs that take turns. Leave the machine alone meanwhile.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.attention.mask import padding
from regard.bench.contest import Contest, device
from regard.decoders.bahdanau import Bahdanau
from regard.decoders.luong import Luong
from regard.decoders.recurrent import RecurrentDecoder
from regard.encoders.encoded import Encoded
from regard.layers.cells import GRU


@dataclass(frozen=True)
class Size:
    """The sizes of a decoder and of its inputs."""

    batch: int
    words: int
    """Words of each source and of each target sentence."""
    hidden: int
    embedding: int
    memory: int
    """Features of an encoder state."""


GPU_SIZE = Size(80, 30, 1000, 620, 2000)
CPU_SIZE = Size(16, 20, 256, 128, 512)
VOCABULARY = 1000
"""Words of the vocabulary of the decoders."""


def contests(*, compiled: bool) -> list[Contest]:
    """RNNsearch, and Luong's decoder with input feeding: both passes through all steps, without the output layer."""
    size = GPU_SIZE if device().type == "cuda" else CPU_SIZE
    return [_rnnsearch(size, compiled=compiled), _input_feeding(size, compiled=compiled)]


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
    rivals = _loops(decoder, inputs, written_loop, compiled=compiled)
    gru = nn.GRU(size.embedding, size.hidden, batch_first=True).to(device())
    rivals["torch's GRU, no attention"] = _both_passes(gru, lambda: gru(inputs.embedding(inputs.target))[0])
    return _contest("RNNsearch", size, rivals)


def _input_feeding(size: Size, *, compiled: bool) -> Contest:
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
    rivals = _loops(decoder, inputs, written_input_feeding, compiled=compiled)
    return _contest("Luong, LSTM, input feeding", size, rivals)


def _loops(
    decoder: RecurrentDecoder, inputs: "_Inputs", loop: Callable[..., Tensor], *, compiled: bool
) -> dict[str, Callable[[], object]]:
    """Both passes of the written loop, of torch.compile of it, and of the decoder."""
    rivals = {"the loop as written": _both_passes(decoder, lambda: loop(decoder, inputs.encoded, inputs.target))}
    if compiled:
        compiled_loop = torch.compile(loop, mode="reduce-overhead" if device().type == "cuda" else "default")
        rivals["torch.compile of it"] = _both_passes(
            decoder, lambda: compiled_loop(decoder, inputs.encoded, inputs.target)
        )
    return rivals | {"regard": _both_passes(decoder, lambda: decoder(inputs.encoded, inputs.target).features)}


class _Inputs:
    """A random encoded source and a random target."""

    def __init__(self, size: Size) -> None:
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCABULARY, size.embedding).to(device())
        lengths = torch.full((size.batch,), size.words, device=device())
        states = torch.randn(size.batch, size.words, size.memory, device=device())
        self.encoded = Encoded(states, padding(lengths), states[:, 0])
        self.target = torch.randint(VOCABULARY, (size.batch, size.words), device=device())


def written_loop(decoder: Bahdanau, encoded: Encoded, target: Tensor) -> Tensor:
    """RNNsearch as a plain loop over the equations of its paper; computes the same numbers as the decoder.

    It uses the decoder's parameters, and projects keys and words once, before the loop.
    """
    additive, cell = decoder.attention.score, decoder.cell
    if not isinstance(additive, score.Additive) or not isinstance(cell, GRU):
        raise TypeError("This loop is for additive scores and a GRU.")
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
        inputs = step + context @ decoder.context_layer.weight.T
        gates, candidate = inputs.split([2 * decoder.hidden, decoder.hidden], dim=-1)
        update, reset = torch.sigmoid(gates + hidden @ cell.gates.weight.T).chunk(2, dim=-1)
        new = torch.tanh(candidate + (reset * hidden) @ cell.candidate.weight.T)
        hidden = (1 - update) * hidden + update * new
    return decoder.features(embedded, torch.stack(states, 1), torch.stack(contexts, 1))


def written_input_feeding(decoder: Luong, encoded: Encoded, target: Tensor) -> Tensor:
    """Luong's decoder with an LSTM and input feeding as a plain loop over its equations; the same numbers again."""
    general, cell = decoder.attention.score, decoder.cells[0]
    words = decoder.word_layer(decoder.embedding(target))
    keys = encoded.states @ general.layer.weight.T
    hidden = torch.tanh(decoder.bridge(encoded.summary))
    memory, attentional = torch.zeros_like(hidden), torch.zeros_like(hidden)
    outputs = []
    for step in words.unbind(1):
        gates = step + attentional @ decoder.feeding.weight.T + hidden @ cell.gates.weight.T
        entry, forget, new, out = gates.chunk(4, dim=-1)
        memory = torch.sigmoid(forget + 1) * memory + torch.sigmoid(entry) * torch.tanh(new)
        hidden = torch.sigmoid(out) * torch.tanh(memory)
        logits = (keys @ hidden.unsqueeze(2)).squeeze(2)
        weights = logits.masked_fill(~encoded.mask[:, 0], float("-inf")).softmax(-1)
        context = (weights.unsqueeze(1) @ encoded.states).squeeze(1)
        attentional = torch.tanh(decoder.combine(torch.cat([context, hidden], dim=-1)))
        outputs.append(attentional)
    return torch.stack(outputs, 1)


def _both_passes(module: nn.Module, run: Callable[[], Tensor]) -> Callable[[], object]:
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]

    def step() -> object:
        return torch.autograd.grad(run().sum(), parameters, allow_unused=True)

    return step


def _contest(name: str, size: Size, rivals: dict[str, Callable[[], object]]) -> Contest:
    title = f"{name} both passes, b={size.batch} m=n={size.words} hidden={size.hidden} memory={size.memory}"
    return Contest(title, rivals, items=size.batch * size.words)


def main() -> None:
    from regard.bench.contest import report

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="timed runs, after one to warm up; default: 7")
    parser.add_argument("--compiled", action="store_true", help="also time torch.compile of the plain loop")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: allow TF32 matrix products")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high" if arguments.tf32 else "highest")
    timed = contests(compiled=arguments.compiled)
    report(timed, "decoders.py", unit="words", repeats=arguments.repeats, path=arguments.json)


if __name__ == "__main__":
    main()
