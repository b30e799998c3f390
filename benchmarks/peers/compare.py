"""Compare regard with JoeyNMT, OpenNMT-py and Eole on a CPU: recurrent translators of the same sizes on Multi30k.

    python benchmarks/peers/compare.py FOLDER --out results.json        # all, installation included: half an hour
    python benchmarks/peers/compare.py FOLDER --only regard-256 eole    # selected toolkits

FOLDER is what `regard data get multi30k` wrote. Each other toolkit gets a virtual environment with pinned versions in
the cache folder, and runs from its own command line. All have embeddings of 256, a bidirectional encoder, one GRU layer
of 512, additive attention with input feeding, the same 8,000 subwords and one thread; English to German.

Training speed is target tokens per second (without padding, with the end of each sentence) over several updates after
a warm-up. Decoding speed is sentences per second with random parameters and outputs of exactly 20 subwords. Reading the
data, loading the model and starting Python are not counted. Splitting sentences into subwords is counted for regard;
the others get subwords. The toolkits take turns. Rates are per second of CPU time, which depends little on other
work on the machine; the JSON has wall time too.

Differences that remain: JoeyNMT forms random batches of 64 sentences, OpenNMT-py and Eole batches of 64 sentences of
similar length, regard batches of similar length with 64 sentences on average. JoeyNMT's encoder has 512 units in each
direction, those of OpenNMT-py and Eole have 256; each is compared with regard of the same size. The output layer of the
others has 512 inputs, and that of regard as many as the embeddings; hence there is also a regard with embeddings of
512, in which no part is smaller than in the others. regard takes one step more than the 20 of an output, to see
whether it ends.
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
from measure import HERE, LENGTH, SETTINGS, Measured, Plan, Setting, one_thread
from prepared_data import PreparedData, prepare
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from toolkits import PEERS, Peer

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regard-peers"
TRAINING = "training"


@dataclass(frozen=True)
class Regard:
    """regard with these sizes of encoder and embeddings."""

    encoder: int
    embedding: int
    data: PreparedData
    plan: Plan
    batches: str = "sentences of similar length, 64 on average"

    @property
    def name(self) -> str:
        """Such as regard-256, or regard-256-wide with larger embeddings."""
        return f"regard-{self.encoder}" + ("-wide" if self.embedding > 256 else "")

    @property
    def title(self) -> str:
        """The name in the table."""
        return "regard" + (f", embeddings of {self.embedding}" if self.embedding > 256 else "")

    def train(self) -> Measured:
        """Train for a number of updates."""
        folder = self.data.work / self.name
        more = {"warmup": self.plan.warmup, "updates": self.plan.updates, "max_tokens": self.data.max_tokens}
        return self._run(task="train", data=str(self.data.data), folder=str(folder), **more)

    def decode(self, setting: Setting, sentences: int) -> Measured:
        """Decode this number of sentences."""
        texts = str(self.data.texts(sentences))
        return self._run(task="decode", texts=texts, length=LENGTH, beam=setting.beam, batch=setting.batch)

    def _run(self, **order: Any) -> Measured:
        order |= {"encoder": self.encoder, "embedding": self.embedding, "tokenizer": str(self.data.tokenizer)}
        command = [sys.executable, str(HERE / "regard_side.py"), json.dumps(order)]
        return Measured(**json.loads(run(command, env=one_thread())[-1]))


Toolkit = Regard | Peer
VARIANTS = [(512, 256), (256, 256), (512, 512), (256, 512)]
NAMES = [*(f"regard-{encoder}" + ("-wide" if size > 256 else "") for encoder, size in VARIANTS)]
NAMES += [peer.name for peer in PEERS]


def set_up(names: list[str], data: PreparedData, plan: Plan, cache: Path) -> tuple[list[Toolkit], dict[str, str]]:
    """The toolkits that can be measured, and the errors of those that cannot."""
    toolkits: list[Toolkit] = [Regard(*sizes, data, plan) for sizes in VARIANTS]
    toolkits = [toolkit for toolkit in toolkits if toolkit.name in names]
    errors: dict[str, str] = {}
    for kind in PEERS:
        if kind.name in names:
            try:
                peer = kind(environment(kind.name, cache / "environments"), data, plan)
                peer.make_model()
                toolkits.append(peer)
            except (FailedError, OSError, subprocess.SubprocessError) as error:
                errors[f"{kind.name}: setting up"] = str(error)
    return toolkits, errors


def measure(
    toolkits: list[Toolkit], plan: Plan, repeats: int, errors: dict[str, str]
) -> dict[str, dict[str, list[Measured]]]:
    """All measurements of each toolkit and task; toolkits take turns, and a task that fails is not tried again."""
    measured: dict[str, dict[str, list[Measured]]] = {toolkit.name: {} for toolkit in toolkits}
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
                        measured[toolkit.name].setdefault(name, []).append(result)
                    except (FailedError, KeyError, ValueError) as error:
                        errors[f"{toolkit.name}: {name}"] = f"{type(error).__name__}: {error}"
                progress.advance(bar)
    return measured


def summarise(measured: dict[str, dict[str, list[Measured]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Rates per second of CPU time and of wall time: the median, the slowest and the fastest."""

    def rates(results: list[Measured], clock: str) -> dict[str, float]:
        values = [result.amount / getattr(result, clock) for result in results]
        return {"median": statistics.median(values), "slowest": min(values), "fastest": max(values)}

    return {
        name: {
            task: {clock: rates(results, clock) for clock in ("cpu", "wall")}
            | {"length": results[0].length, "parameters": results[0].parameters}
            for task, results in tasks.items()
        }
        for name, tasks in measured.items()
    }


def ratios(toolkits: list[Toolkit], summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Speed of each regard divided by that of each peer with the same encoder size, by CPU time."""
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
    """Print the table and the errors."""
    tasks = [TRAINING, *(setting.name for setting in SETTINGS)]
    heads = ["training,\ntarget tokens/s", *(f"{setting.name},\nsentences/s" for setting in SETTINGS)]
    table = Table(
        "", "encoder", "parameters", *heads, title=f"per second of CPU time, one thread; torch {torch.__version__}"
    )
    for toolkit in toolkits:
        rows = summary[toolkit.name]
        parameters = rows.get(TRAINING, {}).get("parameters")
        cells = [_cell(rows[task]["cpu"], rows[task]["length"]) if task in rows else "failed" for task in tasks]
        table.add_row(
            toolkit.title, f"2 x {toolkit.encoder}", f"{parameters / 1e6:.1f} M" if parameters else "", *cells
        )
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
    return cell if length in (None, LENGTH) else f"{cell}\nof {length:.1f} subwords"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Multi30k: train.en.gz, train.de.gz, ...")
    parser.add_argument("--out", type=Path, help="also write every measurement to this file, as JSON")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--updates", type=int, default=20, help="updates to measure, a multiple of 5; default: 20")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="default: all")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"default: {CACHE}")
    arguments = parser.parse_args()
    plan = Plan(updates=arguments.updates)
    console = Console(stderr=True)
    with console.status("Preparing the data and the environments; this takes several minutes the first time."):
        data = prepare(arguments.folder.resolve(), arguments.cache.resolve() / "work")
        toolkits, errors = set_up(arguments.only, data, plan, arguments.cache.resolve())
    measured = measure(toolkits, plan, arguments.repeats, errors)
    summary = summarise(measured)
    compared = ratios(toolkits, summary)
    if arguments.out:
        every = {
            name: {task: [asdict(run) for run in runs] for task, runs in tasks.items()}
            for name, tasks in measured.items()
        }
        about = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
        described = {
            toolkit.name: {"title": toolkit.title, "encoder": toolkit.encoder, "batches": toolkit.batches}
            for toolkit in toolkits
        }
        result = about | {"plan": asdict(plan), "toolkits": described, "measured": every, "summary": summary}
        arguments.out.write_text(json.dumps(result | {"ratios": compared, "errors": errors}, indent=1) + "\n", "utf-8")
    show(toolkits, summary, compared, errors)


if __name__ == "__main__":
    main()
