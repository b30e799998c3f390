"""Every variant of Luong et al. 2015 on Multi30k English-German, with controls.

    python benchmarks/luong_variants.py FOLDER results.jsonl                   # every row, one after another
    python benchmarks/luong_variants.py FOLDER results.jsonl general:local_p   # selected rows
    python benchmarks/luong_variants.py - results.jsonl                        # only print the table

FOLDER is what `regard data get multi30k` wrote. All rows share the recipe multi30k-luong, with encoder states of the
decoder's size (so that dot products are possible), batches of 5,000 tokens and 16 epochs. A row is named
score:alignment, followed by ":feeding" where the attentional vector is an input of the next step. Several processes may
add rows to the same results.
"""

import argparse
import csv
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import regard
from regard.systems.plan import read_recipe
from regard.systems.translate.data import read_splits
from regard.training.recipes import Recipe

SCORES = ("dot", "general", "concat")
GLOBAL_AND_LOCAL = [f"{score}:{align}" for align in ("softmax", "local_m", "local_p") for score in SCORES]
WITH_ATTENTION = ["location:softmax", *GLOBAL_AND_LOCAL, "general:uniform"]
ROWS = ["plain", *WITH_ATTENTION, *(f"{name}:feeding" for name in WITH_ATTENTION)]
TRAIN = {"epochs": 16, "max_tokens": 5000, "learning_rate": 0.002, "validate_every": 4}


def recipe(row: str, folder: str) -> Recipe:
    """The recipe of a row."""
    model: dict[str, Any] = {"encoder_hidden": 256}
    if row == "plain":
        # A model without attention has no score and no alignment.
        model |= {"architecture": "plain", "score": "additive", "align": "softmax"}
    else:
        score, align, *feeding = row.split(":")
        model |= {"score": score, "align": align, "input_feeding": bool(feeding)}
    return read_recipe("multi30k-luong", {"data": {"folder": folder}, "model": model, "train": TRAIN})


def measure(row: str, folder: str) -> dict[str, Any]:
    """Train one row and evaluate it on test_2016_flickr with a beam of 5."""
    chosen = recipe(row, folder)
    with tempfile.TemporaryDirectory() as run:
        trained = regard.train(chosen, out=run, progress=sys.stderr.isatty())
        with (Path(run) / "logs" / "metrics.csv").open() as log:
            speeds = [float(line["tokens/s"]) for line in csv.DictReader(log) if line.get("tokens/s")]
        test = read_splits(chosen.data).test
        files = {}
        for index, name in enumerate(("source", "reference")):
            files[name] = Path(run) / f"{name}.txt"
            files[name].write_text("".join(pair[index] + "\n" for pair in test), encoding="utf-8")
        report = regard.evaluate(trained.model, **files, beam=5, lowercase=True)
    return {
        "row": row,
        "bleu": report["BLEU"],
        "perplexity": report["perplexity"],
        "entropy": report["entropy"] if "entropy" in report.scores else None,
        "tokens_per_second": statistics.median(speeds),
        "parameters": sum(parameter.numel() for parameter in trained.model.parameters()),
        "signature": report.scores["BLEU"].note,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print the results in the order of ROWS."""
    table = Table("variant", "BLEU", "perplexity", "entropy, nats", "training tokens/s", "parameters")
    for result in sorted(results, key=lambda result: ROWS.index(result["row"])):
        table.add_row(
            result["row"],
            f"{result['bleu']:.1f}",
            f"{result['perplexity']:.2f}",
            "" if result["entropy"] is None else f"{result['entropy']:.2f}",
            f"{result['tokens_per_second']:,.0f}",
            f"{result['parameters'] / 1e6:.2f} M",
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="Multi30k; - to only print the table")
    parser.add_argument("results", type=Path, help="JSON lines that results are added to")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    arguments = parser.parse_args()
    if unknown := [row for row in arguments.rows if row not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}; choose from {', '.join(ROWS)}")
    if arguments.folder != "-":
        for row in arguments.rows or ROWS:
            result = measure(row, arguments.folder)
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    show([json.loads(line) for line in arguments.results.read_text(encoding="utf-8").splitlines()])


if __name__ == "__main__":
    main()
