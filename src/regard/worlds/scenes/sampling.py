"""Random sampling of meanings, and of layouts in the unit square that make them true."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from regard.worlds.scenes.meaning import (
    BESIDE,
    BETWEEN,
    COLOURS,
    PLACES,
    SEVERAL,
    SHAPES,
    Group,
    Meaning,
)

# Half the side of an object of each size, as a fraction of the image; each object deviates by a factor up to JITTER.
RADII = (0.09, 0.13, 0.185)
JITTER = 0.04
MARGIN, GAP = 0.02, 0.03
# Where the centre of an object may lie for it to be at the left, in the middle or at the right; also from the top.
_THIRDS = ((0.0, 0.28), (0.45, 0.55), (0.72, 1.0))
# Groups are beside each other along an axis if their centres are farther apart along it than across, by this factor.
_MIN_AXIS_RATIO = 1.6
_SHAPES = tuple(SHAPES)


class SceneObject(NamedTuple):
    """One object in an image: the group it belongs to, its centre and half its side, as fractions of the image."""

    group: int
    x: float
    y: float
    radius: float


class Sampler:
    """Samples meanings and layouts from a random generator."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def meaning(self) -> Meaning:
        """Sample a meaning: two groups side by side in about two thirds of the cases, otherwise another kind."""
        kind = self._random.random()
        if kind < 0.1:
            place = self._random.choice(self._random.choice(PLACES))
            return Meaning(place, self._groups([(1, self._random.randrange(3))]))
        if kind < 0.2:
            return Meaning(SEVERAL, self._groups([(self._random.randint(2, 4), self._random.randrange(2))]))
        if kind < 0.35:
            sizes = [self._random.randrange(3) for _ in range(3)]
            # Three in a row must fit into the image.
            return Meaning(BETWEEN, self._groups([(1, min(size, 1) if sum(sizes) > 3 else size) for size in sizes]))
        # There is only one large object in a group: two would leave no space for others beside them.
        kinds = sorted((self._kind() for _ in range(2)), key=lambda kind: kind[1])
        same = kinds[0][1] == kinds[1][1]
        return Meaning(self._random.choice(BESIDE[::2] if same else BESIDE), self._groups(kinds))

    def layout(self, meaning: Meaning) -> list[SceneObject]:
        """Sample where the objects of a meaning are; the boxes of two objects never touch."""
        while True:
            if (objects := self._try(meaning)) is not None:
                return objects

    def _kind(self) -> tuple[int, int]:
        size = self._random.randrange(3)
        return (1 if size == 2 or self._random.random() < 0.6 else self._random.randint(2, 3)), size

    def _groups(self, kinds: Sequence[tuple[int, int]]) -> tuple[Group, ...]:
        groups: list[Group] = []
        while len(groups) < len(kinds):
            group = Group(*kinds[len(groups)], self._random.choice(COLOURS), self._random.choice(_SHAPES))
            if not any((other.colour, other.shape) == (group.colour, group.shape) for other in groups):
                groups.append(group)
        return tuple(groups)

    def _radius(self, group: Group) -> float:
        return RADII[group.size] * (1 + JITTER * (2 * self._random.random() - 1))

    def _try(self, meaning: Meaning) -> list[SceneObject] | None:
        groups = meaning.groups
        if meaning.relation == SEVERAL:
            return self._together(0, groups[0], (MARGIN, MARGIN, 1 - MARGIN, 1 - MARGIN))
        if meaning.relation == BETWEEN:
            return self._row(groups)
        if meaning.relation in BESIDE:
            return self._beside(meaning.relation, groups)
        return [self._at(meaning.relation, groups[0])]

    def _at(self, position: str, group: Group) -> SceneObject:
        radius = self._radius(group)
        row, column = next((r, row.index(position)) for r, row in enumerate(PLACES) if position in row)
        least, most = MARGIN + radius, 1 - MARGIN - radius
        x, y = (
            self._random.uniform(max(least, start), min(most, end)) for start, end in (_THIRDS[column], _THIRDS[row])
        )
        return SceneObject(0, x, y, radius)

    def _row(self, groups: Sequence[Group]) -> list[SceneObject] | None:
        """Place the first object between the second and third, along a horizontal or vertical line."""
        upright = self._random.random() < 0.5
        radii = [self._radius(group) for group in groups]
        order = (1, 0, 2)
        free = 1 - 2 * MARGIN - 2 * GAP - 2 * sum(radii)
        if free < 0:
            return None
        cuts = sorted(self._random.uniform(0, free) for _ in range(3))
        spaces = [cuts[0] + MARGIN, *(end - start + GAP for start, end in pairwise(cuts))]
        widest = max(radii)
        line = self._random.uniform(MARGIN + widest, 1 - MARGIN - widest)
        objects, along = [], 0.0
        for number, space in zip(order, spaces, strict=True):
            radius = radii[number]
            along += space + radius
            offset = 0.6 * min(radius, radii[0]) if number else 0.0
            across = line + self._random.uniform(-offset, offset)
            across = min(max(across, MARGIN + radius), 1 - MARGIN - radius)
            objects.append(SceneObject(number, *((across, along) if upright else (along, across)), radius))
            along += radius
        return objects

    def _beside(self, relation: str, groups: Sequence[Group]) -> list[SceneObject] | None:
        """Place two groups on two sides of a line, overlapping along it, so that only one relation is true."""
        upright = relation in ("above", "below")
        before = 0 if relation in ("left of", "above") else 1
        sides = [2 * (1 + JITTER) * RADII[groups[number].size] + MARGIN for number in (before, 1 - before)]
        line = self._random.uniform(sides[0] + GAP, 1 - sides[1] - GAP)
        areas = {before: (MARGIN, line - GAP / 2), 1 - before: (line + GAP / 2, 1 - MARGIN)}
        objects: list[SceneObject] = []
        boxes = []
        for number, (start, end) in areas.items():
            area = (MARGIN, start, 1 - MARGIN, end) if upright else (start, MARGIN, end, 1 - MARGIN)
            if (placed := self._together(number, groups[number], area)) is None:
                return None
            objects += placed
            box = [_span(placed, axis) for axis in ("x", "y")]
            boxes.append(box[::-1] if upright else box)
        (first_along, first_across), (second_along, second_across) = boxes
        shared = min(first_across[1], second_across[1]) - max(first_across[0], second_across[0])
        min_shared = 0.5 * min(end - start for start, end in (first_across, second_across))
        along = abs(sum(first_along) - sum(second_along))
        across = abs(sum(first_across) - sum(second_across))
        return objects if shared > min_shared and along > _MIN_AXIS_RATIO * across else None

    def _together(self, number: int, group: Group, area: tuple[float, float, float, float]) -> list[SceneObject] | None:
        """Place the objects of a group close together in an area: in a row, a column, or a square of four."""
        left, top, right, bottom = area
        radii = [self._radius(group) for _ in range(group.number)]
        step = 2 * max(radii) + GAP
        columns = 2 if group.number == 4 else self._random.choice((1, group.number))
        rows = group.number // columns
        free_x, free_y = right - left - columns * step + GAP, bottom - top - rows * step + GAP
        if min(free_x, free_y) < 0:
            return None
        x, y = (
            start + step / 2 - GAP / 2 + self._random.uniform(0, free)
            for start, free in ((left, free_x), (top, free_y))
        )
        return [
            SceneObject(number, x + index % columns * step, y + index // columns * step, radius)
            for index, radius in enumerate(radii)
        ]


def _span(objects: Sequence[SceneObject], axis: str) -> tuple[float, float]:
    """Return the extent of objects along an axis."""
    centres = [(getattr(each, axis), each.radius) for each in objects]
    return min(at - radius for at, radius in centres), max(at + radius for at, radius in centres)
