"""How good a captioner is, and how accurate its attention: by decoding, and where the right cells are known."""

from collections.abc import Iterable
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from regard.data.regions import read_regions
from regard.errors import counted
from regard.metrics.captions import CaptionScores, caption_scores
from regard.metrics.intervals import Interval
from regard.metrics.regions import MapScores, PhraseScores, RegionScores, map_scores, phrase_scores, region_scores
from regard.search.options import Search
from regard.systems.caption.config import CaptionTest
from regard.systems.caption.data import BATCH, Map, Photographs, forced_maps, phrase_maps
from regard.systems.caption.model import Captioner
from regard.systems.report import Measure, Report


def evaluate(model: Captioner, test_set: CaptionTest, *, name: str = "model") -> Report:
    """Caption the images of a test set and compare with what people wrote."""
    model.check_mode()
    regions, phrases = None, None
    if test_set.world:
        captions, references, maps, regions = _on_scenes(model, test_set)
        novelty: list[float] = []
    else:
        photographs = Photographs.open(model, test_set)
        # First, so that unusable boxes are refused before the images are captioned.
        if test_set.regions:
            boxes = read_regions(test_set.regions, longer_side=test_set.regions_side)
            phrases = phrase_maps(model, photographs, boxes)
        captions, maps, novelty = decode(model, photographs.batches(), test_set)
        references = [list(one.captions) for one in photographs.captioned]
    found = caption_scores(captions, references, meteor=test_set.meteor)
    scores = _scores(found)
    if maps:
        scores |= _map_measures(map_scores(maps))
    if regions is not None:
        scores |= _region_measures(regions)
    if phrases is not None:
        scores |= _phrase_measures(phrase_scores(phrases, model.config.grid))
    if novelty:
        foreign = 100 * sum(distance > 1 for distance in novelty) / len(novelty)
        scores["foreign"] = Measure(foreign, "{:.1f}", "percent of the images are unlike the training images")
    outputs = [{"text": text, "references": list(texts)} for text, texts in zip(captions, references, strict=True)]
    return Report(name, f"{counted(found.count, 'image')}, beam {test_set.beam}", scores, outputs=outputs)


def decode(model: Captioner, images: Iterable[Tensor], options: Search) -> tuple[list[str], list[Map], list[float]]:
    """The captions of batches of pixels or features, the maps of those that have words, and the novelty of each image.

    There is no novelty for stored features, and for a model that does not say what is foreign to it.
    """
    captions: list[str] = []
    maps: list[Map] = []
    novelty: list[float] = []
    for batch in images:
        with torch.inference_mode():
            given = batch.to(model.device)
            found = model.search(given, options)
            if model.novelty is not None and given.ndim == 4:
                novelty += model.novelty(model.features(given).mean(1)).tolist()
        for best, *_ in found:
            captions.append(model.tokenizer.decode(best.tokens))
            if best.weights is not None and best.tokens:
                maps.append(best.weights[: len(best.tokens)].astype(np.float64))
    return captions, maps, novelty


def _on_scenes(
    model: Captioner, test_set: CaptionTest
) -> tuple[list[str], list[list[str]], list[Map], RegionScores | None]:
    from regard.worlds.scenes import scenes

    drawn = list(islice(scenes(split="test", side=model.config.image_size), test_set.count))
    pixels = torch.from_numpy(np.stack([scene.image for scene in drawn])).permute(0, 3, 1, 2)
    captions, maps, _ = decode(model, pixels.split(BATCH), test_set)
    references = [[scene.caption] for scene in drawn]
    if model.config.architecture == "show_and_tell":
        return captions, references, maps, None
    forced = list(forced_maps(model, pixels, [scene.caption for scene in drawn]))
    gold = [scene.gold_cells(model.config.grid) for scene in drawn]
    return captions, references, maps, region_scores(forced, gold)


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


def _phrase_measures(found: PhraseScores) -> dict[str, Measure]:
    def measure(value: Interval, center: Interval, shuffled: float, random: float) -> Measure:
        note = (
            f"percent, {100 * value.low:.1f} to {100 * value.high:.1f}; always the middle {100 * center.mean:.1f} "
            f"({100 * center.low:.1f} to {100 * center.high:.1f}), maps of other words {100 * shuffled:.1f}, "
            f"random {100 * random:.1f}"
        )
        return Measure(100 * value.mean, "{:.1f}", note)

    return {
        "pointing": measure(found.pointing, found.pointing_center, found.pointing_shuffled, found.pointing_random),
        "mass": measure(found.mass, found.mass_center, found.mass_shuffled, found.mass_random),
        "phrases": Measure(float(found.phrases), "{:.0f}", f"with boxes, in {counted(found.captions, 'caption')}"),
    }


def _region_measures(found: RegionScores) -> dict[str, Measure]:
    shuffled = "percent; {:.2f} with the maps shuffled among the words"
    return {
        "pointing": Measure(100 * found.pointing, note=shuffled.format(100 * found.pointing_shuffled)),
        "correctness": Measure(100 * found.correctness, note=shuffled.format(100 * found.correctness_shuffled)),
        "chance": Measure(100 * found.chance, note="percent of the cells are gold"),
    }
