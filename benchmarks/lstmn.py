"""How fast the LSTMN trains: the plain eager loop, the loop with cached keys, and regard's recurrence, side by side.

    python benchmarks/lstmn.py                       # one layer of 300 units, sentences as long as in the Penn Treebank
    python benchmarks/lstmn.py --text ptb.train.txt  # the lengths of a text of yours
    python benchmarks/lstmn.py --compiled            # 48 sentences of 21 words, also with torch.compile of the loop

Each variant reads the same batches of sentences of like length, forward and backward, and gives the same gradients,
which is checked first. A language model adds the output layer and the optimizer, which are the same for all variants.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import CostBatches
from regard.data.text import read_lines
from regard.encoders.lstmn_reader import LSTMNReader
from regard.layers.lstmn import LSTMN

Run = Callable[[Tensor], Tensor]


def plain_states(layer: LSTMN, words: Tensor) -> Tensor:
    """The hidden states by the formulas, step by step, with the keys of the whole tape computed anew in each."""
    inputs, size, recurrent = layer.project(words), layer.hidden, layer.recurrent.weight
    hidden: list[Tensor] = []
    memory: list[Tensor] = []
    read = inputs.new_zeros(len(inputs), size)
    read_memory = read
    for step in inputs.unbind(1):
        for_gates, for_query = step[:, : 4 * size], step[:, 4 * size :]
        if hidden:
            tape, query = torch.stack(hidden, dim=1), for_query + read @ recurrent[4 * size :].mT
            matches = torch.tanh(tape @ layer.key_layer.weight.mT + query.unsqueeze(1)) @ layer.direction
            weight = matches.softmax(-1).unsqueeze(-1)
            read, read_memory = (weight * tape).sum(1), (weight * torch.stack(memory, dim=1)).sum(1)
        entry, forget, out, candidate = (for_gates + read @ recurrent[: 4 * size].mT).chunk(4, dim=-1)
        memory.append(torch.sigmoid(forget) * read_memory + torch.sigmoid(entry) * torch.tanh(candidate))
        hidden.append(torch.sigmoid(out) * torch.tanh(memory[-1]))
    return torch.stack(hidden, dim=1)


def plain_loop(reader: LSTMNReader) -> Run:
    """The formulas, step by step: the keys of the whole tape are computed again at each word."""

    def run(words: Tensor) -> Tensor:
        states = words
        for layer in reader.layers:
            states = plain_states(layer, states)
        return states

    return run


def cached_loop(reader: LSTMNReader) -> Run:
    """Step by step with tapes: each key is computed once, as in decoding."""

    def read(layer: LSTMN, words: Tensor) -> Tensor:
        tape = layer.start(len(words))
        for t in range(words.shape[1]):
            tape, *_ = layer.step(words[:, t], tape)
        return tape.hidden

    def run(words: Tensor) -> Tensor:
        for layer in reader.layers:
            words = read(layer, words)
        return words

    return run


def kernels(reader: LSTMNReader) -> Run:
    """One recurrence with its own backward pass; on a GPU with Triton kernels, without graphs."""

    def run(words: Tensor) -> Tensor:
        for layer in reader.layers:
            words = layer(words).hidden
        return words

    return run


def recorded(reader: LSTMNReader) -> Run:
    """What training uses: the recurrence, recorded as CUDA graphs on a GPU."""
    return lambda words: reader(words).states


def compiled_loop(reader: LSTMNReader) -> Run:
    """torch.compile of the plain loop, which compiles anew, for a minute, for each length of the sentences."""
    return torch.compile(plain_loop(reader), mode="reduce-overhead")


COMPILED_SHAPE = 48, 21
"""Sentences and words of the one shape that is timed beside torch.compile."""
VARIANTS = {"plain loop": plain_loop, "cached keys": cached_loop, "kernels": kernels, "recorded": recorded}


def step(run: Run, reader: LSTMNReader, words: Tensor) -> list[Tensor]:
    """The gradients of one forward and backward pass."""
    reader.zero_grad(set_to_none=True)
    states = run(words)
    (states.square().sum() / len(words)).backward()
    return [part.grad for part in reader.parameters() if part.grad is not None]


def largest_difference(reader: LSTMNReader, words: Tensor, variants: Mapping[str, Callable[..., Run]]) -> float:
    """The largest difference between the gradients of the variants, relative to their size."""
    wanted = [part.clone() for part in step(plain_loop(reader), reader, words)]
    worst = 0.0
    for make in variants.values():
        run = make(reader)
        for _ in range(3):  # the third pass replays a recording
            found = step(run, reader, words)
        for one, other in zip(found, wanted, strict=True):
            worst = max(worst, float((one - other).norm() / other.norm().clamp_min(1e-12)))
    return worst


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Run, reader: LSTMNReader, batches: list[Tensor], device: str) -> float:
    """The time of one pass over the batches."""
    wait(device)
    began = time.perf_counter()
    for words in batches:
        step(run, reader, words)
    wait(device)
    return time.perf_counter() - began


def sentence_lengths(text: Path | None) -> np.ndarray:
    """The lengths of the sentences of a text; without one, lengths distributed like those of the Penn Treebank."""
    if text is not None:
        return np.array([max(1, len(line.split())) for line in read_lines(text)])
    random = np.random.default_rng(1)
    return random.normal(21.1, 10.3, 42_068).round().clip(2, 82).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text whose sentence lengths are used, one sentence per line")
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--features", type=int, default=150, help="features of a word")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=1024, help="words in a batch")
    parser.add_argument("--batches", type=int, default=40, help="batches that are timed, of all lengths")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compiled", action="store_true", help="one shape of batch, also with torch.compile")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    reader = LSTMNReader(options.features, options.units, num_layers=options.layers).to(device).train()
    lengths = sentence_lengths(options.text)
    sampler = CostBatches(lengths[:, None], max_cost=options.max_tokens, shuffle=True, seed=1)
    sizes = [(len(indices), int(lengths[indices].max())) for indices in list(sampler)[: options.batches]]
    scale, variants = len(sampler) / len(sizes), dict(VARIANTS)
    if options.compiled:
        sizes, scale = [COMPILED_SHAPE] * options.batches, len(sampler) / options.batches
        variants["torch.compile"] = compiled_loop
    batches = [torch.randn(rows, width, options.features, device=device) for rows, width in sizes]
    difference = largest_difference(deepcopy(reader), batches[0], VARIANTS)
    torch.set_float32_matmul_precision("high")  # as training does
    print(f"{torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}, torch {torch.__version__}")
    print(f"{len(lengths):,} sentences in {len(sampler):,} batches; gradients differ by at most {difference:.1e}")
    times: dict[str, list[float]] = {}
    for name, make in variants.items():
        run = make(reader)
        # A shape is run once, recorded when it comes again, and replayed from then on.
        began = time.perf_counter()
        for _ in range(3 if name == "recorded" else 1):
            seconds(run, reader, batches, device)
        warmed = time.perf_counter() - began
        times[name] = [seconds(run, reader, batches, device) for _ in range(options.repeats)]
        print(f"  {name:12} {scale * statistics.median(times[name]):8.2f} s an epoch  (warm-up {warmed:.1f} s)")
    slowest = statistics.median(times["plain loop"])
    fastest = statistics.median(times["recorded"])
    print(f"  recorded is {slowest / fastest:.1f} x as fast as the plain loop")
    if options.json is not None:
        numbers = {"device": device, "sizes": sizes, "scale": scale, "difference": difference, "seconds": times}
        options.json.write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
