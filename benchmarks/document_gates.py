"""Train and measure the document classifiers of docs/measurements/results.md, some side by side.

    python benchmarks/document_gates.py DATA OUT imdb newsgroups rationales [--seeds 1 2 3] [--at-once 3]

imdb trains attention, average and max pooling with each seed, and reports the gain of attention over the other two.
newsgroups trains on whole posts and on their bodies. rationales compares the attention with the words that people
marked, beside gradients and random scores, and measures the faithfulness of the shipped reviews-en. DATA holds

    vectors.npz                       word vectors of 100 numbers, or vectors.txt (GloVe)
    imdb/{train,test}.jsonl.xz        text and label (0, 1) of each review
    newsgroups/{train,test}.jsonl.xz  text and group of each post
    movies.jsonl.xz                   label, split, sentences and rationale_token_spans (ERASER)
    tweets/{train,valid}.tsv.xz       sentiment, start and end of the marked characters, a flag, the tweet

Trainings go to OUT/runs, where one that is complete is not repeated; logs, reports and summary.json to OUT. What would
end after --seconds is stopped.
"""

import argparse
import json
import lzma
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POOLS = ("attention", "average", "max")
RATIONALE_EPOCHS = {"movies": 10, "tweets": 6}


@dataclass(frozen=True)
class Run:
    """A training, reports on its model, or both."""

    name: str
    train: tuple[str, ...] = ()
    """Arguments of `regard train`; without them, a shipped model is evaluated."""
    evaluate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arguments of `regard evaluate` by the name of the report."""
    model: str = ""
    """The shipped model."""


def imdb_runs(given: argparse.Namespace) -> list[Run]:
    """Three poolings with each seed; those of one seed are neighbours, so that whole pairs end first."""
    fields = {"data.folder": given.data / "imdb", "data.vectors": vectors(given.data)}
    return [
        Run(f"imdb-{pool}-{seed}", training(given, "imdb-han", fields | {"model.pool": pool, "train.seed": seed}))
        for seed in given.seeds
        for pool in POOLS
    ]


def newsgroups_runs(given: argparse.Namespace) -> list[Run]:
    fields = {"data.folder": given.data / "newsgroups", "data.vectors": vectors(given.data)}
    return [
        Run(
            f"newsgroups-{posts}-{seed}",
            training(given, "newsgroups-han", fields | {"data.posts": posts, "train.seed": seed}),
        )
        for seed in given.seeds
        for posts in ("whole", "body")
    ]


def rationales_runs(given: argparse.Namespace) -> list[Run]:
    """A model for each set of marked documents, and the shipped one; its faithfulness on reviews that it never saw."""
    folder = given.out / "rationales"
    write(folder / "movies-train.jsonl", movies(given.data / "movies.jsonl.xz", "train"))
    write(folder / "movies-valid.jsonl", movies(given.data / "movies.jsonl.xz", "val"))
    for part in ("train", "valid"):
        write(folder / f"tweets-{part}.jsonl", tweets(given.data / f"tweets/{part}.tsv.xz"))
    marked = {
        name: ("--documents", str(folder / f"{name}-valid.jsonl"), "--rationales", "true")
        for name in ("movies", "tweets")
    }
    test = ("--documents", str(given.data / "imdb/test.jsonl.xz"), "--faithfulness", str(given.faithfulness))
    shipped = {"reviews-en on movies": marked["movies"], "reviews-en on IMDB": test}
    runs = [Run("reviews-en", (), shipped, "reviews-en")]
    for name, epochs in RATIONALE_EPOCHS.items():
        fields = {"data.folder": folder, "data.train": f"{name}-train.jsonl", "data.test": ""}
        fields |= {"data.vectors": vectors(given.data), "train.epochs": epochs, "train.seed": given.seeds[0]}
        runs.append(Run(f"{name}-{given.seeds[0]}", training(given, "imdb-han", fields), {name: marked[name]}))
    return runs


SUITES = {"imdb": imdb_runs, "newsgroups": newsgroups_runs, "rationales": rationales_runs}


def training(given: argparse.Namespace, recipe: str, fields: dict[str, Any]) -> tuple[str, ...]:
    """Arguments of `regard train` for a recipe with these fields, and those of --set in place of them."""
    fields = fields | dict(each.split("=", 1) for each in given.set)
    return (recipe, *(part for name, value in fields.items() for part in (f"--{name}", str(value))))


def vectors(data: Path) -> Path:
    path = next((data / name for name in ("vectors.npz", "vectors.txt") if (data / name).is_file()), None)
    if path is None:
        raise SystemExit(f"There are no word vectors {data}/vectors.npz or {data}/vectors.txt.")
    return path.resolve()


def movies(path: Path, split: str) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["split"] == split:
                yield {key: row[key] for key in ("label", "sentences", "rationale_token_spans")}


def tweets(path: Path) -> Iterator[dict[str, Any]]:
    """Tweets with a sentiment, each as one sentence; a word is marked if the annotator chose any of its characters."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            label, start, end, _, text = line.rstrip("\n").split("\t", 4)
            if label == "neutral":
                continue
            indices = [found.span() for found in re.finditer(r"\S+", text)]
            marked = [index for index, (left, right) in enumerate(indices) if left < int(end) and right > int(start)]
            if marked:
                spans = [[marked[0], marked[-1] + 1]]
                yield {"label": label, "sentences": [" ".join(text.split())], "rationale_token_spans": spans}


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def execute(run: Run, given: argparse.Namespace) -> dict[str, Any]:
    """Train and evaluate; the metrics of the training and the scores and notes of the reports."""
    began = time.monotonic()
    folder = given.out / "runs" / run.name
    result: dict[str, Any] = {}
    if run.train:
        if not (folder / "model" / "metrics.json").is_file():
            status = call(["train", *run.train, "--out", str(folder)], given.out / f"{run.name}.log", given)
            print(f"{run.name}: status {status} after {time.monotonic() - began:.0f} s", flush=True)
            if status:
                return {}
        result = json.loads((folder / "model" / "metrics.json").read_text())
        result["seconds"] = round(time.monotonic() - began)
    for name, arguments in run.evaluate.items():
        report = given.out / f"report-{name.replace(' ', '-')}.json"
        model = run.model or str(folder)
        if call(["evaluate", model, *arguments, "--json"], report, given) == 0:
            result.setdefault("reports", {})[name] = json.loads(report.read_text())
    return result


def call(arguments: list[str], output: Path, given: argparse.Namespace) -> int:
    """Run regard with its output in a file; the exit status, or 124 where the time was up."""
    environment = {"OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "true"} | os.environ
    command = [sys.executable, "-m", "regard", *arguments]
    left = given.seconds - (time.monotonic() - given.began)
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
        try:
            done = subprocess.run(command, stdout=out, stderr=err, env=environment, check=False, timeout=max(1, left))
        except subprocess.TimeoutExpired:
            return 124
    return done.returncode


def summarise(scores: dict[str, dict[str, Any]]) -> None:
    for name, found in scores.items():
        if "test_accuracy" in found:
            print(
                f"{name:22} test {found['test_accuracy']:.2f}  valid {found['valid_accuracy']:.2f}  "
                f"epochs {found['epochs']}  {found['seconds']} s"
            )
        for title, report in found.get("reports", {}).items():
            print(f"\n{title}: {report['title']}")
            for score, measure in report["scores"].items():
                print(f"  {score:36} {measure['value']:8.3f}  {measure.get('note', '')}")
            print(*(f"  {note}" for note in report["notes"]), sep="\n")
    for pool in POOLS[1:]:
        gains = [
            scores[one]["test_accuracy"] - scores[other]["test_accuracy"]
            for one in scores
            if one.startswith("imdb-attention-") and (other := one.replace("attention", pool)) in scores
        ]
        if gains:
            spread = f" +- {statistics.stdev(gains):.2f}" if len(gains) > 1 else ""
            listed = ", ".join(f"{gain:+.2f}" for gain in gains)
            print(f"gain of attention over {pool}: {statistics.mean(gains):+.2f}{spread} points ({listed})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("suites", nargs="+", choices=list(SUITES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=3, help="runs side by side")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for everything")
    parser.add_argument("--faithfulness", type=int, default=100, help="reviews to measure faithfulness on")
    parser.add_argument("--set", nargs="*", default=[], metavar="FIELD=VALUE", help="fields of the recipes to replace")
    given = parser.parse_args()
    given.began = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    runs = [run for suite in given.suites for run in SUITES[suite](given)]
    with ThreadPoolExecutor(given.at_once) as pool:
        found = dict(zip((run.name for run in runs), pool.map(lambda run: execute(run, given), runs), strict=True))
    scores = {name: each for name, each in found.items() if each}
    (given.out / "summary.json").write_text(json.dumps(scores, indent=1))
    summarise(scores)
    if missing := [name for name in found if name not in scores]:
        raise SystemExit(f"Not complete: {', '.join(missing)}; see the logs in {given.out}.")


if __name__ == "__main__":
    main()
