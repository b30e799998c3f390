"""How good a captioner is, and how right its attention: by decoding, and on a world where the right cells are known."""

import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.captions import Captions, ImageCaptions, read_captions
from regard.data.features import FeatureStore
from regard.data.images import PREPARATIONS, Images
from regard.errors import DataError, OptionError
from regard.metrics.captions import CaptionScores, caption_scores
from regard.metrics.regions import MapScores, RegionScores, map_scores, region_scores
from regard.systems.captioner import Captioner
from regard.worlds.scenes import Scene, scenes

BATCH = 100
Map = Float[np.ndarray, "_ _"]


@dataclass(frozen=True)
class CaptionEvaluation:
    """The scores of a captioner on a test set."""

    captions: list[str]
    scores: CaptionScores
    maps: MapScores | None
    """How its maps behave while it decodes; None without attention."""
    regions: RegionScores | None = None
    """Whether words look at what they speak of, the right words being given; only where that is known."""


def evaluate_captions(
    model: Captioner, shown: Any, references: Sequence[Sequence[str]], *, beam: int = 5, meteor: bool = True
) -> CaptionEvaluation:
    """Caption what is shown (pixels or features, as one tensor or some at a time), and compare with the references."""
    said: list[str] = []
    maps: list[Map] = []
    model.eval()
    for some in shown.split(BATCH) if isinstance(shown, Tensor) else shown:
        for hypotheses in model.search(some.to(model.device), beam=beam):
            best = hypotheses[0]
            said.append(model.tokenizer.decode(best.tokens))
            if best.weights is not None and best.tokens:
                maps.append(best.weights[: len(best.tokens)].double().cpu().numpy())
    if len(said) != len(references):
        raise OptionError(
            f"There are {len(said)} pictures and references for {len(references)}; there must be as many."
        )
    return CaptionEvaluation(said, caption_scores(said, references, meteor=meteor), map_scores(maps) if maps else None)


def evaluate_on_scenes(
    model: Captioner, *, count: int = 1000, split: str = "test", beam: int = 5, meteor: bool = True
) -> CaptionEvaluation:
    """The same on pictures of the world scenes, where it is known which cells each word belongs to."""
    painted = list(islice(scenes(split=split, side=model.config.size), count))
    pixels = torch.from_numpy(np.stack([one.image for one in painted])).permute(0, 3, 1, 2)
    found = evaluate_captions(model, pixels, [[one.caption] for one in painted], beam=beam, meteor=meteor)
    if model.config.architecture == "show_and_tell":
        return found
    maps = list(forced_maps(model, pixels, [one.caption for one in painted]))
    return CaptionEvaluation(found.captions, found.scores, found.maps, region_scores(maps, _gold(model, painted)))


def evaluate_on_photographs(
    model: Captioner,
    captions: str | os.PathLike[str],
    place: str | os.PathLike[str],
    *,
    split: str = "",
    beam: int = 5,
    meteor: bool = True,
) -> CaptionEvaluation:
    """The same on captions of a file, and pictures in a folder or archive, or their features in a store.

    Of a file with splits, those of the test are taken that have pictures there, or else those of the validation.
    """
    store = FeatureStore.open(place) if (Path(place) / "meta.json").is_file() else None
    images = Images(place) if store is None else None
    wanted = to_score(read_captions(captions), store or images or (), split=split)
    if not wanted:
        raise DataError(f"{place} has no pictures of {captions} to score on.")
    names = [one.image for one in wanted]
    shown = _features(model, store, names) if store is not None else _pixels(model, images, names)
    return evaluate_captions(model, shown, [one.captions for one in wanted], beam=beam, meteor=meteor)


def to_score(told: Captions, there: Container[str], *, split: str = "") -> list[ImageCaptions]:
    """Of captioned pictures those to test with: of the split, or the first of test, valid and none that is there."""
    some = [one for one in told if one.image in there]
    splits = [split] if split else ["test", "valid", ""]
    return next((found for name in splits if (found := [one for one in some if one.split == name])), [])


def _features(model: Captioner, store: FeatureStore, names: Sequence[str]) -> Iterator[Tensor]:
    if store.encoder != (expected := model.config.describe_features()):
        raise OptionError(f"{store.folder} has the features of {store.encoder!r}; the model takes {expected!r}.")
    for first in range(0, len(names), BATCH):
        yield torch.from_numpy(store.batch(names[first : first + BATCH]))


def _pixels(model: Captioner, images: Images | None, names: Sequence[str]) -> Iterator[Tensor]:
    prepare = PREPARATIONS[model.config.fit](model.config.size)
    for first in range(0, len(names), BATCH):
        some = [prepare(images.open(name)) for name in names[first : first + BATCH]] if images is not None else []
        yield torch.from_numpy(np.stack(some)).permute(0, 3, 1, 2)


def forced_maps(model: Captioner, shown: Tensor, captions: Sequence[str]) -> Iterator[Map]:
    """For each picture what each word of a given caption attends to, (words, cells); one-hot of hard attention."""
    model.eval()
    ids = model.tokenizer.encode_batch(captions)
    for first in range(0, len(ids), BATCH):
        some = ids[first : first + BATCH]
        with torch.no_grad():
            unrolled = model.look(model.encode(shown[first : first + BATCH].to(model.device)), some)
        if unrolled.weights is None:
            raise OptionError(f"A {model.config.architecture} model has no attention to look at.")
        weights = unrolled.weights.double().cpu().numpy()
        yield from (table[: len(words)] for table, words in zip(weights, some, strict=True))


def _gold(model: Captioner, painted: Sequence[Scene]) -> list[np.ndarray]:
    return [one.gold_cells(model.config.grid) for one in painted]
