"""Digits: a digit somewhere in an image, perhaps among pieces of other digits, and the box around it.

    glyphs (MNIST, or digits of fonts)  ->  distorted  ->  placed at random  ->  clutter  ->  image, label, box

The digits are those of MNIST where its files are at hand, otherwise glyphs of the DejaVu and STIX fonts that come with
matplotlib. Images are drawn in batches on the device where the glyphs are. The gold box of an image is the smallest one
that holds the ink of its digit: a model that attends to the digit looks there.
"""

from regard.worlds.digits.glyphs import DIGITS, Glyphs, font_glyphs, mnist_glyphs
from regard.worlds.digits.images import DigitImages, DigitWorld

__all__ = ["DIGITS", "DigitImages", "DigitWorld", "Glyphs", "font_glyphs", "mnist_glyphs"]
