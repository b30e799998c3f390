"""Whether the attention of a captioner matters: what each word of a caption loses without the cells it looks at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from regard.data.images import ImageInput, open_image
from regard.data.tokenizer import START
from regard.encoders.encoded import Encoded
from regard.metrics.faithfulness import top_mask
from regard.systems.caption.captions import Caption
from regard.systems.caption.model import Captioner
from regard.systems.faithfulness import Ablation, Evidence

FRACTIONS = (0.1, 0.25, 0.5)
"""Shares of the cells that are hidden: neighbours see much of the same, so that one cell alone never matters."""
DRAWS = 8
"""Random choices of cells for each share."""
METHOD = (
    "For each word of the caption, the {shares} % of the cells that it attends to most are hidden from the model, and "
    "the caption is scored again: the mean drop of the log-probability of the word, beside that for as many cells "
    "chosen at random."
)


def evidence(model: Captioner, image: ImageInput, options: Any, result: Caption) -> Evidence | None:
    """The attention to cells, and what hiding them costs; None for a model without attention."""
    if model.config.architecture == "show_and_tell":
        return None
    tokens = model.tokenizer.encode(result.text)
    if not tokens:
        return Evidence(parts="cells of the image")
    encoded = encode(model, image)
    scores, weights = score(model, encoded, tokens, np.ones((1, encoded.states.shape[1]), dtype=bool))
    attended, random = hidden_drops(model, encoded, tokens, scores[0], weights)
    shares = ", ".join(f"{100 * share:g}" for share in FRACTIONS)
    ablation = Ablation(attended, random, unit="log-probability of a word", method=METHOD.format(shares=shares))
    return Evidence([weights], "cells of the image", ablation)


@torch.inference_mode()
def encode(model: Captioner, image: ImageInput) -> Encoded:
    """The cells of one image."""
    return model.encode(model.prepare([open_image(image)]).to(model.device))


def hidden_drops(
    model: Captioner,
    encoded: Encoded,
    tokens: Sequence[int],
    whole: Float[np.ndarray, "m"],
    weights: Float[np.ndarray, "m n"],
) -> tuple[float, float]:
    """The mean drop of a word's log-probability without the cells that it attends to most, and without random ones."""
    generator = np.random.default_rng(0)
    cells = weights.shape[1]
    own = [top_mask(row, share) for row in weights for share in FRACTIONS]
    drawn = [top_mask(generator.random((cells,)), share) for share in FRACTIONS for _ in range(DRAWS)]
    drops = whole - score(model, encoded, tokens, ~np.stack([*own, *drawn]))[0]
    # Each word is scored without its own cells, and without all random ones.
    attended = drops[: len(own)][np.arange(len(own)), np.repeat(np.arange(len(weights)), len(FRACTIONS))]
    return float(attended.mean()), float(drops[len(own) :].mean())


@torch.inference_mode()
def score(
    model: Captioner, encoded: Encoded, tokens: Sequence[int], kept: Bool[np.ndarray, "r n"]
) -> tuple[Float[np.ndarray, "r m"], Float[np.ndarray, "m n"]]:
    """The log-probability of each word of a caption where only some cells are seen, and its attention in the first row.

    Hard attention reads softly here, so that the result is the same each time.
    """
    seen = torch.from_numpy(np.ascontiguousarray(kept)).to(model.device)
    states, shares = encoded.states.expand(len(seen), -1, -1), seen.float().unsqueeze(-1)
    partly = Encoded(states, seen.unsqueeze(1), (states * shares).sum(1) / shares.sum(1))
    target = torch.tensor([[START, *tokens]], device=model.device).expand(len(seen), -1)
    unrolled = model.decoder(partly, target[:, :-1], weights=True, soft=True)
    log_probs = model.decoder.output(unrolled.features).float().log_softmax(-1)
    found = log_probs.gather(-1, target[:, 1:].unsqueeze(-1)).squeeze(-1)
    maps = unrolled.weights if unrolled.distribution is None else unrolled.distribution
    if maps is None:
        raise TypeError("Weights that were asked for are given.")
    return found.double().cpu().numpy(), maps[0, :, : kept.shape[1]].double().cpu().numpy()
