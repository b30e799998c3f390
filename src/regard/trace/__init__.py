"""Trace: the attention of one result, with everything that is needed to draw it."""

from regard.trace.elements import AXIS_KINDS, Axis, Box, Map, Series
from regard.trace.trace import Trace

__all__ = ["AXIS_KINDS", "Axis", "Box", "Map", "Series", "Trace"]
