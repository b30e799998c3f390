"""Whether the attention of a captioner matters: what each word of a caption loses without each region of the image."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from regard.data.images import ImageInput, open_image
from regard.data.tokenizer import START
from regard.encoders.encoded import Encoded
from regard.systems.captioning.model import Caption, Captioner
from regard.systems.trust import Erasing, Evidence

REGIONS = 6
"""Most rows and columns of regions that an image is divided into: single cells are too small to matter."""
HOW = (
    "The image is divided into {rows} x {columns} regions. Each in turn is hidden from the model, and the caption is "
    "scored again. For each of its words: the drop of the log-probability without the region that it attends to most, "
    "beside the mean over all regions."
)


def evidence(model: Captioner, image: ImageInput, options: Any, result: Caption) -> Evidence | None:
    """The attention to regions, and what hiding them costs; None for a model without attention."""
    if model.config.architecture == "show_and_tell":
        return None
    tokens = model.tokenizer.encode(result.text)
    if not tokens:
        return Evidence(parts="regions of the image")
    regions = region_masks(model.config.grid)
    weights, drops = region_effects(model, image, tokens, regions)
    count = int(np.sqrt(len(regions)))
    erasing = Erasing.from_effects(
        [weights], [drops], unit="log-probability of a word", how=HOW.format(rows=count, columns=count)
    )
    return Evidence([weights], "regions of the image", erasing)


def region_masks(grid: tuple[int, int]) -> Bool[np.ndarray, "r n"]:
    """The cells of each region: rectangles of nearly the same size, row by row."""
    count = min(REGIONS, *grid)
    rows, columns = (np.arange(extent) * count // extent for extent in grid)
    owners = (rows[:, None] * count + columns[None, :]).ravel()
    return np.stack([owners == region for region in range(count * count)])


@torch.inference_mode()
def region_effects(
    model: Captioner, image: ImageInput, tokens: list[int], regions: Bool[np.ndarray, "r n"]
) -> tuple[Float[np.ndarray, "m r"], Float[np.ndarray, "m r"]]:
    """The attention of each word to each region, and how much its log-probability falls without the region."""
    encoded = model.encode(model.prepare([open_image(image)]).to(model.device))
    kept = torch.from_numpy(np.concatenate([np.ones_like(regions[:1]), ~regions])).to(model.device)
    states = encoded.states.expand(len(kept), -1, -1)
    shares = kept.float().unsqueeze(-1)
    without = Encoded(states, kept.unsqueeze(1), (states * shares).sum(1) / shares.sum(1))
    target = torch.tensor([[START, *tokens]], device=model.device)
    # Soft reading makes the caption of a model with hard attention the same each time.
    unrolled = model.decoder(without, target[:, :-1].expand(len(kept), -1), weights=True, soft=True)
    log_probs = model.decoder.output(unrolled.features).float().log_softmax(-1)
    scores = log_probs.gather(-1, target[:, 1:].expand(len(kept), -1).unsqueeze(-1)).squeeze(-1).double().cpu().numpy()
    maps = unrolled.weights if unrolled.chances is None else unrolled.chances
    if maps is None:
        raise TypeError("Weights that were asked for are given.")
    weights = maps[0].double().cpu().numpy()[:, : regions.shape[1]] @ regions.T.astype(np.float64)
    return weights, (scores[0] - scores[1:]).T
