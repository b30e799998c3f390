"""Tokens per CPU second of a translator in torch and exported, in float32 and int8, and the time of a whole command.

    OMP_NUM_THREADS=1 python benchmarks/runtime_speed.py --model en-fr --sentences 60 --repeats 3

All run on one thread of one process, in turns; a rate is the number of tokens of the translations, that of the end
included, per second of CPU time, so that other processes matter little. The attention is returned. The sentences are
those of the generated world babel. `cold` is the CPU time of a whole command, from the start of its process to its end.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import torch

import regard
from regard.systems.export import export
from regard.worlds.babel import pairs

MODES = {
    "greedy, one by one": ({"beam": 1}, 1),
    "beam 5, one by one": ({"beam": 5}, 1),
    "beam 5, batches of 64": ({"beam": 5}, 64),
}


def sentences(count: int) -> list[str]:
    """English sentences of the world, of 5 to 20 words."""
    return [" ".join(pair.source) for pair in islice(pairs("en", "fr", split="test", min_words=5), count)]


def rate(translate: Callable[[Sequence[str]], int], texts: Sequence[str], batch: int) -> float:
    """Tokens per second of CPU time; the first batch is translated once before."""
    translate(texts[:batch])
    begun, tokens = time.process_time(), 0
    for start in range(0, len(texts), batch):
        tokens += translate(texts[start : start + batch])
    return tokens / (time.process_time() - begun)


def cold(*words: str) -> float:
    """The CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "regard", *words], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en-fr")
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = sentences(given.sentences)
    with tempfile.TemporaryDirectory() as name:
        folders = {each: export(given.model, Path(name) / each, precision=each) for each in ("float32", "int8")}
        models = {"torch": regard.load(given.model, device="cpu")}
        models |= {f"exported, {each}": regard.load(folder) for each, folder in folders.items()}
        print("| | " + " | ".join([*MODES, "cold command, CPU seconds"]) + " |\n|---|" + "---|" * (len(MODES) + 1))
        found: dict[str, dict[str, list[float]]] = {each: {mode: [] for mode in [*MODES, "cold"]} for each in models}
        for _ in range(given.repeats):
            for each, model in models.items():
                for mode, (options, batch) in MODES.items():

                    def translate(inputs: Sequence[str], model=model, options=options) -> int:  # type: ignore[no-untyped-def]
                        return sum(len(one.trace.target) for one in model.translate(list(inputs), **options))

                    found[each][mode].append(rate(translate, texts, batch))
                source = given.model if each == "torch" else str(folders[each.split()[-1]])
                found[each]["cold"].append(cold("translate", "--model", source, texts[0]))
        for each, modes in found.items():
            cells = [
                f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"
                if mode != "cold"
                else f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
                for mode, values in modes.items()
            ]
            print(f"| {each} | " + " | ".join(cells) + " |")
        same = [
            sum(a.text == b.text for a, b in zip(models["torch"].translate(texts), other.translate(texts), strict=True))
            for each, other in models.items()
            if each != "torch"
        ]
        print(f"\nEqual translations of {len(texts)} with beam 5: float32 {same[0]}, int8 {same[1]}.")


if __name__ == "__main__":
    main()
