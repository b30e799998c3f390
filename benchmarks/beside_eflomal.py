"""Align the same sentence pairs with regard and with eflomal, and compare both with gold links.

    python benchmarks/beside_eflomal.py PAIRS.tsv[.gz|.xz] GOLD.jsonl[.gz] --out FOLDER

PAIRS holds source<TAB>target, GOLD lines with src, tgt, sure and possible. eflomal is installed into an environment
of its own (FOLDER/eflomal; it needs a C compiler). It aligns the pairs with the gold sentences behind them, since it
must see what it aligns; so do regard's hidden Markov models (round 0), alone and guided by the links on which both
directions of eflomal agree. With --rounds 1, regard also trains Transformers on the pairs, guided by either round 0.
What FOLDER already holds is not made again, so that the trainings may be done elsewhere:

    cd FOLDER
    regard align-corpus pairs.source pairs.target --out alone
    regard align-corpus pairs.source pairs.target --out guided --links eflomal.links
"""

import argparse
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from regard.data.alignments import format_links, read_gold, read_links
from regard.data.text import read_tsv
from regard.metrics.alignment import GoldAlignment, Link, alignment_error_rate, symmetrize
from regard.systems.translate.alignment import WordPair, link_words
from regard.systems.translate.corpus_alignment import align_corpus
from regard.systems.translate.hidden_markov import align_by_agreement
from regard.systems.translate.model import Translator

EFLOMAL = "eflomal==2.0.0"
HEURISTICS = ("intersection", "grow-diag", "grow-diag-final-and")
Links = list[set[Link]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("gold", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=0, help="trainings of regard; 0, the default, for none")
    parser.add_argument("--minutes", type=float, default=0.0, help="of each training; 0 for no limit")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    pairs, gold = list(read_tsv(arguments.pairs)), read_gold(arguments.gold)
    for side, name in enumerate(("source", "target")):
        _write(out / f"pairs.{name}", [pair[side] for pair in pairs])
    table = Table("aligner", "links", "AER", "precision", "recall", "seconds")
    for name, links, seconds in by_eflomal(out, len(pairs), gold):
        _add(table, "eflomal", name, links, gold, seconds)
    words = [(example.source, example.target) for example in gold]
    everything = [*((one.split(), other.split()) for one, other in pairs), *words]
    given = [{(i, j) for i, j in links.tolist()} for links in read_links(out / "all.links")]
    for name, evidence in (("regard, round 0", None), ("regard, round 0, guided", given)):
        began = time.perf_counter()
        links = align_by_agreement(everything, links=evidence, progress=True)
        _add(table, name, "agreement", links[len(pairs) :], gold, time.perf_counter() - began)
    if arguments.rounds:
        for name, links, seconds in by_regard(out, words, arguments.rounds, arguments.minutes):
            _add(table, *name, links, gold, seconds)
    Console().print(table)


def by_regard(
    out: Path, words: Sequence[WordPair], rounds: int, minutes: float
) -> Iterator[tuple[tuple[str, str], Links, float | None]]:
    """The links of the gold sentences by the models of each round, alone and guided by eflomal."""
    for name, options in (("alone", {}), ("guided", {"links": out / "eflomal.links"})):
        for number in range(1, rounds + 1):
            began = time.perf_counter()
            made = align_corpus(
                out / "pairs.source",
                out / "pairs.target",
                out / name,
                rounds=number,
                tables={"train": {"minutes": minutes, "schedule_by": "clock"}} if minutes else None,
                **options,
            )[-1]
            seconds = time.perf_counter() - began
            forward, backward = Translator.load(made.forward), Translator.load(made.backward)
            for how in ("mutual", *HEURISTICS):
                links = link_words(forward, words, backward, symmetrize=how)
                # A round that was there before took no time.
                is_timed = how == "mutual" and seconds > 10
                yield (f"regard, round {number}, {name}", how), links, seconds if is_timed else None


def by_eflomal(out: Path, count: int, gold: Sequence[GoldAlignment]) -> list[tuple[str, Links, float | None]]:
    """The links of the gold sentences by eflomal, for each way to combine the directions.

    Writes the intersection of both directions as all.links, and that of the pairs without the gold as eflomal.links.
    """
    found = [out / f"eflomal.{direction}" for direction in ("forward", "backward")]
    seconds = None
    if not all(path.is_file() for path in found):
        texts = []
        for name in ("source", "target"):
            lines = (out / f"pairs.{name}").read_text(encoding="utf-8").splitlines()
            more = [" ".join(example.source if name == "source" else example.target) for example in gold]
            texts.append(_write(out / f"all.{name}", [*lines, *more]))
        command = [_environment(out / "eflomal") / "eflomal-align", "-s", texts[0], "-t", texts[1]]
        began = time.perf_counter()
        subprocess.run([*map(str, command), "-f", str(found[0]), "-r", str(found[1])], check=True)
        seconds = time.perf_counter() - began
    forward, backward = ([{(i, j) for i, j in links.tolist()} for links in read_links(path)] for path in found)
    agreed = [format_links(one & other) for one, other in zip(forward, backward, strict=True)]
    _write(out / "all.links", agreed)
    _write(out / "eflomal.links", agreed[:count])
    ends = list(zip(forward[count:], backward[count:], strict=True))
    return [
        ("forward", [one for one, _ in ends], seconds),
        ("backward", [other for _, other in ends], None),
        *((how, [symmetrize(one, other, how) for one, other in ends], None) for how in HEURISTICS),
    ]


def _environment(folder: Path) -> Path:
    """The programs of eflomal's own environment, which is created unless it exists."""
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if not (programs / "eflomal-align").is_file():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "--quiet", EFLOMAL], check=True)
    return programs


def _add(
    table: Table, aligner: str, how: str, links: Links, gold: Sequence[GoldAlignment], seconds: float | None
) -> None:
    scores = alignment_error_rate(links, [example.sure for example in gold], [example.possible for example in gold])
    numbers = (f"{value:.3f}" for value in (scores.error_rate, scores.precision, scores.recall))
    table.add_row(aligner, how, *numbers, "" if seconds is None else f"{seconds:.0f}")


def _write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
