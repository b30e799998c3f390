"""Whether the glimpses of a model matter: what its belief loses when the location of a glimpse is covered."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.images import ImageInput
from regard.layers.glimpse import window_offsets
from regard.systems.faithfulness import Ablation, Evidence
from regard.systems.glimpse.model import Glimpser, Glimpses

GRID = 7
"""Rows and columns of the locations that are covered for comparison."""
METHOD = (
    "The finest window of each glimpse in turn is covered, and the model looks at the same locations again: the drop "
    "of the log-probability of its answer, beside the mean over {count} windows all over the image."
)


@torch.inference_mode()
def evidence(model: Glimpser, image: ImageInput, options: Any, result: Glimpses) -> Evidence:
    """What covering the locations of glimpses costs. A glimpse is at one location, so that there are no weights."""
    config = model.config
    pixels = torch.from_numpy(model.view(image).pixels).to(model.device)
    side = config.image_size
    trace = result.trace
    if trace is None:
        raise TypeError("Glimpses have a trace.")
    points = np.stack([np.asarray(trace.values(name)) for name in ("x", "y")], -1)
    path = torch.as_tensor(2 * points - 1, dtype=torch.float32, device=model.device)
    steps = torch.linspace(-1, 1, GRID + 2, device=model.device)[1:-1]
    compared = torch.cartesian_prod(steps, steps)
    covered = _covered(pixels, torch.cat([path, compared]), side, config.glimpse_size)
    images = torch.cat([pixels.unsqueeze(0), covered])
    looked = model.look(images, locations=path.expand(len(images), -1, -1))
    scores = looked.logits[:, -1].float().log_softmax(-1)[:, model.labels.index(result.label)]
    drops = (scores[0] - scores[1:]).cpu()
    ablation = Ablation(
        float(drops[: len(path)].mean()),
        float(drops[len(path) :].mean()),
        unit=f"log-probability of {result.label}",
        method=METHOD.format(count=len(compared)),
    )
    return Evidence(parts="locations of the image", ablation=ablation)


def _covered(pixels: Tensor, locations: Tensor, side: int, size: int) -> Tensor:
    """Copies of an image, each with the window around one location in the colour of the background, black."""
    offsets = window_offsets(locations, image=(side, side), size=size)
    pixel = torch.arange(side, device=pixels.device)
    inside = [(pixel >= offsets[:, axis, None]) & (pixel < offsets[:, axis, None] + size) for axis in (1, 0)]
    window = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return pixels.unsqueeze(0).masked_fill(window, 0)
