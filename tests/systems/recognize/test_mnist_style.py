"""Drawn characters in the style of MNIST."""

import numpy as np
from PIL import Image

from regard.systems.recognize.mnist_style import to_mnist_style


def test_a_character_becomes_light_on_dark_and_centred():
    page = np.full((90, 120), 230, np.uint8)
    page[10:50, 80:90] = 40
    pixels = to_mnist_style(Image.fromarray(page).convert("RGB"), 28)
    rows, columns = np.nonzero(pixels)
    assert (rows.min(), rows.max()) == (4, 23)
    assert columns.max() - columns.min() == 4
    assert abs(columns.mean() - 13.5) <= 0.5
    assert pixels.max() == 255
    assert not to_mnist_style(Image.new("L", (50, 50), 240), 28).any(), "an empty page"


def test_a_digit_in_the_right_style_is_unchanged():
    digit = np.zeros((28, 28), np.uint8)
    digit[3:9, 4:7] = 100
    assert np.array_equal(to_mnist_style(Image.fromarray(digit), 28), digit)
