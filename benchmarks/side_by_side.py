"""Compare the speed of two source trees of regard, such as two commits.

    git worktree add ../old COMMIT
    python benchmarks/side_by_side.py ../old/src src                      # everything: about twenty minutes
    python benchmarks/side_by_side.py ../old/src src --only start decode  # selected measurements
    python benchmarks/side_by_side.py ../old/src src --repeats 1 --lines 4 --runs 1   # a quick try

Measurements:

    start     `regard translate "I am here." -m MODEL`: seconds from the command to its end
    decode    MODEL on generated sentences, greedy and with a beam of 5: seconds, after loading and a warm-up
    decoder   regard's part of `decoders.py`: seconds of a training step
    additive  regard's part of the additive rows of `regard bench`: seconds of a call

MODEL is en-fr unless --model names another. A shipped model may differ between the trees; take one that does not.

Every measurement runs in a fresh process, and the trees alternate: old, new, new, old, and so on. Each repeat therefore
gives a pair of times that were taken next to each other, and the ratio new / old of each pair. The table has the median
times, the median ratio (below 1: new is faster) and the smallest and largest ratio. A change smaller than that spread
is not a change. `decode` also reports whether both trees give the same translations.

Both trees run with the Python that runs this script, so its packages must suit both; PYTHONPATH selects the tree. With
--threads 1 (the default) other work on the machine disturbs least; --clock cpu compares CPU instead of wall time.
"""

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

MEASUREMENTS = ("start", "decode", "decoder", "additive")
TREES = ("old", "new")
CLOCKS = ("wall", "cpu")
BEAMS = (1, 5)
START_TEXT = "I am here."

SUBJECTS = ("I", "you", "my brother", "the old man", "a young doctor", "our neighbours", "Mary", "that tall woman")
VERBS = ("saw", "bought", "found", "wanted", "remembered", "painted", "sold", "lost", "brought", "described")
OBJECTS = (
    "a small house",
    "the red car",
    "three books",
    "an interesting letter",
    "some bread and cheese",
    "a black dog",
)
PLACES = ("in the city", "near the river", "at the station", "behind the old church", "on the way to school", "")
ENDS = (".", "?", ", and {subject} {verb} {object}.", ", because {subject} {verb} {object} {place}.")

Times = dict[str, dict[str, float]]
"""Seconds by name of the measurement and clock."""


def sentences(count: int) -> list[str]:
    """Generated English sentences of 3 to 25 words, the same in every process."""
    generator = random.Random(7)  # noqa: S311 - not a secret

    def clause(form: str) -> str:
        parts = {"subject": SUBJECTS, "verb": VERBS, "object": OBJECTS, "place": PLACES}
        return form.format(**{name: generator.choice(words) for name, words in parts.items()})

    texts = []
    for _ in range(count):
        text = clause("{subject} {verb} {object} {place}").rstrip() + clause(generator.choice(ENDS)).replace(" .", ".")
        texts.append(text[0].upper() + text[1:])
    return texts


def time_decoding(name: str, lines: int) -> dict[str, Any]:
    """Seconds of translating generated sentences with each beam, and a digest of the translations."""
    import regard

    model = regard.load(name, device="cpu")
    texts = sentences(lines)
    times: Times = {}
    outputs = []
    for beam in BEAMS:
        model.translate(texts[:2], beam=beam)
        before = _clocks()
        results = model.translate(texts, beam=beam)
        times["greedy" if beam == 1 else f"beam {beam}"] = _since(before)
        # Earlier versions give a list of the best translations for each text.
        outputs += [(result[0] if isinstance(result, list) else result).text for result in results]
    return {"times": times, "digest": hashlib.sha256("\n".join(outputs).encode()).hexdigest()}


def time_contests(name: str, runs: int) -> dict[str, Any]:
    """Median seconds of regard in the contests of `decoders.py` or `regard bench`, without its rivals."""
    import decoders

    from regard.bench import attention

    contests = decoders.contests(compiled=False) if name == "decoder" else attention.contests()
    times: Times = {}
    for contest in contests:
        if name == "decoder" or contest.name.startswith("additive"):
            run = contest.rivals["regard"]
            run()
            measured = []
            for _ in range(runs):
                _wait_for_gpu()
                before = _clocks()
                run()
                _wait_for_gpu()
                measured.append(_since(before))
            times[contest.name] = {clock: statistics.median(each[clock] for each in measured) for clock in CLOCKS}
    return {"times": times}


def measure(name: str, tree: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one measurement with one tree in a fresh process."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    # Installed packages have compiled files; without them, the time to compile the sources would be measured.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments.threads:
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(arguments.threads))
    if name == "start":
        before = _clocks(children=True)
        _run(["-m", "regard", "translate", START_TEXT, "-m", arguments.model], environment)
        return {"times": {f"translate {START_TEXT!r}": _since(before, children=True)}}
    options = ["--lines", str(arguments.lines), "--runs", str(arguments.runs), "--model", arguments.model]
    return json.loads(
        _run([str(Path(__file__).resolve()), str(tree), str(tree), *options, "--measure", name], environment)
    )


def measure_all(trees: dict[str, Path], arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All measurements of both trees, which alternate: {name: [{"old": ..., "new": ...}, ...]}."""
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in arguments.only}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(arguments.only) * (arguments.repeats + 1) * 2)
        for name in arguments.only:
            # The first pair fills the caches of the disk and is not kept.
            for repeat in range(arguments.repeats + 1):
                pair = {}
                for tree in TREES if repeat % 2 else reversed(TREES):
                    progress.update(bar, description=f"{name}: {tree}")
                    pair[tree] = measure(name, trees[tree], arguments)
                    progress.advance(bar)
                if repeat:
                    measured[name].append(pair)
    return measured


def ratio_table(measured: dict[str, list[dict[str, Any]]], clock: str) -> Table:
    """Median times of both trees, and the ratios of the pairs."""
    table = Table(
        "", "old", "new", "new / old", "min - max", title=f"milliseconds of {clock} time", title_justify="left"
    )
    for name, pairs in measured.items():
        for index, row in enumerate(pairs[0]["old"]["times"]):
            old, new = ([pair[tree]["times"][row][clock] for pair in pairs] for tree in TREES)
            ratios = [after / before for before, after in zip(old, new, strict=True)]
            table.add_row(
                row if row.startswith(name) else f"{name}: {row}",
                *(f"{1e3 * statistics.median(times):,.1f}" for times in (old, new)),
                f"{statistics.median(ratios):.2f}",
                f"{min(ratios):.2f} - {max(ratios):.2f}",
                end_section=index == len(pairs[0]["old"]["times"]) - 1,
            )
    return table


def _wait_for_gpu() -> None:
    """Without this, only the time that the CPU takes to launch the kernels would be measured."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _clocks(*, children: bool = False) -> tuple[float, float]:
    times = os.times()
    cpu = times.children_user + times.children_system if children else time.process_time()
    return time.perf_counter(), cpu


def _since(before: tuple[float, float], *, children: bool = False) -> dict[str, float]:
    after = _clocks(children=children)
    return {clock: end - begin for clock, begin, end in zip(CLOCKS, before, after, strict=True)}


def _run(command: list[str], environment: dict[str, str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {environment['PYTHONPATH']}:\n{done.stderr[-3000:]}")
    return done.stdout


def _check_tree(tree: Path) -> Path:
    tree = tree.resolve()
    if not (tree / "regard" / "__init__.py").is_file():
        raise SystemExit(f"{tree} is not a source tree of regard: it has no regard/__init__.py. Give .../src.")
    command = ["-c", "import regard; print(regard.__file__)"]
    imported = Path(_run(command, os.environ | {"PYTHONPATH": str(tree)}).strip())
    if tree not in imported.resolve().parents:
        raise SystemExit(f"With PYTHONPATH={tree}, Python imports {imported}.")
    return tree


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the src folder of one tree")
    parser.add_argument("new", type=Path, help="the src folder of the other")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), help="default: all")
    parser.add_argument("--repeats", type=_positive, default=7, help="pairs of processes; default: 7")
    parser.add_argument("--model", default="en-fr", help="model of start and decode; default: en-fr")
    parser.add_argument("--lines", type=_positive, default=200, help="sentences to decode; default: 200")
    parser.add_argument("--runs", type=_positive, default=7, help="timed runs in each process; default: 7")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process, 0 for all; default: 1")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="default: wall")
    parser.add_argument("--json", type=Path, help="also write every time to this file")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure == "decode":
        print(json.dumps(time_decoding(arguments.model, arguments.lines)))
        return
    if arguments.measure:
        print(json.dumps(time_contests(arguments.measure, arguments.runs)))
        return
    trees = {"old": _check_tree(arguments.old), "new": _check_tree(arguments.new)}
    measured = measure_all(trees, arguments)
    console = Console(highlight=False)
    console.print(ratio_table(measured, arguments.clock))
    for pair in measured.get("decode", [])[:1]:
        same = pair["old"]["digest"] == pair["new"]["digest"]
        console.print(f"The translations of both trees are {'the same' if same else 'DIFFERENT'}.")
    if arguments.json:
        arguments.json.write_text(json.dumps({name: str(tree) for name, tree in trees.items()} | measured, indent=1))


if __name__ == "__main__":
    main()
