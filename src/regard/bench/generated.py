"""Random data of the sizes of a recipe, so that its training can be timed where its own data is not."""

import string
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from regard.data.captioned_images import CaptionedImages, ImageTensors
from regard.data.documents import Document
from regard.data.labelled_images import LabelledImages
from regard.data.splits import Splits, Stream
from regard.systems.caption.data import CaptionSplits
from regard.systems.classify.data import DocumentSplits
from regard.systems.read.data import SENTIMENTS, Example
from regard.systems.translate.data import PairStream, TranslationSplits
from regard.training.recipes import Recipe

LENGTHS = (5, 25)
"""Words of the shortest and the longest sentence."""
VOCABULARY = 10_000
"""Words of a vocabulary that a recipe does not limit."""
SENTENCES = 12
"""Sentences of a document."""
CLASSES = ("one", "two", "three")
HELD_OUT = 20


def generated(recipe: Recipe, batches: int) -> tuple[Recipe, Any]:
    """A recipe of files or of a world with random data instead, enough for about this many batches, and its splits.

    The splits are None where the system draws its data itself.
    """
    data, train = recipe.data, recipe.train
    if recipe.system == "glimpse":
        return replace(recipe, data=replace(data, folder="")), None
    if getattr(data, "world", ""):
        # A world draws its data itself: as much as is needed, and no more.
        count = min(data.examples, max(500, batches * _examples(train)))
        return replace(recipe, data=replace(data, examples=count, held_out=HELD_OUT, held_out_test=0)), None
    if recipe.system not in SPLITS:
        return recipe, None
    if getattr(data, "vectors", ""):
        recipe = replace(recipe, data=replace(data, vectors=""))
    return recipe, SPLITS[recipe.system](recipe, batches * _examples(train))


def _examples(train: Any) -> int:
    """How many examples a batch has, at most."""
    size = getattr(train, "batch_size", 0) or getattr(train, "max_tokens", 0) // np.mean(LENGTHS)
    return max(64, int(size))


class Words:
    """Random words, as many as a vocabulary has, the first of them the most frequent (Zipf 1935)."""

    def __init__(self, count: int, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        letters = np.array(list(string.ascii_lowercase))
        words: dict[str, None] = {}
        while len(words) < count:
            words["".join(self._random.choice(letters, self._random.integers(2, 10)))] = None
        self._words = np.array(list(words))
        weights = 1 / np.arange(1, count + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def sentence(self) -> list[str]:
        """A sentence of random length."""
        indices = np.searchsorted(self._cumulative, self._random.random(self._random.integers(*LENGTHS)))
        found: list[str] = self._words[np.minimum(indices, len(self._words) - 1)].tolist()
        return found

    def every(self, times: int) -> Iterator[list[str]]:
        """Sentences in which each word occurs so often that a vocabulary keeps it."""
        for _ in range(times):
            for start in range(0, len(self._words), LENGTHS[1]):
                yield self._words[start : start + LENGTHS[1]].tolist()


def _pairs(recipe: Recipe, count: int) -> TranslationSplits:
    words = Words(recipe.data.vocabulary)
    pairs = [(" ".join(words.sentence()), " ".join(words.sentence())) for _ in range(count + HELD_OUT)]
    links = [np.array([[0, 0]])] * count if recipe.train.guidance else None
    train, valid = pairs[:count], pairs[count:]
    stream = PairStream(lambda: train, None, None if links is None else lambda: links)
    return TranslationSplits(stream, valid, None, pairs=count, given=count)


def _captions(recipe: Recipe, count: int) -> CaptionSplits:
    config, words = recipe.model, Words(min(recipe.data.vocabulary, 2500))
    if config.is_learned:
        pixels = torch.randint(0, 256, (count, 3, config.image_size, config.image_size), dtype=torch.uint8)
    else:
        cells = config.grid[0] * config.grid[1]
        pixels = torch.randn(count, cells, config.pca_dim or config.feature_dim)
    texts = [[" ".join(words.sentence()[:14])] for _ in range(count)]
    texts[0] = [" ".join(sentence) for sentence in words.every(recipe.data.minimum_count)]
    images, held_out = ImageTensors(pixels), ImageTensors(pixels[:HELD_OUT])
    return CaptionSplits(CaptionedImages(images, texts), CaptionedImages(held_out, texts[-HELD_OUT:]), None)


def _images(recipe: Recipe, count: int) -> Splits[LabelledImages, LabelledImages]:
    config, classes = recipe.model, tuple(map(str, range(10)))
    images = torch.randint(0, 256, (count, config.channels, config.image_size, config.image_size), dtype=torch.uint8)
    labelled = LabelledImages(images, torch.arange(count) % len(classes), classes)
    return Splits(labelled, labelled[:HELD_OUT], None)


def _documents(recipe: Recipe, count: int) -> DocumentSplits:
    data, words = recipe.data, Words(recipe.data.vocabulary)
    labels = data.label_names or CLASSES

    def document(number: int) -> Document:
        sentences = tuple(" ".join(words.sentence()) for _ in range(SENTENCES))
        return Document(label=labels[number % len(labels)], sentences=sentences)

    train = [document(number) for number in range(count)]
    train.append(Document(label=labels[0], sentences=tuple(map(" ".join, words.every(data.minimum_count)))))
    stream = Stream(lambda: train, lambda each: each.key)
    return DocumentSplits(stream, train[:HELD_OUT], None, labels=tuple(sorted(labels)))


def _sentences(recipe: Recipe, count: int) -> Splits[list[Example], list[Example]]:
    data, task = recipe.data, recipe.model.task
    words = Words(data.vocabulary or VOCABULARY)
    labels = SENTIMENTS if data.format == "trees" else CLASSES

    def example(sentence: list[str], number: int) -> Example:
        sentences = (tuple(sentence), *((tuple(words.sentence()),) if task == "entail" else ()))
        chosen = () if task == "language-model" else (labels[number % len(labels)],)
        return Example(sentences, chosen * len(sentence) if task == "tag" else chosen)

    sentences = [*words.every(data.minimum_count), *(words.sentence() for _ in range(count))]
    examples = [example(sentence, number) for number, sentence in enumerate(sentences)]
    return Splits(examples, examples[-HELD_OUT:], None)


SPLITS: dict[str, Callable[[Recipe, int], Any]] = {
    "translate": _pairs,
    "caption": _captions,
    "recognize": _images,
    "classify": _documents,
    "read": _sentences,
}
"""How the data of a system is drawn."""
