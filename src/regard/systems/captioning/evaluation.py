"""How good a captioner is, and how right its attention: by decoding, and where the right cells are known."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.captions import Captions, ImageCaptions, read_captions
from regard.data.features import FeatureStore
from regard.data.images import Images
from regard.errors import DataError, OptionError
from regard.metrics.captions import CaptionScores, caption_scores
from regard.metrics.regions import MapScores, RegionScores, map_scores, region_scores
from regard.search.options import Search
from regard.systems.captioning import EvaluationSet
from regard.systems.captioning.model import Captioner
from regard.systems.report import Measure, Report

BATCH = 100
"""Images that are captioned together."""
Map = Float[np.ndarray, "_ _"]


def evaluate(model: Captioner, test_set: EvaluationSet, *, name: str = "model") -> Report:
    """Caption the images of a test set and compare with what people wrote."""
    if model.training:
        raise OptionError("This model is in training mode; call model.eval() first.")
    regions = None
    if test_set.world:
        captions, references, maps, regions = _on_scenes(model, test_set)
    else:
        captions, references, maps = _on_photographs(model, test_set)
    found = caption_scores(captions, references, meteor=test_set.meteor)
    scores = _scores(found)
    if maps:
        scores |= _map_measures(map_scores(maps))
    if regions is not None:
        scores |= _region_measures(regions)
    outputs = [{"text": text, "references": list(texts)} for text, texts in zip(captions, references, strict=True)]
    return Report(name, f"{found.count} images, beam {test_set.beam}", scores, outputs=outputs)


def decode(model: Captioner, images: Iterable[Tensor], options: Search) -> tuple[list[str], list[Map]]:
    """The captions of batches of pixels or features, and the maps of those that have words."""
    captions: list[str] = []
    maps: list[Map] = []
    for batch in images:
        with torch.inference_mode():
            found = model.search(batch.to(model.device), options)
        for best, *_ in found:
            captions.append(model.tokenizer.decode(best.tokens))
            if best.weights is not None and best.tokens:
                maps.append(best.weights[: len(best.tokens)].double().cpu().numpy())
    return captions, maps


def forced_maps(model: Captioner, images: Tensor, captions: Sequence[str]) -> Iterator[Map]:
    """For each image what each word of a given caption attends to, (words, cells); one-hot for hard attention."""
    ids = model.tokenizer.encode_batch(captions)
    for first in range(0, len(ids), BATCH):
        batch = ids[first : first + BATCH]
        with torch.inference_mode():
            unrolled = model.look(model.encode(images[first : first + BATCH].to(model.device)), batch)
        if unrolled.weights is None:
            raise OptionError(f"A {model.config.architecture} model has no attention to look at.")
        weights = unrolled.weights.double().cpu().numpy()
        yield from (table[: len(words)] for table, words in zip(weights, batch, strict=True))


def to_score(captions: Captions, available: Container[str], *, split: str = "") -> list[ImageCaptions]:
    """The captioned images to test with: of the split, or of the first of test, valid and none that has any."""
    present = [one for one in captions if one.image in available]
    splits = [split] if split else ["test", "valid", ""]
    return next((found for name in splits if (found := [one for one in present if one.split == name])), [])


def _on_scenes(
    model: Captioner, test_set: EvaluationSet
) -> tuple[list[str], list[list[str]], list[Map], RegionScores | None]:
    from regard.worlds.scenes import scenes

    drawn = list(islice(scenes(split="test", side=model.config.image_size), test_set.count))
    pixels = torch.from_numpy(np.stack([scene.image for scene in drawn])).permute(0, 3, 1, 2)
    captions, maps = decode(model, pixels.split(BATCH), test_set)
    references = [[scene.caption] for scene in drawn]
    if model.config.architecture == "show_and_tell":
        return captions, references, maps, None
    forced = list(forced_maps(model, pixels, [scene.caption for scene in drawn]))
    gold = [scene.gold_cells(model.config.grid) for scene in drawn]
    return captions, references, maps, region_scores(forced, gold)


def _on_photographs(model: Captioner, test_set: EvaluationSet) -> tuple[list[str], list[list[str]], list[Map]]:
    place = Path(test_set.images)
    store = FeatureStore.open(place) if (place / "meta.json").is_file() else None
    images = Images(place) if store is None else None
    captioned = to_score(read_captions(test_set.captions), store or images or (), split=test_set.split)
    if not captioned:
        raise DataError(f"{place} has no images of {test_set.captions} to score on.")
    names = [one.image for one in captioned]
    batches = _features(model, store, names) if store is not None else _pixels(model, images, names)
    captions, maps = decode(model, batches, test_set)
    return captions, [list(one.captions) for one in captioned], maps


def _features(model: Captioner, store: FeatureStore, names: Sequence[str]) -> Iterator[Tensor]:
    if store.encoder != (expected := model.config.describe_features()):
        raise OptionError(f"{store.folder} has the features of {store.encoder!r}; the model takes {expected!r}.")
    for first in range(0, len(names), BATCH):
        yield torch.from_numpy(store.batch(names[first : first + BATCH]))


def _pixels(model: Captioner, images: Images | None, names: Sequence[str]) -> Iterator[Tensor]:
    for first in range(0, len(names), BATCH):
        yield model.prepare([images.open(name) for name in names[first : first + BATCH]] if images is not None else [])


def _scores(found: CaptionScores) -> dict[str, Measure]:
    scores = {f"BLEU-{order}": Measure(value) for order, value in enumerate(found.bleu, 1)}
    scores["BLEU-4"] = Measure(found.bleu[3], note=found.bleu_signature)
    scores["ROUGE-L"] = Measure(found.rouge_l)
    scores["CIDEr-D"] = Measure(found.cider_d, "{:.3f}")
    if found.meteor is not None:
        scores["METEOR"] = Measure(found.meteor, note=found.meteor_name)
    scores["exact match"] = Measure(100 * found.exact_match, note="percent")
    return scores


def _map_measures(found: MapScores) -> dict[str, Measure]:
    return {
        "map variation": Measure(found.variation, "{:.3f}", "base-2 JS divergence between the maps of two words"),
        "entropy": Measure(found.entropy, "{:.3f}", "nats, of a map"),
        "distinct cells": Measure(found.distinct_cells, note="strongest cells in a caption"),
    }


def _region_measures(found: RegionScores) -> dict[str, Measure]:
    shuffled = "percent; {:.2f} with the maps shuffled among the words"
    return {
        "pointing": Measure(100 * found.pointing, note=shuffled.format(100 * found.pointing_shuffled)),
        "correctness": Measure(100 * found.correctness, note=shuffled.format(100 * found.correctness_shuffled)),
        "chance": Measure(100 * found.chance, note="percent of the cells are gold"),
    }
