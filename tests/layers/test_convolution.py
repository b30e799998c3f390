"""Convolution and pooling from their definitions: closed forms, output sizes, parity with torch and its gradients."""

import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError, ShapeError
from regard.layers.convolution import average_pool, convolve, max_pool, max_pool_backward, output_size, uncovered

SHAPES = [(11, 3, 1, 0), (11, 3, 2, 1), (7, 5, 3, 2), (13, 2, 2, 0), (5, 5, 1, 0)]


def test_six_filters_of_5_x_5_on_32_x_32_x_3_give_28_x_28_x_6():
    assert convolve(torch.randn(1, 3, 32, 32), torch.randn(6, 3, 5, 5)).shape == (1, 6, 28, 28)


def test_a_convolution_by_hand():
    image = torch.arange(9.0).reshape(1, 1, 3, 3)
    filters = torch.tensor([[1.0, 0.0], [0.0, -2.0]]).reshape(1, 1, 2, 2)
    assert convolve(image, filters, torch.tensor([0.5]))[0, 0].tolist() == [[-7.5, -8.5], [-10.5, -11.5]]


@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), SHAPES)
def test_convolution_is_torchs(size, kernel, stride, padding):
    maps, filters, bias = torch.randn(2, 3, size, size + 2), torch.randn(7, 3, kernel, kernel), torch.randn(7)
    expected = functional.conv2d(maps, filters, bias, stride=stride, padding=padding)
    torch.testing.assert_close(convolve(maps, filters, bias, stride=stride, padding=padding), expected)
    assert expected.shape[2] == output_size(size, kernel, stride=stride, padding=padding)


def test_the_gradients_of_a_convolution_are_right():
    maps = torch.randn(2, 3, 5, 7, dtype=torch.float64, requires_grad=True)
    filters = torch.randn(2, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: convolve(x, w, stride=2, padding=1), (maps, filters))


@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), [*SHAPES[:2], (13, 3, 2, 0), (11, 2, 3, 1)])
def test_max_pooling_and_its_gradient_are_torchs(size, kernel, stride, padding):
    maps = torch.randn(2, 3, size, size + 2, requires_grad=True)
    expected, expected_places = functional.max_pool2d(maps, kernel, stride, padding, return_indices=True)
    largest, places = max_pool(maps.detach(), kernel, stride=stride, padding=padding)
    assert torch.equal(largest, expected)
    assert torch.equal(places, expected_places)
    gradient = torch.randn_like(expected)
    expected.backward(gradient)
    torch.testing.assert_close(max_pool_backward(gradient, places, (size, size + 2)), maps.grad)


def test_a_pixel_that_wins_twice_gets_both_gradients():
    maps = torch.zeros(1, 1, 3, 3)
    maps[0, 0, 1, 1] = 5.0
    _, places = max_pool(maps, 2, stride=1)
    back = max_pool_backward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 1, 2, 2), places, (3, 3))
    assert back[0, 0].tolist() == [[0, 0, 0], [0, 10, 0], [0, 0, 0]]


def test_average_pooling_is_torchs():
    maps = torch.randn(2, 3, 7, 11)
    torch.testing.assert_close(average_pool(maps, 3, stride=2), functional.avg_pool2d(maps, 3, 2))
    torch.testing.assert_close(average_pool(maps, 2), functional.avg_pool2d(maps, 2))


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("kernel", [2, 3, 5])
def test_uncovered_pixels_are_those_at_the_end_that_have_no_gradient(kernel, stride, padding):
    for size in range(kernel, 17):
        line = torch.ones(1, 1, 1, size, requires_grad=True)
        functional.conv2d(line, torch.ones(1, 1, 1, kernel), stride=(1, stride), padding=(0, padding)).sum().backward()
        touched = line.grad[0, 0, 0].nonzero().max()
        assert uncovered(size, kernel, stride=stride, padding=padding) == size - 1 - touched


def test_impossible_sizes_are_explained():
    with pytest.raises(ShapeError, match=r"kernel of 5 .* does not fit on 3 pixels"):
        output_size(3, 5)
    with pytest.raises(OptionError, match="stride=0"):
        output_size(3, 1, stride=0)
