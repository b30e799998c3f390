"""Glimpse models: paths, policies, results and their traces, odd images, saving and loading."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from helpers.models import small_glimpser
from PIL import Image

import regard
from regard.errors import DataError, OptionError, ShapeError
from regard.systems.glimpse.data import SquareView


def images(count=4, side=17, seed=1):
    return torch.randint(0, 256, (count, 1, side, side), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)


@pytest.mark.parametrize("core", ["lstm", "rnn"])
def test_a_path_is_the_recurrence_written_out(core):
    model, pixels = small_glimpser(core=core), images()
    first, noise = torch.full((4, 2), 0.5), 0.3 * torch.randn(4, 2, 2)
    path = model.look(pixels, first=first, noise=noise)
    location, state, cell = first, torch.zeros(4, 11), torch.zeros(4, 11)
    for step in range(3):
        torch.testing.assert_close(path.locations[:, step], location)
        seen = model.glimpse_network(pixels.float() / 255, location)
        if core == "lstm":
            state, cell = model.core(seen, (state, cell))
        else:
            state = torch.relu(
                seen @ model.core.weight_ih.T + model.core.bias_ih + state @ model.core.weight_hh.T + model.core.bias_hh
            )
        torch.testing.assert_close(path.logits[:, step], model.classifier(state))
        if step < 2:
            torch.testing.assert_close(path.means[:, step], model.locator(state))
            torch.testing.assert_close(path.baselines[:, step], model.baseline(state)[:, 0])
            location = (model.locator(state) + noise[:, step]).clamp(-1, 1)


def test_locations_have_no_gradient_and_the_baseline_none_into_the_core():
    path = small_glimpser().look(images(), noise=torch.zeros(4, 2, 2))
    assert not path.locations.requires_grad
    model = small_glimpser()
    path = model.look(images())
    path.baselines.sum().backward()
    assert model.core.weight_ih.grad is None
    assert model.baseline.weight.grad is not None
    model = small_glimpser()
    model.look(images()).logits[:, -1].sum().backward()
    assert all(each.grad is None for each in model.locator.parameters()), "the class does not teach where to look"


def test_policies_look_where_they_should():
    model, pixels = small_glimpser().requires_grad_(False), images(50)
    generator = torch.Generator().manual_seed(1)
    assert (model.look_by("center", pixels).locations == 0).all()
    random = model.look_by("random", pixels, generator=generator).locations
    assert random.shape == (50, 3, 2)
    assert abs(float(random.mean())) < 0.15
    assert float(random.std()) == pytest.approx(3**-0.5, abs=0.06)
    mean = model.look_by("learned", pixels)
    assert torch.equal(mean.locations[:, 1:], mean.means)
    sampled = model.look_by("learned", pixels, generator=generator, sample=True)
    spread = (sampled.locations[:, 1] - sampled.means[:, 0]).std()
    assert float(spread) == pytest.approx(model.config.location_noise, rel=0.3)
    shared = model.look_by("random", pixels, generator=generator, share=True).locations
    assert (shared == shared[:1]).all()
    assert model.look_by("learned", pixels, num_glimpses=7).logits.shape == (50, 7, 3)


def test_a_result_says_what_and_where():
    model = small_glimpser()
    result = model.glimpse(images()[0, 0].numpy())
    assert result.labels == ("a", "b", "c")
    assert len(result.beliefs) == len(result.path) == 3
    assert sum(result.beliefs[1]) == pytest.approx(1)
    assert result.probability == max(result.beliefs[-1])
    assert result.label == result.labels[int(np.argmax(result.beliefs[-1]))]
    assert result.path[0] == (8.5, 8.5)
    trace = result.trace
    assert trace.kind == "glimpses"
    assert trace.main.name == "belief"
    np.testing.assert_allclose(trace.weights, result.beliefs, rtol=1e-6)
    assert len(trace.boxes) == 3 * 2
    for fine, coarse in zip(trace.boxes[::2], trace.boxes[1::2], strict=True):
        assert fine.position == coarse.position
        assert coarse.left <= fine.left < fine.right <= coarse.right
    assert trace.values("x") == pytest.approx([x / 17 for x, _ in result.path])
    assert json.loads(json.dumps(result.to_dict()))["path"][0] == [8.5, 8.5]
    left, top, right, bottom = result.crop_box
    for x, y in result.path[1:]:
        assert left <= x <= right
        assert top <= y <= bottom


def test_the_image_of_a_trace_is_the_square_that_was_seen():
    from regard.data.images import open_image
    from regard.trace.data_uri import from_data_uri

    pixels = images()[0, 0].numpy()
    trace = small_glimpser(light_on_dark=False).glimpse(pixels).trace
    assert np.array_equal(np.asarray(open_image(from_data_uri(trace.image), channels=1)), pixels)


def test_a_list_gives_the_same_as_one_by_one_for_every_policy():
    model, batch = small_glimpser(), [each[0].numpy() for each in images(3)]
    for options in ({}, {"policy": "random", "seed": 3}, {"policy": "center"}, {"passes": 4}, {"num_glimpses": 5}):
        together = model.glimpse(batch, **options)
        for one, image in zip(together, batch, strict=True):
            alone = model.glimpse(image, **options)
            np.testing.assert_allclose(one.beliefs, alone.beliefs, atol=1e-5)
            np.testing.assert_allclose(one.path, alone.path, atol=1e-3)
    assert [each.label for each in model.stream(iter(batch), read_ahead=2)] == [
        each.label for each in model.glimpse(batch)
    ]
    first, second = (model.glimpse(batch[0], policy="random", seed=seed).path for seed in (1, 2))
    assert first != second


def test_averaging_is_off_by_default_and_averages_probabilities():
    model, image = small_glimpser(location_noise=0.5), images()[0, 0].numpy()
    assert model.glimpse(image) == model.glimpse(image, passes=1)
    averaged = model.glimpse(image, passes=20)
    assert averaged.beliefs[-1] != model.glimpse(image).beliefs[-1]
    assert sum(averaged.beliefs[-1]) == pytest.approx(1)


def test_an_image_keeps_its_size_or_becomes_smaller():
    page = Image.new("L", (200, 100))
    page.putpixel((199, 0), 255)
    view = SquareView.from_image(page, 20, light_on_dark=False)
    assert view.pixels.shape == (1, 20, 20)
    assert (view.offset, view.scale) == ((0, 5), 0.1)
    assert view.to_image(10, 10) == (100, 50)
    assert view.to_image(0, 0) == (0, 0), "the border around the image belongs to no pixel"
    tiny = SquareView.from_image(Image.new("L", (3, 1), 200), 20, light_on_dark=False)
    assert int((tiny.pixels == 200).sum()) == 3
    assert tiny.scale == 1
    inverted = SquareView.from_image(Image.new("L", (30, 30), 255), 20, light_on_dark=True)
    assert (inverted.pixels == 0).all()


def test_the_digit_is_the_same_dark_on_light_and_light_on_dark():
    model, image = small_glimpser(), np.zeros((17, 17), np.uint8)
    image[5:9, 6:12] = 255
    assert model.glimpse(image).beliefs == model.glimpse(255 - image).beliefs


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (2, 3), (300, 200)])
def test_images_of_any_size_are_looked_at_and_cropped(size):
    model, image = small_glimpser(), np.full(size, 90, np.uint8)
    for policy in ("model", "random", "center"):
        result = model.glimpse(image, policy=policy)
        left, top, right, bottom = result.crop_box
        assert 0 <= left < right <= size[1]
        assert 0 <= top < bottom <= size[0]
        assert all(0 <= x <= size[1] and 0 <= y <= size[0] for x, y in result.path)
        assert model.crop(image, policy=policy).size == (right - left, bottom - top)
    assert regard.view(model.glimpse(image)).figure() is not None


def test_a_model_of_one_pixel_works():
    model = small_glimpser(image_size=1, glimpse_size=1, num_scales=1, num_glimpses=1)
    result = model.glimpse(np.full((1, 1), 255, np.uint8))
    assert len(result.path) == 1
    assert result.crop_box == (0, 0, 1, 1)
    assert len(small_glimpser(num_glimpses=1).glimpse(np.zeros((9, 9), np.uint8)).beliefs) == 1


def test_colour_images_are_looked_at():
    model = small_glimpser(channels=3)
    assert model.glimpse(np.zeros((9, 9), np.uint8)).beliefs
    assert model.glimpse(np.zeros((9, 9, 3), np.uint8)).beliefs


def test_more_glimpses_change_nothing_about_the_first():
    model, image = small_glimpser(), images()[0, 0].numpy()
    for few, many in pairwise(model.glimpse(image, num_glimpses=count) for count in (1, 2, 4)):
        np.testing.assert_allclose(many.beliefs[: len(few.beliefs)], few.beliefs, atol=1e-6)


@pytest.mark.usefixtures("as_a_user")
def test_what_is_wrong_is_explained(tmp_path):
    model = small_glimpser()
    with pytest.raises(DataError, match="not an image"):
        model.glimpse(np.zeros((0, 5), np.uint8))
    with pytest.raises(DataError, match="There is no image"):
        model.glimpse(tmp_path / "none.png")
    with pytest.raises(OptionError, match="policy must be one of model, learned, random, center; got 'left'"):
        model.glimpse(np.zeros((5, 5), np.uint8), policy="left")
    with pytest.raises(OptionError, match="passes must be a whole number, 1 or more; got 0"):
        model.glimpse(np.zeros((5, 5), np.uint8), passes=0)
    for name, limit in (("image_size", 8192), ("num_glimpses", 1000), ("num_scales", 12)):
        with pytest.raises(OptionError, match=f"{name} must be at most {limit:,}; got {10**30}"):
            small_glimpser(**{name: 10**30})
    with pytest.raises(OptionError, match="more than four times image_size 17"):
        small_glimpser(num_scales=12)
    with pytest.raises(OptionError, match=r"sees 96 pixels, more than four times image_size 17"):
        small_glimpser(glimpse_size=12, num_scales=4)
    with pytest.raises(OptionError, match="needs the names of its classes"):
        small_glimpser(labels=())
    with pytest.raises(ShapeError, match=r"Images are \(b, 1, h, w\), not empty; got \(2, 3, 5, 5\)"):
        model.look(torch.zeros(2, 3, 5, 5))
    with pytest.raises(ShapeError, match=r"not empty; got \(2, 1, 0, 5\)"):
        model.look(torch.zeros(2, 1, 0, 5))
    with pytest.raises(OptionError, match="training mode"):
        small_glimpser().train().glimpse(np.zeros((5, 5), np.uint8))
