"""Drawing at random: a meaning, and then places in the unit square where its things can stand for it to be true."""

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

# Half the side of a thing of each size, as a share of the picture; each thing differs from it by up to JITTER.
RADII = (0.09, 0.13, 0.185)
JITTER = 0.04
MARGIN, GAP = 0.02, 0.03
# Where the centre of a thing may lie for it to be at the left, in the middle, or at the right; also from the top.
_THIRDS = ((0.0, 0.28), (0.45, 0.55), (0.72, 1.0))
# Groups are beside one another along an axis when their centres are farther apart along it, by this much at least.
_CLEAR = 1.6
_SHAPES = tuple(SHAPES)


class Thing(NamedTuple):
    """One shape in the picture: the group it belongs to, its centre and half its side, as shares of the picture."""

    group: int
    x: float
    y: float
    radius: float


class Draw:
    """Draws meanings and places from a source of chance; the same chance gives the same ones."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def meaning(self) -> Meaning:
        """What a picture shows: two thirds of them two groups side by side, the others of all other kinds."""
        kind = self._random.random()
        if kind < 0.1:
            place = self._random.choice(self._random.choice(PLACES))
            return Meaning(place, self._groups([(1, self._random.randrange(3))]))
        if kind < 0.2:
            return Meaning(SEVERAL, self._groups([(self._random.randint(2, 4), self._random.randrange(2))]))
        if kind < 0.35:
            sizes = [self._random.randrange(3) for _ in range(3)]
            # Three in a row must fit into the picture.
            return Meaning(BETWEEN, self._groups([(1, min(size, 1) if sum(sizes) > 3 else size) for size in sizes]))
        # A large thing stands alone: two would not leave room for others beside them.
        kinds = sorted((self._kind() for _ in range(2)), key=lambda kind: kind[1])
        same = kinds[0][1] == kinds[1][1]
        return Meaning(self._random.choice(BESIDE[::2] if same else BESIDE), self._groups(kinds))

    def places(self, meaning: Meaning) -> list[Thing]:
        """Where the things can be; the boxes of two things never meet."""
        while True:
            if (things := self._try(meaning)) is not None:
                return things

    def _kind(self) -> tuple[int, int]:
        size = self._random.randrange(3)
        return (1 if size == 2 or self._random.random() < 0.6 else self._random.randint(2, 3)), size

    def _groups(self, kinds: Sequence[tuple[int, int]]) -> tuple[Group, ...]:
        found: list[Group] = []
        while len(found) < len(kinds):
            group = Group(*kinds[len(found)], self._random.choice(COLOURS), self._random.choice(_SHAPES))
            if not any((other.colour, other.shape) == (group.colour, group.shape) for other in found):
                found.append(group)
        return tuple(found)

    def _radius(self, group: Group) -> float:
        return RADII[group.size] * (1 + JITTER * (2 * self._random.random() - 1))

    def _try(self, meaning: Meaning) -> list[Thing] | None:
        groups = meaning.groups
        if meaning.relation == SEVERAL:
            return self._together(0, groups[0], (MARGIN, MARGIN, 1 - MARGIN, 1 - MARGIN))
        if meaning.relation == BETWEEN:
            return self._row(groups)
        if meaning.relation in BESIDE:
            return self._beside(meaning.relation, groups)
        return [self._at(meaning.relation, groups[0])]

    def _at(self, place: str, group: Group) -> Thing:
        radius = self._radius(group)
        row, column = next((r, row.index(place)) for r, row in enumerate(PLACES) if place in row)
        least, most = MARGIN + radius, 1 - MARGIN - radius
        x, y = (
            self._random.uniform(max(least, start), min(most, end)) for start, end in (_THIRDS[column], _THIRDS[row])
        )
        return Thing(0, x, y, radius)

    def _row(self, groups: Sequence[Group]) -> list[Thing] | None:
        """The first between the second and the third, along a line from left to right or from top to bottom."""
        upright = self._random.random() < 0.5
        radii = [self._radius(group) for group in groups]
        order = (1, 0, 2)
        room = 1 - 2 * MARGIN - 2 * GAP - 2 * sum(radii)
        if room < 0:
            return None
        cuts = sorted(self._random.uniform(0, room) for _ in range(3))
        spaces = [cuts[0] + MARGIN, *(end - start + GAP for start, end in pairwise(cuts))]
        widest = max(radii)
        line = self._random.uniform(MARGIN + widest, 1 - MARGIN - widest)
        things, along = [], 0.0
        for number, space in zip(order, spaces, strict=True):
            radius = radii[number]
            along += space + radius
            near = 0.6 * min(radius, radii[0]) if number else 0.0
            across = line + self._random.uniform(-near, near)
            across = min(max(across, MARGIN + radius), 1 - MARGIN - radius)
            things.append(Thing(number, *((across, along) if upright else (along, across)), radius))
            along += radius
        return things

    def _beside(self, relation: str, groups: Sequence[Group]) -> list[Thing] | None:
        """Two groups on two sides of a line, overlapping along it, so that only one relation is true of them."""
        upright = relation in ("above", "below")
        before = 0 if relation in ("left of", "above") else 1
        sides = [2 * (1 + JITTER) * RADII[groups[number].size] + MARGIN for number in (before, 1 - before)]
        line = self._random.uniform(sides[0] + GAP, 1 - sides[1] - GAP)
        areas = {before: (MARGIN, line - GAP / 2), 1 - before: (line + GAP / 2, 1 - MARGIN)}
        things: list[Thing] = []
        boxes = []
        for number, (start, end) in areas.items():
            area = (MARGIN, start, 1 - MARGIN, end) if upright else (start, MARGIN, end, 1 - MARGIN)
            if (placed := self._together(number, groups[number], area)) is None:
                return None
            things += placed
            box = [_span(placed, axis) for axis in ("x", "y")]
            boxes.append(box[::-1] if upright else box)
        (one_along, one_across), (two_along, two_across) = boxes
        shared = min(one_across[1], two_across[1]) - max(one_across[0], two_across[0])
        enough = 0.5 * min(end - start for start, end in (one_across, two_across))
        along = abs(sum(one_along) - sum(two_along))
        across = abs(sum(one_across) - sum(two_across))
        return things if shared > enough and along > _CLEAR * across else None

    def _together(self, number: int, group: Group, area: tuple[float, float, float, float]) -> list[Thing] | None:
        """The things of a group close to one another somewhere in an area: in a row or a column, four in a square."""
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
            Thing(number, x + place % columns * step, y + place // columns * step, radius)
            for place, radius in enumerate(radii)
        ]


def _span(things: Sequence[Thing], axis: str) -> tuple[float, float]:
    """From where to where things reach."""
    places = [(getattr(thing, axis), thing.radius) for thing in things]
    return min(at - radius for at, radius in places), max(at + radius for at, radius in places)
