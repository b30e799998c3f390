"""What is drawn on a page, as MNIST would have it."""

import numpy as np
from PIL import Image

from regard.data.mnist_style import fit_ink


def test_ink_is_made_light_on_dark_and_put_in_the_middle():
    page = np.full((90, 120), 230, np.uint8)
    page[10:50, 80:90] = 40
    pixels = fit_ink(Image.fromarray(page).convert("RGB"), 28)
    rows, columns = np.nonzero(pixels)
    assert (rows.min(), rows.max()) == (4, 23)
    assert columns.max() - columns.min() == 4
    assert abs(columns.mean() - 13.5) <= 0.5
    assert pixels.max() == 255
    assert not fit_ink(Image.new("L", (50, 50), 240), 28).any(), "an empty page"


def test_a_digit_of_the_right_kind_stays_as_it_is():
    digit = np.zeros((28, 28), np.uint8)
    digit[3:9, 4:7] = 100
    assert np.array_equal(fit_ink(Image.fromarray(digit), 28), digit)
