"""The photographs of a test set with their captions, and where each word of a caption looks."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.captions import Captions, ImageCaptions, read_captions
from regard.data.features import FeatureStore
from regard.data.images import Images
from regard.data.regions import Phrase, Regions, cover, image_key
from regard.errors import DataError, OptionError
from regard.metrics.captions import caption_words
from regard.metrics.regions import PhraseMaps
from regard.systems.caption.config import CaptionTest
from regard.systems.caption.model import Captioner

BATCH = 100
"""Images that are captioned together."""
Map = Float[np.ndarray, "_ _"]


@dataclass(frozen=True)
class Photographs:
    """Captioned images, of which either the pixels or the features are at hand."""

    model: Captioner
    captioned: Sequence[ImageCaptions]
    images: Images | None
    store: FeatureStore | None

    @classmethod
    def open(cls, model: Captioner, test_set: CaptionTest) -> "Photographs":
        """Find the images of a test set that are captioned."""
        place = Path(test_set.images)
        store = FeatureStore.open(place) if (place / "meta.json").is_file() else None
        if store is not None and store.encoder != (expected := model.config.describe_features()):
            raise OptionError(f"{store.folder} has the features of {store.encoder!r}; the model takes {expected!r}.")
        images = Images(place) if store is None else None
        captioned = to_score(read_captions(test_set.captions), store or images or (), split=test_set.split)
        if not captioned:
            raise DataError(f"{place} has no images of {test_set.captions} to score on.")
        return cls(model, captioned, images, store)

    def batches(self, captioned: Sequence[ImageCaptions] | None = None) -> Iterator[Tensor]:
        """The pixels or features of all images, or of some of them."""
        names = [one.image for one in (self.captioned if captioned is None else captioned)]
        for first in range(0, len(names), BATCH):
            batch = names[first : first + BATCH]
            if self.store is not None:
                yield torch.from_numpy(self.store.batch(batch))
            elif self.images is not None:
                yield self.model.prepare([self.images.open(name) for name in batch])


def to_score(captions: Captions, available: Container[str], *, split: str = "") -> list[ImageCaptions]:
    """The captioned images to test with: of the split, or of the first of test, valid and none that has any."""
    present = [one for one in captions if one.image in available]
    splits = [split] if split else ["test", "valid", ""]
    return next((found for name in splits if (found := [one for one in present if one.split == name])), [])


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


def phrase_maps(model: Captioner, photographs: Photographs, regions: Regions) -> list[PhraseMaps]:
    """What the words of given captions attend to, where boxes around what their phrases name are known."""
    if photographs.images is None:
        raise OptionError("regions need the images themselves, whose shapes the boxes refer to; a store has none.")
    found = []
    known = [one for one in photographs.captioned if image_key(one.image) in regions]
    for one in known:
        by_caption: dict[int, list[Phrase]] = {}
        for phrase in regions[image_key(one.image)]:
            by_caption.setdefault(phrase.caption, []).append(phrase)
        found += [(one, number, phrases) for number, phrases in by_caption.items() if number < len(one.captions)]
    if not found:
        raise DataError("None of the images has a box around a phrase of its captions.")
    maps = []
    for first in range(0, len(found), BATCH):
        part = found[first : first + BATCH]
        opened = [photographs.images.open(one.image) for one, _, _ in part]
        texts = [one.captions[number] for one, number, _ in part]
        shapes = [image.size for image in opened]
        for table, text, shape, (_, _, phrases) in zip(
            forced_maps(model, model.prepare(opened), list(map(_plain, texts))), texts, shapes, part, strict=True
        ):
            maps.append(_phrases_of(model, table, text, shape, phrases))
    return maps


def _phrases_of(
    model: Captioner, table: Map, text: str, shape: tuple[int, int], phrases: Sequence[Phrase]
) -> PhraseMaps:
    words, covers = [], []
    for phrase in phrases:
        end = phrase.end_in(text)
        word = 0 if end is None else len(model.tokenizer.encode(_plain(text[:end])))
        if word:
            words.append(min(word, len(table)) - 1)
            covers.append(cover(model.config.seen(phrase.fractions(*shape), shape), model.config.grid))
    return PhraseMaps(table, words, np.array(covers).reshape(len(words), -1))


def _plain(caption: str) -> str:
    """A caption as captioners learn it: lower case, no punctuation."""
    return " ".join(caption_words(caption))
