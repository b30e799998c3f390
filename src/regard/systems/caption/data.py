"""What a captioner learns from: captions as ids, beside the pixels of a world or the features of photographs."""

import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from glob import glob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.array_folder import META
from regard.data.captioned_images import CaptionedImages, ImageTensors, Right
from regard.data.captions import Captions, ImageCaptions, read_captions
from regard.data.features import FeatureStore
from regard.data.images import PREPARATIONS, Images
from regard.data.public.datasets import hint_for
from regard.data.regions import Phrase, Regions, cover, image_key, read_regions
from regard.data.splits import Splits
from regard.data.tokenizer import Tokenizer
from regard.encoders.annotations import PCA
from regard.errors import DataError, OptionError
from regard.files import replacing
from regard.metrics.captions import caption_words
from regard.metrics.regions import PhraseMaps
from regard.systems.caption.assembly import frozen_encoder
from regard.systems.caption.config import CaptionConfig, CaptionData, CaptionTest
from regard.systems.caption.guidance import right_cells
from regard.systems.caption.model import Captioner
from regard.systems.caption.views import View, ViewedImages, Views, names_of_views
from regard.systems.system import choose_device

if TYPE_CHECKING:
    from regard.worlds.scenes.scene import Scene

PCA_IMAGES = 1000
"""Images from whose cells the principal components are taken."""
NOVELTY_IMAGES = 3000
"""Images from which it is found out, about, which others are foreign."""
REDUCTION = "reduction.safetensors"
BATCH = 100
"""Images that are captioned together."""
Map = Float[np.ndarray, "_ _"]
Encode = Callable[[np.ndarray], Tensor]


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
        folder = Path(test_set.images)
        store = FeatureStore.open(folder) if (folder / META).is_file() else None
        if store is not None and store.encoder != (expected := model.config.describe_features()):
            raise OptionError(f"{store.folder} has the features of {store.encoder!r}; the model takes {expected!r}.")
        images = Images(folder) if store is None else None
        captioned = to_score(read_captions(test_set.captions), store or images or (), split=test_set.split)
        if not captioned:
            raise DataError(f"{folder} has no images of {test_set.captions} to score on.")
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


@dataclass(frozen=True)
class CaptionSplits(Splits[CaptionedImages, CaptionedImages]):
    """Images with captions to train on, to validate with and to test with."""

    reduction: PCA | None = None
    """How the features of the images were reduced."""
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names of the photographs of each split."""
    views: Views | None = None
    """Random views of the training images."""


def read_splits(data: CaptionData, config: CaptionConfig, *, guided: bool = False, progress: bool) -> CaptionSplits:
    """The images and captions that a recipe names; with `guided`, also where the training captions should look."""
    if data.world:
        return _scenes(data, config, guided=guided)
    missing = [f"data.{name}" for name in ("captions", "store") if not getattr(data, name)]
    if not data.images and not (data.store and (Path(data.folder) / data.store / META).is_file()):
        missing.append("data.images")
    if config.is_learned:
        missing.append("model.encoder with published parameters, such as efficientnet_lite0")
    if missing:
        raise OptionError(
            "To learn from photographs, a recipe needs captions, and a store of features or images to build it from. "
            f"Set {', '.join(missing)}; or data.world scenes, to learn from generated images."
        )
    return _photographs(data, config, guided=guided, progress=progress)


def train_tokenizer(data: CaptionData, train: CaptionedImages) -> Tokenizer:
    """The words of the training captions."""
    texts = (text for captions in train.captions for text in captions)
    return Tokenizer.train(texts, size=data.vocabulary, kind="word", minimum_count=data.minimum_count)


def fit_novelty(model: Captioner, data: CaptionData, splits: CaptionSplits) -> None:
    """Find out which images are foreign to a model, from the images that it learns from and those held out."""
    if model.novelty is None:
        raise OptionError("A model without a domain does not say which images are foreign to it: set model.domain.")
    if not data.images:
        raise OptionError("A model with a domain has to see the images: set data.images, or remove model.domain.")
    images = _images(data)
    prepare = PREPARATIONS[model.config.resize](model.config.image_size)

    @torch.no_grad()
    def means(names: Sequence[str], pool: ThreadPoolExecutor) -> Tensor:
        """The mean features of some of these images, evenly spread."""
        sample = names[:: max(1, len(names) // NOVELTY_IMAGES)]
        found = []
        for first in range(0, len(sample), 64):
            pixels = np.stack([*pool.map(lambda name: prepare(images.open(name)), sample[first : first + 64])])
            batch = torch.from_numpy(pixels).permute(0, 3, 1, 2).to(choose_device())
            found.append(model.features(batch).mean(1).cpu())
        return torch.cat(found)

    with ThreadPoolExecutor(_num_workers()) as pool:
        model.novelty.fit(means(splits.names["train"], pool), means(splits.names["valid"], pool))


def check_reduction(model: Captioner, reduction: PCA | None) -> None:
    """The features to continue with must be reduced by the principal components that the model was trained with."""
    if model.reduction is None or reduction is None:
        return
    if not torch.allclose(model.reduction.components, reduction.components, atol=1e-2):
        raise DataError("The store was reduced by other principal components than the model's. Build it anew.")


def _scenes(data: CaptionData, config: CaptionConfig, *, guided: bool) -> CaptionSplits:
    def take(split: str, count: int, *, guided: bool = False) -> CaptionedImages:
        drawn = draw_scenes(split, count, config.image_size)
        right: list[list[Right | None]] | None = [[one.gold_cells(config.grid)] for one in drawn] if guided else None
        return CaptionedImages(ImageTensors(scene_pixels(drawn)), [[scene.caption] for scene in drawn], right)

    train, valid = take("train", data.examples, guided=guided), take("valid", data.held_out)
    return CaptionSplits(train, valid, take("test", data.held_out_test) if data.held_out_test else None)


def draw_scenes(split: str, count: int, size: int) -> "list[Scene]":
    """The first images of the world scenes."""
    from regard.worlds.scenes import scenes

    return list(islice(scenes(split=split, side=size), count))


def scene_pixels(drawn: "Sequence[Scene]") -> Tensor:
    """Images of the world scenes as uint8 (n, 3, h, w)."""
    return torch.from_numpy(np.stack([scene.image for scene in drawn])).permute(0, 3, 1, 2).contiguous()


def _photographs(data: CaptionData, config: CaptionConfig, *, guided: bool, progress: bool) -> CaptionSplits:
    folder = Path(data.folder)
    if not (folder / data.captions).exists():
        raise DataError(f"There is no file {folder / data.captions}. {hint_for(data.captions)}".rstrip())
    captions = read_captions(folder / data.captions)
    if not any(one.split for one in captions):
        captions = captions.split_by_hash(valid=data.held_out, test=data.held_out_test)
    splits = {split: list(captions.select(split)) for split in ("train", "valid", "test")}
    store = folder / data.store
    names = {split: [one.image for one in captioned] for split, captioned in splits.items()}
    opened = _open_store(data, config, store, names, progress=progress)
    expected = config.describe_features()
    if opened.encoder != expected:
        raise OptionError(f"{store} has the features of {opened.encoder!r}; the model takes those of {expected!r}.")

    def select(split: Sequence[ImageCaptions], *, guided: bool = False) -> CaptionedImages | None:
        stored = [one for one in split if one.image in opened]
        if not stored:
            return None
        texts = [[" ".join(caption_words(text)) for text in one.captions] for one in stored]
        right = None
        if guided:
            regions = read_regions(folder / data.regions, longer_side=data.regions_side)
            right = right_cells(config, stored, regions, _images(data))
        return CaptionedImages(opened.tensors([one.image for one in stored]), texts, right)

    train, valid, test = (select(splits[split], guided=guided and split == "train") for split in splits)
    if train is None or valid is None:
        raise DataError(f"{store} has no features of the training or validation images of {data.captions}.")
    if progress:
        missing = sum(map(len, splits.values())) - sum(len(part) for part in (train, valid, test) if part)
        sys.stderr.write(f"{opened}; {missing} captioned images are not in it.\n")
    stored = {split: [name for name in listed if name in opened] for split, listed in names.items()}
    reduction = _read_reduction(opened.folder, config)
    views = _views(data, config, reduction, stored["train"], progress=progress) if data.views else None
    return CaptionSplits(train, valid, test, reduction, stored, views)


def _views(
    data: CaptionData, config: CaptionConfig, reduction: PCA | None, train: list[str], *, progress: bool
) -> Views:
    """The features of random views of the training images, which are computed where they are not stored yet."""
    if config.resize != "stretch":
        raise OptionError(f"views show parts of whole images: set model.resize 'stretch'; got {config.resize!r}.")
    if not data.images:
        raise OptionError("views need the images: set data.images, or data.views 0.")
    locations = _image_locations(data)
    names = names_of_views(train, data.views)
    folder = Path(data.folder) / f"{data.store}-views-{data.views}"
    store = _encoded(folder, ViewedImages(*locations), names, _encoder(config), config, reduction, progress=progress)
    if failed := list(store.failed)[:3]:
        raise DataError(f"{folder} lacks views, such as {', '.join(failed)}: {store.failed[failed[0]]}")
    drawn = (View.draw(image, number).cells(config.grid) for image in train for number in range(data.views))
    return Views(store.tensors(names), torch.from_numpy(np.stack([*drawn])), data.views)


def _open_store(
    data: CaptionData, config: CaptionConfig, store: Path, names: Mapping[str, Sequence[str]], *, progress: bool
) -> FeatureStore:
    """The store, which is built first where it does not exist, is incomplete or damaged, and there are images."""
    if (store / META).is_file():
        try:
            return FeatureStore.open(store)
        except DataError:
            if not data.images:
                raise
    return build_store(data, config, store, names, progress=progress)


def build_store(
    data: CaptionData, config: CaptionConfig, store: Path, names: Mapping[str, Sequence[str]], *, progress: bool
) -> FeatureStore:
    """Compute the features of images once: as float16, or with `pca_dim` as int8 of their principal components.

    `names` are the images of each split; the components are those of training images.
    """
    images = _images(data)
    present = [name for split in names.values() for name in split if name in images]
    encode = _encoder(config)
    if not config.pca_dim:
        return _encoded(store, images, present, encode, config, None, progress=progress)
    if (store / REDUCTION).is_file():
        reduction = _read_reduction(store, config)
    else:
        prepare = PREPARATIONS[config.resize](config.image_size)
        training = [name for name in names["train"] if name in images]
        sample = training[:: max(1, len(training) // PCA_IMAGES)][:PCA_IMAGES]
        pixels = (
            np.stack([prepare(images.open(name)) for name in sample[i : i + 32]]) for i in range(0, len(sample), 32)
        )
        reduction = PCA.fit(torch.cat([encode(batch).cpu().flatten(0, 1) for batch in pixels]), config.pca_dim)
        write_reduction(store, reduction)
    return _encoded(store, images, present, encode, config, reduction, progress=progress)


def _encoder(config: CaptionConfig) -> Encode:
    """From pixels (b, h, w, 3) to the features of cells."""
    network, device = frozen_encoder(config), choose_device()
    return lambda pixels: network.cells(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device))


def _num_workers() -> int:
    """Threads that open images."""
    return max(2, len(os.sched_getaffinity(0)))


def _encoded(
    folder: Path,
    images: Images,
    names: Sequence[str],
    encode: Encode,
    config: CaptionConfig,
    reduction: PCA | None,
    *,
    progress: bool,
) -> FeatureStore:
    """The features of images, as float16, or as int8 of their principal components."""
    workers = _num_workers()
    options: dict[str, Any] = {
        "encoder": config.describe_features(),
        "prepare": PREPARATIONS[config.resize](config.image_size),
        "workers": workers,
        "batch": max(32, 8 * workers),
        "progress": progress,
    }
    if reduction is None:
        return FeatureStore.build(folder, images, names, encode, **options)
    moved = reduction.to(choose_device())
    return FeatureStore.build(
        folder, images, names, lambda pixels: moved(encode(pixels)), steps=reduction.steps(), **options
    )


def _images(data: CaptionData) -> Images:
    return Images(*_image_locations(data))


def _image_locations(data: CaptionData) -> list[Path]:
    folder = Path(data.folder)
    # A pattern may also be a complete path, or ".", which Path.glob does not take.
    found = [sorted(glob(pattern, root_dir=folder)) or [pattern] for pattern in data.images]  # noqa: PTH207
    return [folder / name for matches in found for name in matches]


def write_reduction(store: Path, reduction: PCA) -> None:
    """Keep the principal components beside the features that they reduced."""
    from safetensors.torch import save_file

    with replacing(store / REDUCTION) as draft:
        save_file(reduction.state_dict(), draft)


def _read_reduction(store: Path, config: CaptionConfig) -> PCA | None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not config.pca_dim:
        return None
    if not (store / REDUCTION).is_file():
        raise DataError(f"{store} lacks {REDUCTION}, by which its features were reduced. Build it anew.")
    reduction = PCA(config.feature_dim, config.pca_dim)
    try:
        reduction.load_state_dict(load_file(store / REDUCTION))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise DataError(f"{store / REDUCTION} cannot be used: {error}. Remove {store}, and build it anew.") from error
    return reduction


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
            unrolled = model.unroll(model.encode(images[first : first + BATCH].to(model.device)), batch)
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
