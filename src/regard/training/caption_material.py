"""What a recipe for a captioner learns from: captions as ids, beside pixels of a world or features of photographs."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.captioned_images import CaptionedImages as Gallery
from regard.data.captions import ImageCaptions, read_captions
from regard.data.features import FeatureStore
from regard.data.image_tensors import ImageTensors
from regard.data.images import PREPARATIONS, Images
from regard.data.tokenizer import Tokenizer
from regard.encoders.annotations import Frozen, Reduction
from regard.errors import DataError, OptionError
from regard.metrics.captions import caption_words
from regard.systems.captioner import Captioner, CaptionerConfig
from regard.training.caption_recipe import CaptionDataConfig, CaptionRecipe

SAMPLE = 1000
"""Pictures from whose cells principal components are taken."""


@dataclass(frozen=True)
class CaptionMaterial:
    """What to train on, to validate with, and to test with."""

    train: Gallery
    valid: Gallery
    test: Gallery | None
    reduction: Reduction | None = None
    """What the features of the pictures were reduced by."""


def read_material(recipe: CaptionRecipe, *, progress: bool) -> CaptionMaterial:
    """The pictures and captions that a recipe names."""
    if recipe.data.world:
        return _scenes(recipe.data, recipe.model)
    if not recipe.data.captions:
        raise OptionError("Say what to learn from: captions, with images or a store; or world = 'scenes'.")
    if recipe.model.is_learned:
        raise OptionError(
            f"The encoder {recipe.model.encoder} is learned from the pixels of a world. For photographs take one with "
            "published weights: --model.encoder efficientnet_lite0."
        )
    return _photographs(recipe, progress=progress)


def make_tokenizer(config: CaptionDataConfig, train: Gallery) -> Tokenizer:
    """The words of the training captions."""
    texts = (text for texts in train.captions for text in texts)
    return Tokenizer.train(texts, size=config.vocabulary, kind="word", minimum_count=config.minimum_count)


def _scenes(config: CaptionDataConfig, model: CaptionerConfig) -> CaptionMaterial:
    from regard.worlds.scenes import scenes

    def take(split: str, count: int) -> Gallery | None:
        if not count:
            return None
        painted = list(islice(scenes(split=split, side=model.size), count))
        pixels = torch.from_numpy(np.stack([one.image for one in painted])).permute(0, 3, 1, 2).contiguous()
        return Gallery(ImageTensors(pixels), [[one.caption] for one in painted])

    train, valid = take("train", config.examples), take("valid", config.held_out)
    if train is None or valid is None:
        raise OptionError(f"examples and held_out are 1 or more; got {config.examples} and {config.held_out}.")
    return CaptionMaterial(train, valid, take("test", config.held_out_test))


def _photographs(recipe: CaptionRecipe, *, progress: bool) -> CaptionMaterial:
    config, folder = recipe.data, Path(recipe.data.folder)
    captions = read_captions(folder / config.captions)
    if not any(one.split for one in captions):
        captions = captions.split_by_hash(valid=config.held_out, test=config.held_out_test)
    splits = {split: list(captions.select(split)) for split in ("train", "valid", "test")}
    store = folder / config.store if config.store else None
    if store is None or not (store / "meta.json").is_file():
        if store is None or not config.images:
            raise OptionError("Captions of photographs need a store of features, and images to make it from: set both.")
        names = {split: [one.image for one in some] for split, some in splits.items()}
        build_store(recipe, store, names, progress=progress)
    opened = FeatureStore.open(store)
    wanted = recipe.model.describe_features()
    if opened.encoder != wanted:
        raise OptionError(f"{store} has the features of {opened.encoder!r}; the model takes those of {wanted!r}.")

    def gallery(split: Sequence[ImageCaptions]) -> Gallery | None:
        there = [one for one in split if one.image in opened]
        if not there:
            return None
        texts = [[" ".join(caption_words(text)) for text in one.captions] for one in there]
        return Gallery(opened.tensors([one.image for one in there]), texts)

    train, valid, test = (gallery(splits[split]) for split in ("train", "valid", "test"))
    if train is None or valid is None:
        raise DataError(f"{store} has no features of the training or of the validation pictures of {config.captions}.")
    if progress:
        missing = sum(map(len, splits.values())) - sum(len(one) for one in (train, valid, test) if one)
        sys.stderr.write(f"{opened}; {missing} captioned pictures are not in it.\n")
    return CaptionMaterial(train, valid, test, _read_reduction(opened.folder, recipe.model))


def build_store(
    recipe: CaptionRecipe, store: Path, names: Mapping[str, Sequence[str]], *, progress: bool
) -> FeatureStore:
    """Compute the features of pictures once: float16, or with `reduced` int8 of their principal components.

    `names` are the pictures of each split; the components are those of training pictures.
    """
    config, folder = recipe.model, Path(recipe.data.folder)
    # A pattern may also be a whole path, or ".", which Path.glob does not take.
    found = [sorted(glob(pattern, root_dir=folder)) or [pattern] for pattern in recipe.data.images]  # noqa: PTH207
    images = Images(*(folder / name for some in found for name in some))
    there = [name for split in names.values() for name in split if name in images]
    network = Frozen(config.encoder, config.stride, leave_out=config.leave_out)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prepare = PREPARATIONS[config.fit](config.size)

    def encode(pixels: np.ndarray) -> Tensor:
        return network.cells(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device))

    options: dict[str, Any] = {"encoder": config.describe_features(), "prepare": prepare, "progress": progress}
    if not config.reduced:
        return FeatureStore.build(store, images, there, encode, **options)
    kept = store / "reduction.safetensors"
    if kept.is_file():
        reduction = _read_reduction(store, config)
    else:
        learned = [name for name in names["train"] if name in images]
        some = learned[:: max(1, len(learned) // SAMPLE)][:SAMPLE]
        pixels = (np.stack([prepare(images.open(name)) for name in some[i : i + 32]]) for i in range(0, len(some), 32))
        reduction = Reduction.fit(torch.cat([encode(batch).cpu().flatten(0, 1) for batch in pixels]), config.reduced)
        write_reduction(store, reduction)
    if reduction is None:
        raise TypeError("A model with reduced features has a reduction.")
    moved = reduction.to(device)
    return FeatureStore.build(
        store, images, there, lambda pixels: moved(encode(pixels)), steps=reduction.steps(), **options
    )


def write_reduction(store: Path, reduction: Reduction) -> None:
    """Keep what features are reduced by beside them."""
    from safetensors.torch import save_file

    store.mkdir(parents=True, exist_ok=True)
    save_file(reduction.state_dict(), store / "reduction.safetensors")


def _read_reduction(store: Path, config: CaptionerConfig) -> Reduction | None:
    from safetensors.torch import load_file

    if not config.reduced:
        return None
    if not (store / "reduction.safetensors").is_file():
        raise DataError(f"{store} lacks reduction.safetensors, which its features were reduced by. Build it anew.")
    reduction = Reduction(config.features, config.reduced)
    reduction.load_state_dict(load_file(store / "reduction.safetensors"))
    return reduction


def adopt(model: Captioner, reduction: Reduction | None, *, new: bool) -> None:
    """Give a new model the reduction of the features that it learns from; one that has learned must have the same."""
    if model.reduction is None or reduction is None:
        return
    if new:
        model.reduction.load_state_dict(reduction.state_dict())
    elif not torch.allclose(model.reduction.components, reduction.components, atol=1e-2):
        raise DataError("The store was reduced by other principal components than the model. Build it from the images.")
