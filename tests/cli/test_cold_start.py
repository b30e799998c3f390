"""What a command imports before it can answer, which decides how long its first answer takes."""

import json
import os
import subprocess
import sys

import pytest

LISTING = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
from regard.cli import main
main(sys.argv[1:])
"""


def imported(*words):
    """The modules that a command imports, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", LISTING, *words], env=environment, capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stderr.splitlines()[-1]))


def own(modules, *parts):
    return {name for name in modules if name.split(".")[:2] in [["regard", part] for part in parts]}


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_system_and_no_library_of_numbers(words):
    modules = imported(*words)
    assert not {"torch", "numpy", "onnxruntime", "tokenizers", "PIL"} & modules
    declared = {name for name in own(modules, "systems") if name.count(".") == 3}
    assert not declared, "of a system, the help needs its declaration alone"
    assert not own(modules, "data", "training", "serving", "bench", "demo", "trace")


def test_translating_imports_no_code_of_training_serving_or_other_systems():
    modules = imported("translate", "A dog.")
    assert own(modules, "training") <= {"regard.training", "regard.training.settings"}
    assert own(modules, "jobs") <= {"regard.jobs", "regard.jobs.inputs"}
    assert not own(modules, "serving", "bench", "demo", "worlds", "lessons")
    others = {name for name in own(modules, "systems") if name.count(".") == 3 and ".translate." not in name}
    assert not others
    assert not {"lightning_fabric", "matplotlib", "sacrebleu", "fastapi"} & modules
