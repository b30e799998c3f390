"""Pictures changed at random in ways that leave their class alone, a whole batch at a time, on any device."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

Images = Float[Tensor, "b c h w"]


def random_crop(images: Images, padding: int) -> Images:
    """Each picture moved by up to `padding` pixels up or down, left or right; what comes in from outside is 0."""
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
    """Half of the pictures seen in a mirror."""
    mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(mirrored, images.flip(3), images)


def cutout(images: Images, size: int) -> Images:
    """A square of size x size pixels of each picture set to 0, at its border maybe less (DeVries and Taylor 2017)."""
    if not size:
        return images
    b, _, h, w = images.shape
    rows, columns = (_near_a_random_place(b, length, size, images.device) for length in (h, w))
    return images.masked_fill(rows[:, None, :, None] & columns[:, None, None, :], 0.0)


def _near_a_random_place(count: int, length: int, size: int, device: torch.device) -> Bool[Tensor, "b n"]:
    first = torch.randint(length, (count, 1), device=device) - size // 2
    distance = torch.arange(length, device=device) - first
    return (distance >= 0) & (distance < size)
