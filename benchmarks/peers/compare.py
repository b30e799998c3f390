"""regard beside JoeyNMT, OpenNMT-py and Eole on a CPU: attentional RNNs of the same sizes on Multi30k English-German.

    python benchmarks/peers/compare.py FOLDER --out results.json        # all, from nothing: about half an hour
    python benchmarks/peers/compare.py FOLDER --only regard-256 eole    # some

FOLDER is what `regard data get multi30k` made. Each of the others gets a virtual environment with pinned versions under
the cache folder, and runs from its own command line. All have embeddings of 256, a bidirectional encoder, one GRU layer
of 512, additive attention with input feeding, the same 8,000 pieces and one thread.

Measured are target tokens a second (padding not counted, the end of a sentence counted) of some updates after a
warm-up, and decoded sentences a second with outputs of exactly 20 pieces, by random weights. Reading the data, loading
the model and starting Python are not in it; cutting sentences into pieces is, but the others get theirs cut already.
The toolkits take turns. A rate is per second of CPU time, which other work on the machine changes little; the JSON has
wall time as well.

What differs: JoeyNMT makes its batches of 64 sentences at random, OpenNMT-py and Eole of 64 sentences of like length,
regard of sentences of like length, 64 on average. JoeyNMT's encoder has 512 units in each direction, those of
OpenNMT-py and Eole 256; each is compared with a regard of the same. The output layer of the others reads 512 features
and regard's as many as the embeddings have, so there is also a regard with embeddings of 512, in which no part is
smaller than in the others. regard takes one more step than the 20 of an output, to see whether it ends.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from environments import FailedError, environment, run
from material import Material, prepare
from measure import HERE, LENGTH, SETTINGS, Measured, Plan, Setting, one_thread
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from toolkits import PEERS, Peer

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regard-peers"
TRAINING = "training"


@dataclass(frozen=True)
class Regard:
    """regard with an encoder and embeddings of these sizes."""

    encoder: int
    embedding: int
    material: Material
    plan: Plan
    batches: str = "sentences of like length, 64 on average"

    @property
    def name(self) -> str:
        """Such as regard-256, or regard-256-wide with larger embeddings."""
        return f"regard-{self.encoder}" + ("-wide" if self.embedding > 256 else "")

    @property
    def title(self) -> str:
        """How it is written in the table."""
        return "regard" + (f", embeddings of {self.embedding}" if self.embedding > 256 else "")

    def train(self) -> Measured:
        """Target tokens of some updates."""
        folder = self.material.work / self.name
        more = {"warmup": self.plan.warmup, "updates": self.plan.updates, "max_tokens": self.material.max_tokens}
        return self._run(task="train", data=str(self.material.data), folder=str(folder), **more)

    def decode(self, setting: Setting, sentences: int) -> Measured:
        """Decode so many sentences."""
        texts = str(self.material.texts(sentences))
        return self._run(task="decode", texts=texts, length=LENGTH, beam=setting.beam, batch=setting.batch)

    def _run(self, **order: Any) -> Measured:
        order |= {"encoder": self.encoder, "embedding": self.embedding, "tokenizer": str(self.material.tokenizer)}
        command = [sys.executable, str(HERE / "regard_side.py"), json.dumps(order)]
        return Measured(**json.loads(run(command, env=one_thread())[-1]))


Toolkit = Regard | Peer
VARIANTS = [(512, 256), (256, 256), (512, 512), (256, 512)]
NAMES = [*(f"regard-{encoder}" + ("-wide" if size > 256 else "") for encoder, size in VARIANTS)]
NAMES += [peer.name for peer in PEERS]


def make_ready(names: list[str], material: Material, plan: Plan, cache: Path) -> tuple[list[Toolkit], dict[str, str]]:
    """The toolkits that can be measured; and of the others, why not."""
    toolkits: list[Toolkit] = [Regard(*sizes, material, plan) for sizes in VARIANTS]
    toolkits = [toolkit for toolkit in toolkits if toolkit.name in names]
    errors: dict[str, str] = {}
    for kind in PEERS:
        if kind.name in names:
            try:
                peer = kind(environment(kind.name, cache / "environments"), material, plan)
                peer.make_model()
                toolkits.append(peer)
            except (FailedError, OSError, subprocess.SubprocessError) as error:
                errors[f"{kind.name}: setting up"] = str(error)
    return toolkits, errors


def measure(
    toolkits: list[Toolkit], plan: Plan, repeats: int, errors: dict[str, str]
) -> dict[str, dict[str, list[Measured]]]:
    """All measurements of each toolkit and task; toolkits take turns, and what failed once is not tried again."""
    found: dict[str, dict[str, list[Measured]]] = {toolkit.name: {} for toolkit in toolkits}
    tasks = [None, *zip(SETTINGS, plan.sentences, strict=True)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Measuring", total=repeats * len(tasks) * len(toolkits))
        for task in [task for _ in range(repeats) for task in tasks]:
            name = task[0].name if task else TRAINING
            for toolkit in toolkits:
                progress.update(bar, description=f"{toolkit.name}: {name}")
                if f"{toolkit.name}: {name}" not in errors:
                    try:
                        result = toolkit.decode(*task) if task else toolkit.train()
                        found[toolkit.name].setdefault(name, []).append(result)
                    except (FailedError, KeyError, ValueError) as error:
                        errors[f"{toolkit.name}: {name}"] = f"{type(error).__name__}: {error}"
                progress.advance(bar)
    return found


def summarise(found: dict[str, dict[str, list[Measured]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Rates a second of CPU time and of wall time: the median, the slowest and the fastest."""

    def rates(results: list[Measured], clock: str) -> dict[str, float]:
        values = [result.amount / getattr(result, clock) for result in results]
        return {"median": statistics.median(values), "slowest": min(values), "fastest": max(values)}

    return {
        name: {
            task: {clock: rates(results, clock) for clock in ("cpu", "wall")}
            | {"length": results[0].length, "weights": results[0].weights}
            for task, results in tasks.items()
        }
        for name, tasks in found.items()
    }


def ratios(toolkits: list[Toolkit], summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    """How many times as fast regard is, by CPU time, for each regard and each peer with the same encoder."""
    return {
        f"{ours.name} / {theirs.name}": {
            task: values["cpu"]["median"] / summary[theirs.name][task]["cpu"]["median"]
            for task, values in summary[ours.name].items()
            if task in summary[theirs.name]
        }
        for theirs in toolkits
        for ours in toolkits
        if isinstance(ours, Regard) and isinstance(theirs, Peer) and ours.encoder == theirs.encoder
    }


def show(toolkits: list[Toolkit], summary: dict[str, Any], compared: dict[str, Any], errors: dict[str, str]) -> None:
    """The table, and what failed."""
    tasks = [TRAINING, *(setting.name for setting in SETTINGS)]
    heads = ["training,\ntarget tokens/s", *(f"{setting.name},\nsentences/s" for setting in SETTINGS)]
    table = Table(
        "", "encoder", "weights", *heads, title=f"a second of CPU time, one thread; torch {torch.__version__}"
    )
    for toolkit in toolkits:
        rows = summary[toolkit.name]
        weights = rows.get(TRAINING, {}).get("weights")
        cells = [_cell(rows[task]["cpu"], rows[task]["length"]) if task in rows else "failed" for task in tasks]
        table.add_row(toolkit.title, f"2 x {toolkit.encoder}", f"{weights / 1e6:.1f} M" if weights else "", *cells)
    table.add_section()
    for name, values in compared.items():
        table.add_row(name, "", "", *(f"{values[task]:.2f}x" if task in values else "" for task in tasks))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for toolkit in toolkits:
        console.print(f"{toolkit.name}: batches of {toolkit.batches}", highlight=False)
    for name, error in errors.items():
        console.print(f"[bold red]{name} failed[/]")
        console.print(error, markup=False, highlight=False)


def _cell(rate: dict[str, float], length: float | None) -> str:
    digits = 0 if rate["median"] >= 100 else 1
    cell = f"{rate['median']:,.{digits}f}\n({rate['slowest']:,.{digits}f} - {rate['fastest']:,.{digits}f})"
    return cell if length in (None, LENGTH) else f"{cell}\nof {length:.1f} pieces"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Multi30k: train.en.gz, train.de.gz, ...")
    parser.add_argument("--out", type=Path, help="also write every measurement here, as JSON")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--updates", type=int, default=20, help="updates to measure, a multiple of 5; default: 20")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="default: all")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"default: {CACHE}")
    given = parser.parse_args()
    plan = Plan(updates=given.updates)
    console = Console(stderr=True)
    with console.status("Preparing the data and the environments; the first time this takes some minutes."):
        material = prepare(given.folder.resolve(), given.cache.resolve() / "work")
        toolkits, errors = make_ready(given.only, material, plan, given.cache.resolve())
    found = measure(toolkits, plan, given.repeats, errors)
    summary = summarise(found)
    compared = ratios(toolkits, summary)
    if given.out:
        every = {
            name: {task: [asdict(one) for one in runs] for task, runs in tasks.items()} for name, tasks in found.items()
        }
        about = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
        toolkit = {one.name: {"title": one.title, "encoder": one.encoder, "batches": one.batches} for one in toolkits}
        result = about | {"plan": asdict(plan), "toolkits": toolkit, "measured": every, "summary": summary}
        given.out.write_text(json.dumps(result | {"ratios": compared, "errors": errors}, indent=1) + "\n", "utf-8")
    show(toolkits, summary, compared, errors)


if __name__ == "__main__":
    main()
