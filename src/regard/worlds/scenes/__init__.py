"""Scenes: small rendered pictures with an English caption, and where in the picture each of its words belongs.

    meaning  ->  caption: each word with the group of things that it speaks of
    meaning  ->  places   ->  picture, and a box around each thing

What is said, so that each picture has one right caption:

- Every filled shape in a named colour is spoken of. Strokes, dots and arcs in a tone of the background are clutter, lie
  behind the shapes, and are never spoken of.
- Things of one shape, colour and size stand together and are counted; no two groups share both shape and colour.
- A size is said when it is small or large; the medium one goes without saying.
- One thing is told with its place among nine; several equal ones with their number alone.
- Of two groups the smaller is told first and located by the larger ("a small red star right of a circle"); of equally
  large ones the left or the upper comes first. They are apart along one axis, face one another along it, and their
  centres are clearly farther apart along it than across: that axis is named.
- No thing lies inside another: a small network learns to look away from both, and hardly learns to tell the inner
  one (see docs/results.md).
- Of three things in a row the middle one is told first: "a star between a square and a ring", the left or upper next.

A number, a size, a colour and a noun have the boxes of their things as gold region; the other words have none, for they
say how things stand and not what is seen at a place.
"""

from regard.worlds.scenes.gallery import contact_sheet
from regard.worlds.scenes.meaning import VOCABULARY
from regard.worlds.scenes.pictures import Box, Picture, Region, Statistics, pictures, statistics

__all__ = ["VOCABULARY", "Box", "Picture", "Region", "Statistics", "contact_sheet", "pictures", "statistics"]
