"""Scenes: small rendered images with an English caption, and the image region that each of its words refers to.

    meaning  ->  caption: each word with the group of objects that it refers to
    meaning  ->  layout   ->  image, and a box around each object

Each image has exactly one correct caption, by these rules:

- Every filled shape in a named colour is an object and is mentioned. Strokes, dots and arcs in a shade of the
  background are clutter: they lie behind the objects and are never mentioned.
- Objects of one shape, colour and size form a group, stand together and are counted; no two groups share both shape and
  colour.
- The size is mentioned if it is small or large; medium is the default.
- A single object is described with its position, one of nine; a single group of several objects with its number only.
- Of two groups the smaller comes first and is located relative to the larger ("a small red star right of a circle");
  of groups of equal size the left or upper one comes first. The groups are separated along one axis, overlap across it,
  and their centres are clearly farther apart along it than across it: that axis is the one mentioned.
- No object lies inside another: a small network learns to attend to neither, and hardly learns to recognize the inner
  one (see docs/measurements/results.md).
- Of three objects in a row the middle one comes first, then the left or upper one: "a star between a square and a
  ring".

The gold region of a number, size, colour or noun is the boxes of its objects. All other words have no region, since
they describe relations and not what is seen at a place.
"""

from regard.worlds.scenes.contact_sheet import contact_sheet
from regard.worlds.scenes.meaning import VOCABULARY
from regard.worlds.scenes.scene import Box, Region, Scene, Statistics, scenes, statistics

__all__ = ["VOCABULARY", "Box", "Region", "Scene", "Statistics", "contact_sheet", "scenes", "statistics"]
