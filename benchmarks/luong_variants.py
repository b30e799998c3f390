"""Every variant of Luong et al. 2015 on Multi30k English-German, beside its controls.

    python benchmarks/luong_variants.py FOLDER results.jsonl                   # every row, one after another
    python benchmarks/luong_variants.py FOLDER results.jsonl general:local_p   # some rows; several may run at once
    python benchmarks/luong_variants.py - results.jsonl                        # the table of what was measured

FOLDER is what `regard data get multi30k` made. All rows share the recipe multi30k-luong, with encoder states of the
size of the decoder's (so that dot products are possible), batches of 5,000 tokens and 16 epochs. A row is named
score:alignment, with ":feeding" where the attentional vector enters the next step.
"""

import csv
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from regard.systems.evaluation import evaluate
from regard.training.material import read_data
from regard.training.recipe import read_recipe
from regard.training.run import train

SCORES = ("dot", "general", "concat")
GLOBAL_AND_LOCAL = [f"{score}:{align}" for align in ("softmax", "local_m", "local_p") for score in SCORES]
ATTENTION = ["location:softmax", *GLOBAL_AND_LOCAL, "general:uniform"]
ROWS = ["plain", *ATTENTION, *(f"{name}:feeding" for name in ATTENTION)]
TRAINING = {"epochs": 16, "max_tokens": 5000, "learning_rate": 0.002, "validate_every": 4}


def measure(row: str, folder: str) -> dict[str, Any]:
    """Train one row and measure it on test_2016_flickr with a beam of 5."""
    model: dict[str, Any] = {"encoder_hidden": 256}
    if row == "plain":
        model["architecture"] = "plain"
    else:
        score, align, *feeding = row.split(":")
        model |= {"score": score, "align": align, "input_feeding": bool(feeding)}
    recipe = read_recipe("multi30k-luong", {"data": {"folder": folder}, "model": model, "train": TRAINING})
    with tempfile.TemporaryDirectory() as run:
        trained = train(recipe, run, progress=sys.stderr.isatty())
        with (Path(run) / "logs" / "metrics.csv").open() as log:
            speeds = [float(line["tokens/s"]) for line in csv.DictReader(log) if line.get("tokens/s")]
    test = read_data(recipe.data).test
    result = evaluate(trained.model, *zip(*test, strict=True), beam=5, lowercase=True)
    return {
        "row": row,
        "bleu": result.scores.bleu.value,
        "perplexity": result.perplexity,
        "entropy": result.entropy,
        "tokens_per_second": statistics.median(speeds),
        "weights": sum(weight.numel() for weight in trained.model.parameters()),
        "signature": result.scores.bleu.signature,
    }


def show(results: list[dict[str, Any]]) -> None:
    """The table of what was measured, in the order of ROWS."""
    table = Table("variant", "BLEU", "perplexity", "entropy, nats", "training tokens/s", "weights")
    for found in sorted(results, key=lambda found: ROWS.index(found["row"])):
        entropy = "" if found["entropy"] is None else f"{found['entropy']:.2f}"
        table.add_row(
            found["row"],
            f"{found['bleu']:.1f}",
            f"{found['perplexity']:.2f}",
            entropy,
            f"{found['tokens_per_second']:,.0f}",
            f"{found['weights'] / 1e6:.2f} M",
        )
    Console().print(table)


def main() -> None:
    folder, results, *rows = sys.argv[1:]
    if folder != "-":
        for row in rows or ROWS:
            found = measure(row, folder)
            with Path(results).open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    show([json.loads(line) for line in Path(results).read_text(encoding="utf-8").splitlines()])


if __name__ == "__main__":
    main()
