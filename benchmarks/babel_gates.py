"""Train translators on the generated world babel, and check their translations and their attention.

    python benchmarks/babel_gates.py                # every row, about ten minutes each on one core
    python benchmarks/babel_gates.py en-fr:softmax  # selected rows, named direction:alignment

Each row trains the recipe babel-en-fr in one direction with one alignment, and evaluates it on test meanings that never
occur in training: exact match of the decoded translations, and the alignment error rate (AER) of the attention when the
references are given. The exit status is 1 when a row misses its goal.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import regard
from regard.systems.plan import read_recipe
from regard.training.recipes import Recipe

TEST_SENTENCES = 500


@dataclass(frozen=True)
class Gate:
    """How long a row is trained and what it must reach; None where a score is only reported."""

    epochs: int
    exact_match: float | None
    """Lowest exact match, in percent."""
    error_rate: float | None
    """Highest alignment error rate."""


GATES = {
    "en-fr:softmax": Gate(3, 95, 0.12),
    "fa-en:softmax": Gate(3, 95, 0.12),
    "fa-de:softmax": Gate(3, 95, 0.12),
    "fa-fr:softmax": Gate(3, 95, 0.12),
    "en-fr:local_p": Gate(3, 90, None),
    "en-fr:hard": Gate(6, 85, None),
    "en-fr:uniform": Gate(3, None, None),
}


def recipe(row: str) -> Recipe:
    """The recipe of a row."""
    direction, alignment = row.split(":")
    overrides = {
        "data": {"world": f"babel:{direction}", "held_out_test": 0},
        "model": {"align": alignment},
        "train": {"epochs": GATES[row].epochs},
    }
    return read_recipe("babel-en-fr", overrides)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"default: all of {', '.join(GATES)}")
    rows = parser.parse_args().rows or list(GATES)
    if unknown := [row for row in rows if row not in GATES]:
        parser.error(f"there is no row {unknown[0]!r}; choose from {', '.join(GATES)}")
    table = Table("direction", "alignment", "minutes", "exact match", "goal", "AER", "goal", "passes")
    all_pass = True
    for row in rows:
        direction, alignment = row.split(":")
        gate = GATES[row]
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            model = regard.train(recipe(row), out=Path(folder)).model
        minutes = (time.perf_counter() - began) / 60
        report = regard.evaluate(model.to("cpu"), world=f"babel:{direction}", count=TEST_SENTENCES)
        exact_match, error_rate = report["exact match"], report["AER"]
        passes = (gate.exact_match is None or exact_match >= gate.exact_match) and (
            gate.error_rate is None or error_rate <= gate.error_rate
        )
        all_pass &= passes
        table.add_row(
            direction,
            alignment,
            f"{minutes:.1f}",
            f"{exact_match:.1f} %",
            "" if gate.exact_match is None else f">= {gate.exact_match:.0f} %",
            f"{error_rate:.3f}",
            "" if gate.error_rate is None else f"<= {gate.error_rate}",
            "yes" if passes else "NO",
        )
        Console().print(table)
    sys.exit(not all_pass)


if __name__ == "__main__":
    main()
