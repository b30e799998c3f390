"""Train the document classifiers of docs/documents.md side by side on one GPU, and report their scores.

    python benchmarks/document_gates.py build/documents RUNS OUT [--at-once 4] [--seconds 540] [--seeds 1 2 3]

The first folder is what benchmarks/pack_documents.py wrote. Training runs go to RUNS; OUT gets summary.json, the logs,
the reports on faithfulness, and reviews-en, the IMDB classifier with the best validation score, stored in int8. The
most important runs start first, and a run that would not end in time is not started.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TYPICAL_SECONDS = 90.0
"""How long a run takes, before one has ended."""
EXPLANATION_SECONDS = 75.0
"""How long the reports on faithfulness take."""


def runs(data: Path, seeds: list[int]) -> dict[str, list[str]]:
    """Each run as its name and its arguments, the most important first."""
    vectors = ["--data.vectors", "../vectors.npz"]
    imdb = ["imdb-han", "--data.folder", str(data / "imdb"), *vectors]
    news = ["newsgroups-han", "--data.folder", str(data / "newsgroups"), *vectors]
    found = {
        "imdb-attention-1": [*imdb, "--train.seed", "1"],
        "newsgroups-1": [*news, "--train.seed", "1"],
        "newsgroups-body-1": [*news, "--data.posts", "body", "--train.seed", "1"],
    }
    for seed in seeds:
        for pool in ("attention", "average", "max"):
            found.setdefault(f"imdb-{pool}-{seed}", [*imdb, "--model.pool", pool, "--train.seed", str(seed)])
    return found


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "2", "RAYON_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "true"}
    command = [sys.executable, "-m", "regard", *arguments]
    with log.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=environment)


def train_all(given: argparse.Namespace, began: float) -> dict[str, dict[str, Any]]:
    """Run as many of the trainings as there is time for, some at once; their metrics by name."""
    waiting = list(runs(given.data, given.seeds).items())
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    longest, metrics = TYPICAL_SECONDS, dict[str, dict[str, Any]]()
    while waiting or running:
        for name, (job, since) in list(running.items()):
            if job.poll() is not None:
                took = time.monotonic() - since
                longest = max(longest, took) if metrics else took
                path = given.runs / name / "model" / "metrics.json"
                if path.is_file():
                    metrics[name] = json.loads(path.read_text()) | {"seconds": round(took)}
                print(f"{name}: status {job.returncode} after {took:.0f} s", flush=True)
                del running[name]
        left = given.seconds - EXPLANATION_SECONDS - (time.monotonic() - began)
        if left <= longest:
            waiting = []
        while waiting and len(running) < given.at_once:
            name, arguments = waiting.pop(0)
            command = ["train", *arguments, "--out", str(given.runs / name)]
            running[name] = (start(command, given.out / f"{name}.log"), time.monotonic())
        if left <= -EXPLANATION_SECONDS / 2:
            for job, _ in running.values():
                job.kill()
        time.sleep(0.5)
    return metrics


def explain(given: argparse.Namespace, model: Path, began: float) -> None:
    """Whether the attention can be trusted: on test reviews, and against the words that people marked."""
    sets = {
        "faithfulness": ["imdb/test.jsonl.xz", "--count", "400", "--faithfulness", "60"],
        "movies": ["rationales/movies.jsonl.xz", "--rationales", "true"],
        "tweets": ["rationales/tweets.jsonl.xz", "--rationales", "true", "--count", "400"],
    }
    jobs = [
        start(
            ["evaluate", str(model), "--documents", str(given.data / file), *options, "--json"],
            given.out / f"{name}.json",
        )
        for name, (file, *options) in sets.items()
    ]
    for job in jobs:
        try:
            job.wait(timeout=max(1.0, given.seconds - (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            job.kill()


def summarise(out: Path, scores: dict[str, dict[str, Any]]) -> None:
    (out / "summary.json").write_text(json.dumps(scores, indent=1))
    for name, metrics in scores.items():
        print(
            f"{name:20} test {metrics.get('test_accuracy', 0):.2f}  valid {metrics['valid_accuracy']:.2f}", flush=True
        )
    for pool in ("average", "max"):
        pairs = [(f"imdb-attention-{seed}", f"imdb-{pool}-{seed}") for seed in range(1, 10)]
        gains = [
            scores[one]["test_accuracy"] - scores[other]["test_accuracy"]
            for one, other in pairs
            if {one, other} <= scores.keys()
        ]
        if len(gains) > 1:
            print(
                f"gain over {pool}: {statistics.mean(gains):.2f} +- {statistics.stdev(gains):.2f} ({len(gains)} seeds)"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "runs", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    scores = train_all(given, began)
    summarise(given.out, scores)
    candidates = [name for name in scores if name.startswith("imdb-attention")]
    if candidates:
        from regard.systems.documents.model import DocumentClassifier

        best = given.runs / max(candidates, key=lambda name: scores[name]["valid_accuracy"])
        shutil.copy(best / "recipe.toml", given.out / "recipe.toml")
        DocumentClassifier.load(best / "model", device="cpu").save(given.out / "reviews-en", store="int8")
        explain(given, given.out / "reviews-en", began)


if __name__ == "__main__":
    main()
