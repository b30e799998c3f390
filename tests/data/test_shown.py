"""Batches of pictures with captions: each example once, within the tokens allowed, of like lengths or mixed."""

import numpy as np
import pytest
import torch

from regard.data.shown import CaptionExamples, Shown


def examples(count: int = 200) -> CaptionExamples:
    lengths = np.random.default_rng(0).integers(3, 15, count)
    return CaptionExamples(Shown(torch.zeros(count, 3, 2, 2)), np.arange(count), [[5] * n for n in lengths])


@pytest.mark.parametrize("alike", [True, False])
def test_every_caption_comes_once_and_no_batch_is_too_large(alike):
    batches = list(examples().loader(max_tokens=160, shuffle=True, alike=alike))
    assert sorted(place for batch in batches for place in batch.places.tolist()) == list(range(200))
    assert all(batch.target.numel() <= 160 for batch in batches)


def test_batches_are_of_like_lengths_or_mixed():
    spread = {}
    for alike in (True, False):
        batches = examples().loader(max_tokens=160, shuffle=True, alike=alike)
        found = [(batch.target > 0).sum(1) for batch in batches]
        spread[alike] = np.mean([float(lengths.max() - lengths.min()) for lengths in found])
    assert spread[True] < 2 < 6 < spread[False]
