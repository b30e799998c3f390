"""Align a parallel corpus without other tools: by counting, then by translators that learn from the counts.

1. Two hidden Markov models, one for each direction, are estimated from the corpus so that they agree; they give links.
   The links of another aligner may guide them.
2. A Transformer is trained for each direction, with one head guided by these links (Garg et al. 2019, section 4), read
   when the word is the input (Chen et al. 2020). It knows the context of a word, which counts do not.
3. Each further round trains them again from where they are, guided by the links on which both agreed.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from regard.data.alignments import format_links, read_links
from regard.data.progress import track
from regard.data.text import read_pairs
from regard.errors import DataError, OptionError
from regard.files import replacing
from regard.metrics.alignment import AlignmentScores, GoldAlignment, Link, alignment_error_rate
from regard.systems.system import choose_device
from regard.systems.translate.alignment import align_files, alignment_error
from regard.systems.translate.config import Symmetrize
from regard.systems.translate.hidden_markov import align_by_agreement
from regard.systems.translate.model import Translator

GUIDANCE = 0.5
"""Weight of the guidance, unless the tables say otherwise."""
GUIDED = {"model": {"alignment_head": 1}}
"""The links guide one head of a Transformer, whose heads are all alike before."""
DIRECTIONS = {"forward": "source to target", "backward": "target to source"}
File = str | os.PathLike[str]
Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Round:
    """What a round leaves in its folder: links, and from round 1 on two models."""

    folder: Path

    @property
    def forward(self) -> Path:
        """The model from source to target."""
        return self.folder / "forward" / "model"

    @property
    def backward(self) -> Path:
        """The model from target to source."""
        return self.folder / "backward" / "model"

    @property
    def links(self) -> Path:
        """The links of the pairs, source - target."""
        return self.folder / "forward.links"

    @property
    def backward_links(self) -> Path:
        """The same links as target - source."""
        return self.folder / "backward.links"

    @property
    def is_complete(self) -> bool:
        """Whether the round has ended: its links are written last."""
        return self.links.is_file()


def align_corpus(
    source: File,
    target: File,
    out: File,
    *,
    recipe: File = "aligner",
    rounds: int = 1,
    links: File | None = None,
    tables: Tables | None = None,
    symmetrize: Symmetrize = "mutual",
    gold: Sequence[GoldAlignment] = (),
    progress: bool = True,
    report: Callable[[str], Any] = lambda line: None,
) -> list[Round]:
    """Learn to align two parallel files from themselves alone; return what each round leaves in the folder `out`.

    Round 0 counts, and the following `rounds` train two translators. `links`, a file such as another aligner writes
    (`0-0 1-2` for each pair, or nothing), guides round 0. `tables` replaces fields of the recipe, as in
    tables={"train": {"minutes": 6}}. Rounds that are complete in `out` are not repeated. `report` is called with a line
    about each round, if there are `gold` links: its alignment error rate.
    """
    if rounds < 0:
        raise OptionError(f"rounds must be 0 or more; got {rounds}.")
    if rounds:
        from regard.systems.plan import read_recipe

        # A mistake in it is reported before round 0, which may take minutes.
        read_recipe(recipe, _merged(tables or {}, GUIDED))
    done = [Round(Path(out) / "round-0")]
    _count(done[0], source, target, links, gold, progress=progress, report=report)
    for number in range(1, rounds + 1):
        here = Round(Path(out) / f"round-{number}")
        if not _is_kept(here, progress=progress):
            _train_both(recipe, tables or {}, here, done[-1], (source, target), progress=progress)
            models = [Translator.load(folder) for folder in (here.forward, here.backward)]
            found = align_files(models[0], source, target, models[1], symmetrize=symmetrize)
            _write(here, (set(pair.links) for pair in track(found, "Linking", "pairs", enabled=progress)))
        if gold:
            models = [Translator.load(folder) for folder in (here.forward, here.backward)]
            _report(report, number, alignment_error(models[0], gold, models[1], symmetrize=symmetrize))
        done.append(here)
    return done


def _count(
    here: Round,
    source: File,
    target: File,
    links: File | None,
    gold: Sequence[GoldAlignment],
    *,
    progress: bool,
    report: Callable[[str], Any],
) -> None:
    """Write the links of the hidden Markov models, which must see what they align: also the gold sentences."""
    if _is_kept(here, progress=progress):
        return
    pairs: list[Any] = [(one.split(), other.split()) for one, other in read_pairs(source, target)]
    count = len(pairs)
    pairs += [(example.source, example.target) for example in gold]
    given = None if links is None else [*_read_links(links, count), *(set() for _ in gold)]
    found = align_by_agreement(pairs, links=given, device=choose_device(), progress=progress)
    if gold:
        sure, possible = [example.sure for example in gold], [example.possible for example in gold]
        _report(report, 0, alignment_error_rate(found[count:], sure, possible))
    _write(here, found[:count])


def _is_kept(here: Round, *, progress: bool) -> bool:
    """Whether a round is complete already; a message says so, since its options may have been others."""
    if here.is_complete and progress:
        sys.stderr.write(f"{here.folder} is complete, and not repeated.\n")
    return here.is_complete


def _read_links(path: File, count: int) -> list[set[Link]]:
    links = [{(i, j) for i, j in each.tolist()} for each in read_links(path)]
    if len(links) != count:
        raise DataError(
            f"{path} must have a line for each of the {count} pairs, empty without links; got {len(links)}."
        )
    return links


def _report(report: Callable[[str], Any], number: int, scores: AlignmentScores) -> None:
    report(
        f"Round {number}: AER {scores.error_rate:.3f}, precision {scores.precision:.3f}, recall {scores.recall:.3f}."
    )


def _train_both(
    recipe: File, tables: Tables, here: Round, before: Round, files: tuple[File, File], *, progress: bool
) -> None:
    """Train both directions, guided by the links of the round before: on a GPU side by side, else one after the other.

    From the second round on, the models of the round before are trained further: half as fast and half as long.
    """
    from regard.systems.plan import read_recipe

    resuming = before.forward.is_dir()
    train: dict[str, Any] = {"guidance": GUIDANCE}
    if resuming:
        base = read_recipe(recipe, tables).train
        train |= {"epochs": max(1, base.epochs // 2), "learning_rate": base.learning_rate / 2}
    jobs: dict[str, tuple[File, Tables, Path, Path | None]] = {}
    for name, (source, target) in zip(DIRECTIONS, (files, files[::-1]), strict=True):
        links = before.links if name == "forward" else before.backward_links
        own: Tables = {
            "data": {"source": str(source), "target": str(target), "alignments": str(links)},
            **GUIDED,
            "train": train,
        }
        if not getattr(here, name).is_dir():
            start = getattr(before, name) if resuming else None
            jobs[DIRECTIONS[name]] = (recipe, _merged(tables, own), here.folder / name, start)
    if len(jobs) < len(DIRECTIONS) or not torch.cuda.is_available():
        for direction, job in jobs.items():
            if progress:
                sys.stderr.write(f"Training {direction}.\n")
            _train(*job, progress)
        return
    with ProcessPoolExecutor(len(jobs), mp_context=get_context("spawn")) as pool:
        if progress:
            sys.stderr.write(f"Training {' and '.join(jobs)} side by side.\n")
        for direction, waiting in [(each, pool.submit(_train, *job, False)) for each, job in jobs.items()]:
            if (stopped := waiting.result()) and progress:
                sys.stderr.write(f"The training {direction} was stopped {stopped}.\n")


def _train(recipe: File, tables: Tables, out: Path, start_from: Path | None, progress: bool) -> str:
    """Train one direction, and say which limit stopped it, if any."""
    from regard.systems.run import train

    fields: dict[str, Any] = dict(tables)
    # A training that was interrupted goes on.
    trained = train(recipe, out=out, start_from=start_from, resume=True, progress=progress, **fields)
    return str(trained.metrics.get("stopped", ""))


def _write(here: Round, found: Iterable[set[Link]]) -> None:
    here.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # The last to be entered is the first to be put in place, and forward.links completes the round.
        drafts = [stack.enter_context(replacing(path)) for path in (here.links, here.backward_links)]
        streams = [stack.enter_context(draft.open("w", encoding="utf-8")) for draft in drafts]
        for links in found:
            streams[0].write(format_links(links) + "\n")
            streams[1].write(format_links((j, i) for i, j in links) + "\n")


def _merged(*tables: Tables) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: {key: value for table in tables for key, value in table.get(name, {}).items()} for name in names}
