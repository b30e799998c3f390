"""Train the document classifiers of docs/documents.md side by side on one GPU, and report their scores.

    python benchmarks/document_gates.py build/documents OUT [--at-once 4] [--seconds 540] [--seeds 1 2 3]

DATA is what benchmarks/pack_documents.py wrote. The most important runs start first; runs that would not end in time
are not started. OUT/summary.json has the metrics of every run, OUT/imdb-attention-1 the model to ship.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TYPICAL_SECONDS = 100
"""How long a run takes, before one has ended."""


def runs(data: Path, seeds: list[int]) -> dict[str, list[str]]:
    """Each run as its name and its arguments, the most important first."""
    imdb = ["imdb-han", "--data.folder", str(data / "imdb")]
    news = ["newsgroups-han", "--data.folder", str(data / "newsgroups")]
    found = {"imdb-attention-1": [*imdb, "--train.seed", "1"], "newsgroups-1": [*news, "--train.seed", "1"]}
    found["newsgroups-body-1"] = [*news, "--data.posts", "body", "--train.seed", "1"]
    for seed in seeds:
        for pool in ("attention", "average", "max"):
            found.setdefault(f"imdb-{pool}-{seed}", [*imdb, "--model.pool", pool, "--train.seed", str(seed)])
    return found


def start(name: str, arguments: list[str], out: Path) -> subprocess.Popen[bytes]:
    log = (out / f"{name}.log").open("wb")
    environment = os.environ | {"OMP_NUM_THREADS": "2", "RAYON_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "true"}
    command = [sys.executable, "-m", "regard", "train", *arguments, "--out", str(out / name)]
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)


def metrics_of(folder: Path) -> dict[str, Any] | None:
    path = folder / "model" / "metrics.json"
    return json.loads(path.read_text()) if path.is_file() else None


def explain(data: Path, out: Path) -> None:
    """Whether the attention of the IMDB model can be trusted: on test reviews, and against people's marks."""
    model = str(out / "imdb-attention-1" / "model")
    sets = {
        "faithfulness": ["--documents", str(data / "imdb/test.jsonl.xz"), "--count", "2000", "--faithfulness", "60"],
        "movies": ["--documents", str(data / "rationales/movies.jsonl.xz"), "--rationales", "true"],
        "tweets": ["--documents", str(data / "rationales/tweets.jsonl.xz"), "--rationales", "true", "--count", "300"],
    }
    jobs = {}
    for name, options in sets.items():
        command = [sys.executable, "-m", "regard", "evaluate", model, *options, "--json"]
        jobs[name] = subprocess.Popen(
            command, stdout=(out / f"{name}.json").open("wb"), stderr=(out / f"{name}.log").open("wb")
        )
    for job in jobs.values():
        job.wait()


def summarise(out: Path, names: list[str]) -> None:
    scores = {name: metrics for name in names if (metrics := metrics_of(out / name)) is not None}
    (out / "summary.json").write_text(json.dumps(scores, indent=1))
    for name, metrics in scores.items():
        print(
            f"{name:22} test {metrics.get('test_accuracy', 0):.2f}  valid {metrics['valid_accuracy']:.2f}", flush=True
        )
    for pool in ("average", "max"):
        gains = [
            scores[f"imdb-attention-{seed}"]["test_accuracy"] - scores[f"imdb-{pool}-{seed}"]["test_accuracy"]
            for seed in range(1, 10)
            if {f"imdb-attention-{seed}", f"imdb-{pool}-{seed}"} <= scores.keys()
        ]
        if len(gains) > 1:
            print(
                f"gain over {pool}: {statistics.mean(gains):.2f} +- {statistics.stdev(gains):.2f}, {len(gains)} pairs"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began, longest = time.monotonic(), float(TYPICAL_SECONDS)
    waiting = list(runs(given.data, given.seeds).items())
    names, running = [name for name, _ in waiting], dict[str, tuple[subprocess.Popen[bytes], float]]()
    explained = False
    while waiting or running:
        for name, (job, start_time) in list(running.items()):
            if job.poll() is not None:
                longest = max(longest if len(running) < len(names) else 0, time.monotonic() - start_time)
                print(f"{name}: status {job.returncode} after {time.monotonic() - start_time:.0f} s", flush=True)
                del running[name]
        left = given.seconds - (time.monotonic() - began)
        while waiting and len(running) < given.at_once and left > longest:
            name, arguments = waiting.pop(0)
            running[name] = (start(name, arguments, given.out), time.monotonic())
        if left <= longest and not running:
            break
        if left <= 0:
            for job, _ in running.values():
                job.terminate()
        time.sleep(0.5)
    left = given.seconds - (time.monotonic() - began)
    if not explained and metrics_of(given.out / "imdb-attention-1") and left > 60:
        explain(given.data, given.out)
    summarise(given.out, names)


if __name__ == "__main__":
    main()
