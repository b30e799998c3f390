"""The scenes world: each image shows what its caption describes, and has no other caption."""

from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest

from regard.errors import OptionError
from regard.worlds.scenes import VOCABULARY, Scene, contact_sheet, scenes, statistics
from regard.worlds.scenes.meaning import COLOURS, NUMBERS, PLACES, SHAPES, SIZES, Group, Meaning, describe
from regard.worlds.scenes.rendering import RGB, render
from regard.worlds.scenes.sampling import JITTER, RADII, Sampler, SceneObject
from regard.worlds.scenes.shapes import INSIDE, masks
from regard.worlds.splits import NINETY, split_of

# For thousands of scenes, checking each signature would take most of the time.
in_bulk = pytest.mark.usefixtures("as_a_user")


def take(count: int, **options) -> list[Scene]:
    return list(islice(scenes(**options), count))


def sample(count: int, seed: int = 0) -> list[tuple[Meaning, list[SceneObject]]]:
    sampler = Sampler(Random(seed))  # noqa: S311
    meanings = [sampler.meaning() for _ in range(count)]
    return [(meaning, sampler.layout(meaning)) for meaning in meanings]


CAPTIONS = [
    (Meaning("at the top left", (Group(1, 0, "red", "star"),)), "a small red star at the top left"),
    (Meaning("", (Group(3, 1, "blue", "cross"),)), "three blue crosses"),
    (
        Meaning("left of", (Group(1, 1, "orange", "moon"), Group(2, 1, "black", "ring"))),
        "an orange moon left of two black rings",
    ),
    (
        Meaning("between", (Group(1, 1, "red", "star"), Group(1, 2, "red", "ring"), Group(1, 0, "blue", "moon"))),
        "a red star between a large red ring and a small blue moon",
    ),
]


@pytest.mark.parametrize(("meaning", "caption"), CAPTIONS)
def test_a_meaning_is_described_as_a_speaker_would(meaning, caption):
    assert " ".join(word for word, _ in describe(meaning)) == caption


def test_a_word_refers_to_its_own_objects():
    words = describe(CAPTIONS[2][0])
    assert [word for word, group in words if group == 0] == ["orange", "moon"]
    assert [word for word, group in words if group == 1] == ["two", "black", "rings"]
    assert [word for word, group in words if group is None] == ["an", "left", "of"]


def phrase(kind: tuple[int, str, str], number: int) -> str:
    size, colour, shape = kind
    words = [SIZES[size], colour, shape if number == 1 else SHAPES[shape]]
    text = " ".join(word for word in words if word != "medium")
    return f"{NUMBERS[number - 1]}{'n' if number == 1 and text.startswith('orange') else ''} {text}"


def ninth(at: float) -> int:
    return 0 if at < 0.35 else 2 if at > 0.65 else 1


def caption_of(seen: list[tuple[tuple[int, str, str], SceneObject]]) -> str:
    """The caption by the rules of the world, derived only from what can be seen."""
    groups: dict[tuple[int, str, str], list[SceneObject]] = {}
    for kind, each in seen:
        groups.setdefault(kind, []).append(each)
    phrases = {kind: phrase(kind, len(objects)) for kind, objects in groups.items()}
    if len(groups) == 1:
        ((kind, objects),) = groups.items()
        return (
            phrases[kind] if len(objects) > 1 else f"{phrases[kind]} {PLACES[ninth(objects[0].y)][ninth(objects[0].x)]}"
        )
    spans = {
        kind: [(min(t[axis] - t.radius for t in objects), max(t[axis] + t.radius for t in objects)) for axis in (1, 2)]
        for kind, objects in groups.items()
    }
    apart = [
        axis
        for axis in (0, 1)
        if all(one[axis][1] < two[axis][0] or two[axis][1] < one[axis][0] for one, two in pairs_of([*spans.values()]))
    ]
    if len(groups) == 3:
        (axis,) = apart
        first, middle, last = sorted(groups, key=lambda kind: spans[kind][axis])
        return f"{phrases[middle]} between {phrases[first]} and {phrases[last]}"
    (axis,) = apart
    first, second = sorted(groups, key=lambda kind: (kind[0], spans[kind][axis]))
    before = spans[first][axis] < spans[second][axis]
    return (
        f"{phrases[first]} {(('left of', 'right of'), ('above', 'below'))[axis][0 if before else 1]} {phrases[second]}"
    )


def pairs_of(objects: list) -> list[tuple]:
    return [(one, two) for index, one in enumerate(objects) for two in objects[index + 1 :]]


@in_bulk
def test_each_image_has_one_caption():
    for meaning, objects in sample(4000):
        seen = []
        for each in objects:
            size = int(np.argmin([abs(each.radius - radius) for radius in RADII]))
            group = meaning.groups[each.group]
            seen.append(((size, group.colour, group.shape), each))
        seen.sort(key=lambda one: (one[1].x, one[1].y))
        assert caption_of(seen) == " ".join(word for word, _ in describe(meaning))


def test_objects_of_different_sizes_cannot_be_confused():
    for small, large in pairwise(RADII):
        assert small * (1 + JITTER) < 0.8 * large * (1 - JITTER)


@in_bulk
def test_objects_lie_inside_the_image_and_apart():
    for _, objects in sample(2000, seed=1):
        for each in objects:
            assert each.radius <= min(each.x, each.y, 1 - each.x, 1 - each.y)
        for one, two in pairs_of(objects):
            assert max(abs(one.x - two.x), abs(one.y - two.y)) > one.radius + two.radius


@in_bulk
def test_the_gates_hold():
    measured = statistics(count=2000)
    assert measured.distinct_captions > 1800, "hardly a caption comes twice"
    assert measured.vocabulary == len(VOCABULARY)
    assert 8 < measured.mean_length < 10
    assert (measured.min_length, measured.max_length) == (3, 14)
    assert measured.mean_objects > 2.4
    assert measured.mean_groups > 1.9, "captions refer to several places"
    assert 0.6 < measured.grounded_words < 0.7
    assert measured.chance_pointing < 0.18, "pointing at random hits seldom"
    assert measured.most_frequent_caption < 0.005
    assert measured.test_overlap == 0


@in_bulk
def test_the_splits_share_no_meaning():
    splits: dict[str, set[str]] = {}
    for meaning, _ in sample(5000, seed=2):
        splits.setdefault(split_of(meaning.caption, NINETY), set()).add(meaning.caption)
    assert set(splits) == {"train", "valid", "test"}
    assert not splits["train"] & splits["test"]
    assert not splits["train"] & splits["valid"]
    assert not splits["valid"] & splits["test"]
    for split in splits:
        assert all(scene.caption in splits[split] or split_of_caption(scene, splits) for scene in take(3, split=split))


def split_of_caption(scene: Scene, splits: dict[str, set[str]]) -> bool:
    return not any(scene.caption in captions for captions in splits.values())


@pytest.mark.parametrize("side", [32, 48, 101])
def test_objects_have_their_colour_inside_their_boxes_and_nowhere_else(side):
    colours = {colour: np.array(level) for colour, level in RGB.items()}
    for scene in take(40, side=side):
        assert scene.image.shape == (side, side, 3)
        assert scene.image.dtype == np.uint8
        of_box = {
            box: word
            for word, region in zip(scene.words, scene.regions, strict=True)
            for box in region or ()
            if word in COLOURS
        }
        vivid = scene.image.astype(int).max(-1) - scene.image.astype(int).min(-1) > 90
        vivid |= scene.image.max(-1) < 70
        for box in scene.boxes:
            left, top, right, bottom = (round(edge) for edge in box)
            part = scene.image[top:bottom, left:right].reshape(-1, 3).astype(int)
            near = abs(part - colours[of_box[box]]).max(-1) < 45
            assert near.mean() > 0.06, f"{scene.caption}: {of_box[box]}"
            vivid[max(0, top - 2) : bottom + 2, max(0, left - 2) : right + 2] = False
        assert not vivid.any(), "clutter has no colour of its own"


def test_clutter_lies_behind_objects():
    group, thing = Group(1, 2, "red", "square"), SceneObject(0, 0.5, 0.5, 0.17)
    centres = {tuple(render([group], [thing], 64, Random(seed))[28:36, 28:36].std((0, 1)) < 6) for seed in range(50)}  # noqa: S311
    assert centres == {(True, True, True)}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_brightest_colour_does_not_overflow(shape):
    for seed in range(30):
        image = render([Group(1, 2, "yellow", shape)], [SceneObject(0, 0.5, 0.5, 0.185)], 64, Random(seed))  # noqa: S311
        assert image[:, :, 0].min() > 90, "yellow and the background are bright in red"


def test_shapes_are_smooth_and_differ():
    found = {shape: masks(shape, 8.0, 0.5, 0.0, 0) for shape in INSIDE}
    assert set(found) == set(SHAPES)
    for shape, (whole, core) in found.items():
        assert whole.min() == 0
        assert whole.max() == 1
        assert ((whole > 0) & (whole < 1)).mean() > 0.03, "edges are smooth"
        assert (core <= whole).all()
        assert whole[0].max() == whole[-1].max() == whole[:, 0].max() == whole[:, -1].max() == 0, "the window holds it"
        for other, (its, _) in found.items():
            assert other == shape or abs(whole - its).mean() > 0.04


def test_a_cell_is_gold_when_a_box_covers_a_tenth_of_it():
    box = (10.0, 20.0, 26.0, 36.5)
    scene = Scene(np.zeros((64, 64, 3), np.uint8), ("a", "red", "star"), (None, (box,), (box,)))
    gold = scene.gold_cells(8)
    assert gold.shape == (3, 64)
    assert not gold[0].any()
    assert np.array_equal(gold[1], gold[2])
    # Columns 1 to 3 (of the last a quarter), rows 2 to 4 (of the first and the last a half).
    expected = {(row, column) for row in (2, 3, 4) for column in (1, 2, 3)}
    assert {(int(cell) // 8, int(cell) % 8) for cell in np.flatnonzero(gold[1])} == expected
    fewer = scene.gold_cells(8, min_cover=0.3)[1]
    assert {(int(cell) // 8, int(cell) % 8) for cell in np.flatnonzero(fewer)} == {(r, c) for r, c in expected if c < 3}
    # On a coarse grid no cell is covered by half, and the one with the centre still counts.
    assert np.flatnonzero(scene.gold_cells((2, 3), min_cover=0.5)[1]).tolist() == [0]


@in_bulk
def test_every_content_word_has_a_cell_and_no_other_word():
    ungrounded = {"a", "an", "and", "at", "the", "top", "bottom", "on", "left", "right", "in", "middle", "of"}
    ungrounded |= {"above", "below", "between"}
    for scene in take(200, seed=5):
        for grid in (4, 7, (6, 9)):
            gold = scene.gold_cells(grid)
            assert [bool(row.any()) for row in gold] == [word not in ungrounded for word in scene.words]


def test_a_contact_sheet_holds_every_scene():
    items = take(5)
    sheet = contact_sheet(items, columns=3, scale=2, regions=True)
    assert sheet.width == 3 * (128 + 10) + 10
    assert sheet.height > 2 * 128
    plain = np.asarray(contact_sheet(items, columns=3, scale=1))
    assert np.array_equal(plain[10:74, 10:74], items[0].image)
    assert np.array_equal(plain[10:74, 84:148], items[1].image)


def test_invalid_options_are_refused():
    with pytest.raises(OptionError, match="from 32 to 512 pixels; got side=16"):
        scenes(side=16)
    with pytest.raises(OptionError, match="at least one scene, column and scale; got 0 scenes"):
        contact_sheet([])
    with pytest.raises(OptionError, match=r"grid=0"):
        take(1)[0].gold_cells(0)
