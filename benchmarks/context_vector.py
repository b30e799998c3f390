"""Does a large context vector overfit short sentences? The plain encoder-decoder with encoders of several sizes.

    python benchmarks/context_vector.py fra-eng.zip/fra.txt results.jsonl            # every size
    python benchmarks/context_vector.py fra-eng.zip/fra.txt results.jsonl 64 1024    # selected sizes
    python benchmarks/context_vector.py - results.jsonl                              # only print the table

2,700 English-French pairs of at most 5 English words (Tatoeba) are trained on, 300 more are held out; no dropout and no
label smoothing. Only the size of the encoder changes: the context vector is its last state, and the decoder has 256
units. Reports the loss of the training pairs (last epoch) and of the held-out pairs (lowest, and in the last epoch),
and the best BLEU.
"""

import argparse
import csv
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import regard
from regard.data.text import read_tsv
from regard.systems.plan import read_recipe
from regard.training.recipes import Recipe

SIZES = (16, 64, 256, 1024)
NUM_PAIRS, MAX_WORDS = 3_000, 5
VALIDATE_EVERY = 2


def recipe(pairs: str, size: int) -> Recipe:
    """The plain encoder-decoder with a context vector of this size."""
    data = {"held_out": 300, "tokens": "word", "joint": False, "vocabulary": 4000, "lowercase": True}
    model = {
        "architecture": "plain",
        "embedding": 128,
        "hidden": 256,
        "encoder_hidden": size,
        "bidirectional": False,
        "dropout": 0.0,
        "output_dropout": 0.0,
    }
    train = {"epochs": 60, "max_tokens": 600, "schedule": "constant", "label_smoothing": 0.0}
    tables = {"data": data | {"pairs": pairs}, "model": model, "train": train | {"validate_every": VALIDATE_EVERY}}
    return read_recipe(None, tables)


def measure(pairs: list[tuple[str, str]], size: int) -> dict[str, Any]:
    """Train with a context vector of this size."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.tsv"
        file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        trained = regard.train(recipe(str(file), size), out=folder, progress=sys.stderr.isatty())
        with (Path(folder) / "logs" / "metrics.csv").open() as log:
            valid_losses = [float(row["valid_loss"]) for row in csv.DictReader(log) if row.get("valid_loss")]
    lowest = min(valid_losses)
    return {
        "size": size,
        "training_loss": trained.metrics["loss"],
        "lowest_loss": lowest,
        "lowest_at": VALIDATE_EVERY * (valid_losses.index(lowest) + 1),
        "last_loss": valid_losses[-1],
        "bleu": trained.metrics["valid_bleu"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="English<TAB>French; - to only print the table")
    parser.add_argument("results", type=Path, help="JSON lines that results are added to")
    parser.add_argument("sizes", type=int, nargs="*", help=f"default: {' '.join(map(str, SIZES))}")
    arguments = parser.parse_args()
    if arguments.pairs != "-":
        short = {pair[0]: pair for pair in read_tsv(arguments.pairs) if len(pair[0].split()) <= MAX_WORDS}
        chosen = sorted(short.values(), key=lambda pair: hashlib.sha256(pair[0].encode()).digest())[:NUM_PAIRS]
        for size in arguments.sizes or SIZES:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(measure(chosen, size)) + "\n")
    table = Table("context vector", "training loss", "lowest held-out loss", "in epoch", "last held-out loss", "BLEU")
    rows = [json.loads(line) for line in arguments.results.read_text(encoding="utf-8").splitlines()]
    for row in sorted(rows, key=lambda row: row["size"]):
        losses = [f"{row[name]:.2f}" for name in ("training_loss", "lowest_loss", "last_loss")]
        table.add_row(str(row["size"]), losses[0], losses[1], str(row["lowest_at"]), losses[2], f"{row['bleu']:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
