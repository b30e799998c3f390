"""Does a large context vector over-fit short sentences? The plain encoder-decoder with encoders of several sizes.

    python benchmarks/context_vector.py fra-eng.zip/fra.txt results.jsonl            # every size
    python benchmarks/context_vector.py fra-eng.zip/fra.txt results.jsonl 64 1024    # some sizes; - for the table alone

2,700 English-French pairs of at most 5 English words (Tatoeba), 300 more held out; no dropout and no label smoothing.
Only the encoder changes: the context vector is its last state, and the decoder (256 units) stays the same. Reports the
loss of the training pairs (last epoch) and of the held-out pairs (lowest, and in the last epoch), and the best BLEU.
"""

import csv
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from regard.data.text import read_tsv
from regard.training.recipe import read_recipe
from regard.training.run import train

SIZES = (16, 64, 256, 1024)
PAIRS, WORDS = 3_000, 5
RECIPE: dict[str, dict[str, Any]] = {
    "data": {"held_out": 300, "tokens": "word", "joint": False, "vocabulary": 4000, "lowercase": True},
    "model": {
        "architecture": "plain",
        "embedding": 128,
        "hidden": 256,
        "bidirectional": False,
        "dropout": 0.0,
        "output_dropout": 0.0,
    },
    "train": {"epochs": 60, "max_tokens": 600, "schedule": "constant", "label_smoothing": 0.0, "validate_every": 2},
}


def measure(pairs: list[tuple[str, str]], size: int) -> dict[str, Any]:
    """Train with a context vector of this size."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.tsv"
        file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        overrides = {
            "data": RECIPE["data"] | {"pairs": str(file)},
            "model": RECIPE["model"] | {"encoder_hidden": size},
            "train": RECIPE["train"],
        }
        trained = train(read_recipe(None, overrides), folder, progress=sys.stderr.isatty())
        with (Path(folder) / "logs" / "metrics.csv").open() as log:
            held_out = [float(row["valid_loss"]) for row in csv.DictReader(log) if row.get("valid_loss")]
    return {
        "size": size,
        "training_loss": trained.metrics["loss"],
        "lowest_loss": min(held_out),
        "lowest_at": 2 * held_out.index(min(held_out)) + 2,
        "last_loss": held_out[-1],
        "bleu": trained.metrics["valid_bleu"],
    }


def main() -> None:
    origin, results, *sizes = sys.argv[1:]
    if sizes != ["-"]:
        short = {pair[0]: pair for pair in read_tsv(origin) if len(pair[0].split()) <= WORDS}
        chosen = sorted(short.values(), key=lambda pair: hashlib.sha256(pair[0].encode()).digest())[:PAIRS]
        for size in map(int, sizes or SIZES):
            with Path(results).open("a", encoding="utf-8") as file:
                file.write(json.dumps(measure(chosen, size)) + "\n")
    table = Table("context vector", "training loss", "lowest held-out loss", "in epoch", "last held-out loss", "BLEU")
    found = [json.loads(line) for line in Path(results).read_text(encoding="utf-8").splitlines()]
    for row in sorted(found, key=lambda row: row["size"]):
        losses = [f"{row[name]:.2f}" for name in ("training_loss", "lowest_loss", "last_loss")]
        table.add_row(str(row["size"]), losses[0], losses[1], str(row["lowest_at"]), losses[2], f"{row['bleu']:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
