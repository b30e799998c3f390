"""Do translators learn the world babel, and do they look at the right words? About five minutes a row on two cores.

    python benchmarks/babel_gates.py                # every row
    python benchmarks/babel_gates.py en-fr:softmax  # some of them

Each row trains the recipe babel-en-fr in one direction with one alignment, and measures on test meanings that never
occur in training: exact match of the decoded translations, and the alignment error rate of the forced attention.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from regard.metrics.alignment import GoldAlignment
from regard.systems.evaluation import alignment_error
from regard.systems.translator import Translator
from regard.training.recipe import read_recipe
from regard.training.run import train
from regard.worlds.babel import pairs

TESTED = 500


@dataclass(frozen=True)
class Gate:
    """What a row must reach; None where it is only measured."""

    minutes: float
    exact: float | None
    error: float | None


GATES = {
    "en-fr:softmax": Gate(4.2, 0.95, 0.12),
    "fa-en:softmax": Gate(4.2, 0.95, 0.12),
    "fa-de:softmax": Gate(4.2, 0.95, 0.12),
    "fa-fr:softmax": Gate(4.2, 0.95, 0.12),
    "en-fr:local_p": Gate(4.2, 0.90, None),
    "en-fr:hard": Gate(9.5, 0.85, None),
    "en-fr:uniform": Gate(4.2, None, None),
}


def measure(model: Translator, source: str, target: str) -> tuple[float, float]:
    """Exact match and alignment error rate on test meanings."""
    test = list(islice(pairs(source, target, split="test"), TESTED))
    said = [found[0].text for found in model.translate([" ".join(pair.source) for pair in test])]
    exact = sum(text == " ".join(pair.target) for text, pair in zip(said, test, strict=True)) / TESTED
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in test]
    return exact, alignment_error(model, gold).error_rate


def main() -> None:
    chosen = sys.argv[1:] or list(GATES)
    table = Table("direction", "alignment", "minutes", "exact match", "wanted", "AER", "wanted", "holds")
    all_hold = True
    for name in chosen:
        direction, alignment = name.split(":")
        gate = GATES[name]
        overrides = {
            "data": {"world": f"babel:{direction}", "held_out_test": 0},
            "model": {"align": alignment},
            "train": {"minutes": gate.minutes, "epochs": 50},
        }
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            model = train(read_recipe("babel-en-fr", overrides), Path(folder)).model
        spent = (time.perf_counter() - began) / 60
        exact, error = measure(model.to("cpu"), *direction.split("-"))
        holds = (gate.exact is None or exact >= gate.exact) and (gate.error is None or error <= gate.error)
        all_hold &= holds
        wanted = (
            "" if gate.exact is None else f">= {100 * gate.exact:.0f} %",
            "" if gate.error is None else str(gate.error),
        )
        numbers = f"{spent:.1f}", f"{100 * exact:.1f} %", wanted[0], f"{error:.3f}", wanted[1]
        table.add_row(direction, alignment, *numbers, "yes" if holds else "NO")
        Console().print(table)
    sys.exit(not all_hold)


if __name__ == "__main__":
    main()
