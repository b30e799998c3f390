"""Random augmentation of a batch of images, on any device, that does not change their classes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

Images = Float[Tensor, "b c h w"]


def random_crop(images: Images, padding: int) -> Images:
    """Shift each image by up to `padding` pixels in both directions; pixels from outside are 0."""
    if not padding:
        return images
    b, c, h, w = images.shape
    device = images.device
    rows, columns = (
        torch.randint(2 * padding + 1, (b, 1), device=device) + torch.arange(length, device=device) for length in (h, w)
    )
    padded = functional.pad(images, (padding,) * 4)
    batch, channels = torch.arange(b, device=device), torch.arange(c, device=device)
    return padded[
        batch[:, None, None, None], channels[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
    ]


def random_flip(images: Images) -> Images:
    """Mirror each image horizontally with probability 1/2."""
    mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(mirrored, images.flip(3), images)


def cutout(images: Images, size: int) -> Images:
    """Set a square of up to size x size pixels of each image to 0; the border may cut it (DeVries and Taylor 2017)."""
    if not size:
        return images
    b, _, h, w = images.shape
    rows, columns = (_random_interval(b, length, size, images.device) for length in (h, w))
    return images.masked_fill(rows[:, None, :, None] & columns[:, None, None, :], 0.0)


def _random_interval(count: int, length: int, size: int, device: torch.device) -> Bool[Tensor, "b n"]:
    first = torch.randint(length, (count, 1), device=device) - size // 2
    distance = torch.arange(length, device=device) - first
    return (distance >= 0) & (distance < size)
