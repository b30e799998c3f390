"""Align a parallel corpus with no other tool: two translators, one for each direction, that teach each other.

1. Train a Transformer in each direction, and choose the layers whose attention agrees most between them.
2. Link the words of the training pairs by both.
3. Train both further, one head of each guided by these links (Garg et al. 2019, section 4), where the alignment is read
   when the word is the input (Chen et al. 2020). Each further round repeats 2 and 3.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from regard.data.progress import track
from regard.data.text import read_pairs
from regard.data.word_links import format_links, read_links
from regard.errors import OptionError
from regard.files import replacing
from regard.metrics.alignment import GoldAlignment
from regard.systems.translation import Symmetrize
from regard.systems.translation.alignment import align_files, alignment_error, choose_layers, reading_layer
from regard.systems.translation.model import Translator

SAMPLE = 1000
"""Number of pairs on which the layers of the two directions are compared."""
GUIDANCE = 0.5
"""Weight of the guidance, unless the tables say otherwise."""
GUIDED_HEAD = 1
"""The head that the links guide, counted from 1; a Transformer's heads are all alike before."""
DIRECTIONS = ("forward", "backward")
Path_ = str | os.PathLike[str]
Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Round:
    """What a round of training leaves in its folder."""

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
        """The links of the training pairs, source - target."""
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
    source: Path_,
    target: Path_,
    out: Path_,
    *,
    recipe: Path_ = "aligner",
    rounds: int = 2,
    links: Path_ | None = None,
    first: Tables | None = None,
    later: Tables | None = None,
    symmetrize: Symmetrize = "mutual",
    gold: Sequence[GoldAlignment] = (),
    progress: bool = True,
    report: Callable[[str], Any] = lambda line: None,
) -> list[Round]:
    """Learn to align two parallel files from themselves alone; return what each round leaves in the folder `out`.

    With `links`, a file such as another aligner writes (`0-0 1-2` for each pair), the first round is guided as well.
    `first` and `later` replace fields of the recipe's tables in the first round and in those after it, as in
    first={"train": {"minutes": 6}}. Rounds that are complete in `out` are not repeated. `report` is called with a line
    about each round, which has the alignment error rate if there are `gold` links.
    """
    if rounds < 1:
        raise OptionError(f"rounds must be 1 or more; got {rounds}.")
    done: list[Round] = []
    guide = None if links is None else _both_ways(Path(links), Path(out) / "given")
    for number in range(1, rounds + 1):
        here = Round(Path(out) / f"round-{number}")
        if not here.is_complete:
            tables = _merged(_later_training(recipe), later or {}) if done else (first or {})
            _train_both(recipe, tables, here, (source, target), guide, done[-1] if done else None, progress=progress)
            if guide is None:
                report(f"Round {number}: {_choose_layers(here, source, target)}")
            _write_links(here, source, target, symmetrize=symmetrize, progress=progress)
        if gold:
            models = [Translator.load(folder) for folder in (here.forward, here.backward)]
            error = alignment_error(models[0], gold, models[1], symmetrize=symmetrize)
            report(
                f"Round {number}: AER {error.error_rate:.3f}, precision {error.precision:.3f}, "
                f"recall {error.recall:.3f}."
            )
        guide = (here.links, here.backward_links)
        done.append(here)
    return done


def _both_ways(links: Path, folder: Path) -> tuple[Path, Path]:
    """The files of given links as source - target and as target - source."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "backward.links") as draft, draft.open("w", encoding="utf-8") as stream:
        stream.writelines(format_links((j, i) for i, j in each.tolist()) + "\n" for each in read_links(links))
    return links, folder / "backward.links"


def _later_training(recipe: Path_) -> Tables:
    """How the rounds after the first are trained: from trained models, so half as fast and half as long."""
    from regard.systems.run import read_recipe

    train = read_recipe(recipe).train
    return {"train": {"epochs": max(1, train.epochs // 2), "learning_rate": train.learning_rate / 2}}


def _train_both(
    recipe: Path_,
    tables: Tables,
    here: Round,
    files: tuple[Path_, Path_],
    guide: tuple[Path, Path] | None,
    before: Round | None,
    *,
    progress: bool,
) -> None:
    """Train both directions, guided by their links if there are any: one after the other, or on a GPU side by side."""
    jobs = []
    for place, (name, (source, target)) in enumerate(zip(DIRECTIONS, (files, files[::-1]), strict=True)):
        own: dict[str, dict[str, Any]] = {"data": {"source": str(source), "target": str(target)}}
        if guide is not None:
            own["data"]["alignments"] = str(guide[place])
            own["train"] = {"guidance": GUIDANCE}
            own["model"] = {"alignment_head": GUIDED_HEAD}
        start = None
        if before is not None:
            start = getattr(before, name)
            config = Translator.load(start, device="cpu").config
            own["model"] |= {"alignment_layer": config.alignment_layer, "alignment_step": config.alignment_step}
        jobs.append((recipe, _merged(own, tables), here.folder / name, start))
    if not torch.cuda.is_available():
        for job in jobs:
            _train(*job, progress)
        return
    with ProcessPoolExecutor(len(jobs), mp_context=get_context("spawn")) as pool:
        for waiting in [pool.submit(_train, *job, False) for job in jobs]:
            waiting.result()


def _train(recipe: Path_, tables: Tables, out: Path, start_from: Path | None, progress: bool) -> None:
    from regard.systems.run import train

    fields: dict[str, Any] = dict(tables)
    train(recipe, out=out, start_from=start_from, progress=progress, **fields)


def _choose_layers(here: Round, source: Path_, target: Path_) -> str:
    """Store with each model of the first round which layer aligns words; return a sentence about it."""
    sample = [(one.split(), other.split()) for one, other in islice(read_pairs(source, target), SAMPLE)]
    models = [Translator.load(folder) for folder in (here.forward, here.backward)]
    *layers, agreement = choose_layers(models[0], models[1], sample)
    for folder, model, layer in zip((here.forward, here.backward), models, layers, strict=True):
        reading_layer(model, layer).save(folder)
    return f"layers {layers[0]} and {layers[1]} agree on {100 * agreement:.1f} % of their links."


def _write_links(here: Round, source: Path_, target: Path_, *, symmetrize: Symmetrize, progress: bool) -> None:
    models = [Translator.load(folder) for folder in (here.forward, here.backward)]
    found = align_files(models[0], source, target, models[1], symmetrize=symmetrize)
    with ExitStack() as stack:
        # The last to be entered is the first to be put in place, and forward.links completes the round.
        drafts = [stack.enter_context(replacing(path)) for path in (here.links, here.backward_links)]
        streams = [stack.enter_context(draft.open("w", encoding="utf-8")) for draft in drafts]
        for pair in track(found, "Linking", "pairs", enabled=progress):
            streams[0].write(pair.to_text() + "\n")
            streams[1].write(format_links((j, i) for i, j in pair.links) + "\n")


def _merged(*tables: Tables) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: {key: value for table in tables for key, value in table.get(name, {}).items()} for name in names}
