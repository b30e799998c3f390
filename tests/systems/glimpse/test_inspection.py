"""A glimpse model that is made to look somewhere."""

import pytest

import regard
from regard.errors import OptionError
from regard.systems.glimpse.examples import digit_examples
from regard.systems.glimpse.inspection import glimpse_at


@pytest.fixture(scope="module")
def model():
    return regard.load("glimpse-digits", device="cpu")


@pytest.fixture(scope="module")
def example():
    return digit_examples()[7]


def test_without_forced_locations_the_model_looks_as_usual(model, example):
    assert glimpse_at(model, example.image, {}) == model.glimpse(example.image)
    assert example.label == model.glimpse(example.image).label


def test_a_forced_glimpse_is_where_it_was_put_and_the_rest_follows_from_it(model, example):
    usual = glimpse_at(model, example.image, {})
    forced = glimpse_at(model, example.image, {1: (0.9, 0.1)})
    assert forced.path[1] == pytest.approx((54, 6), abs=1e-3)
    assert forced.path[0] == usual.path[0]
    assert forced.beliefs[0] == pytest.approx(usual.beliefs[0]), "what came before stays"
    assert forced.beliefs[1] != pytest.approx(usual.beliefs[1], abs=1e-4)
    assert forced.path[2] != pytest.approx(usual.path[2], abs=1e-3), "the next location follows from what was seen"
    own = {number: (x / 60, y / 60) for number, (x, y) in enumerate(usual.path)}
    again = glimpse_at(model, example.image, own)
    assert again.beliefs[-1] == pytest.approx(usual.beliefs[-1], abs=1e-4)


def test_glimpses_in_empty_corners_know_less(model, example):
    left, top, right, bottom = example.box
    corner = (0.0 if (left + right) / 2 > 0.5 else 1.0, 0.0 if (top + bottom) / 2 > 0.5 else 1.0)
    blind = glimpse_at(model, example.image, dict.fromkeys(range(4), corner))
    index = blind.labels.index(example.label)
    assert blind.beliefs[-1][index] < glimpse_at(model, example.image, {}).beliefs[-1][index]


def test_more_glimpses_and_other_policies(model, example):
    longer = glimpse_at(model, example.image, {5: (0.2, 0.3)}, num_glimpses=6)
    assert longer.path[5] == pytest.approx((12, 18), abs=1e-3)


@pytest.mark.parametrize(
    ("locations", "message"),
    [
        ({4: (0.5, 0.5)}, "number from 0 to 3; got 4"),
        ({-1: (0.5, 0.5)}, "got -1"),
        ({0: (1.5, 0.5)}, "from 0 to 1; got \\(1.5, 0.5\\) for glimpse 0"),
        ({0: (float("nan"), 0.5)}, "from 0 to 1"),
    ],
)
def test_impossible_locations_are_refused(model, example, locations, message):
    with pytest.raises(OptionError, match=message):
        glimpse_at(model, example.image, locations)
