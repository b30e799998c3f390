"""What holds for every world: a seed decides, splits share nothing, statistics are described, wrong options refused."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import pytest

from regard.errors import OptionError
from regard.worlds import babel, reviews, scenes, stories


class World(NamedTuple):
    """How a world is used: its examples, its statistics, and the text of an example, which is in one split only."""

    examples: Callable[..., Iterator[Any]]
    statistics: Callable[[int], Any]
    text: Callable[[Any], str]
    whole: Callable[[Any], Any] = lambda example: example


WORLDS = {
    "babel": World(
        lambda **options: babel.pairs("en", "fa", **options),
        lambda count: babel.statistics("en", "fa", count=count),
        lambda pair: " ".join(pair.source),
    ),
    "scenes": World(
        scenes.scenes,
        lambda count: scenes.statistics(count=count),
        lambda scene: scene.caption,
        lambda scene: (scene.words, scene.regions, scene.image.tobytes()),
    ),
    "stories": World(stories.stories, lambda count: stories.statistics(count=count), lambda story: story.text),
    "reviews": World(reviews.reviews, reviews.statistics, lambda review: review.text),
}
# For many sentences, checking each signature would take most of the time.
pytestmark = pytest.mark.usefixtures("as_a_user")


@pytest.fixture(params=WORLDS)
def world(request):
    return WORLDS[request.param]


def test_the_same_seed_gives_the_same_examples(world):
    first, again, other = (list(map(world.whole, islice(world.examples(seed=seed), 30))) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_the_splits_share_no_example(world):
    texts = {
        split: {world.text(each) for each in islice(world.examples(split=split), 300)}
        for split in ("train", "valid", "test")
    }
    assert not texts["train"] & texts["test"]
    assert not texts["train"] & texts["valid"]
    assert not texts["valid"] & texts["test"]


def test_every_number_of_the_statistics_has_a_name_and_a_description(world):
    measured = world.statistics(3)
    rows = measured.rows()
    assert [row.name for row in rows] == list(vars(measured))
    assert [row.value for row in rows] == list(vars(measured).values())
    assert all(len(row.description.split()) > 2 for row in rows)


def test_an_unknown_split_and_statistics_of_nothing_are_refused(world):
    with pytest.raises(OptionError, match="no split 'dev'; choose from train, valid, test"):
        world.examples(split="dev")
    with pytest.raises(OptionError, match="at least one example to measure; got count=0"):
        world.statistics(0)
