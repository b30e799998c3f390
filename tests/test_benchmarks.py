"""The benchmarks run, and what they say of memory holds. Time is for people to read: no test depends on it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEMORY = Path(__file__).parent.parent / "benchmarks" / "attention_memory.py"


def measure(name: str, kind: str, step: str) -> float:
    command = [sys.executable, str(MEMORY), "--score", name, "--measure", kind, step]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("name", ["additive", "concat", "mlp"])
def test_network_scores_stay_under_64_mib_where_the_plain_formula_takes_a_gibibyte(name):
    """b=4, q=k=500, d=256, forward and backward, in a fresh process."""
    assert measure(name, "lean", "both") < 64


def test_the_plain_formula_takes_ten_times_as_much():
    assert measure("additive", "plain", "forward") > 10 * measure("additive", "lean", "both")


def test_the_benchmark_prints_its_table_and_writes_its_numbers(tmp_path):
    out = tmp_path / "numbers.json"
    sizes = ["--batch=1", "--queries=5", "--keys=7", "--dim=11", "--repeats=2"]
    command = [sys.executable, str(MEMORY), *sizes, "--json", str(out)]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "additive attention" in table
    numbers = json.loads(out.read_text())
    assert {(row["pass"], row["kind"]) for row in numbers["rows"]} == {
        (step, kind) for step in ("forward", "both") for kind in ("plain", "lean")
    }
    assert all(len(row["times_ms"]) == 2 for row in numbers["rows"])
