"""Images of a data set as one tensor, of pixels or of features."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageTensors:
    """Pixels or features of many images in one tensor, which is memory-mapped, in memory or on a GPU.

    Pixels are uint8 (n, 3, h, w). Features are float16 (n, cells, features), or int8 with a quantization step for each
    feature.
    """

    values: Shaped[Tensor, "n ..."]
    """One row for each image."""
    steps: Float[Tensor, "features"] | None = None
    """For int8 features: the value that 1 stands for in each of them."""

    def __len__(self) -> int:
        return len(self.values)

    def to(self, device: torch.device | str) -> "ImageTensors":
        """Move all images to a device."""
        return ImageTensors(self.values.to(device), None if self.steps is None else self.steps.to(device))

    def take(self, indices: Int[Tensor, "b"]) -> Shaped[Tensor, "b ..."]:
        """Gather the images at these indices, on the device where they are."""
        rows = self.values[indices.to(self.values.device, non_blocking=True)]
        return rows if self.steps is None else rows.float() * self.steps
