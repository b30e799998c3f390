"""Whether the attention of a reader matters: what the next word, or a label, loses without each of the other words."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from regard.systems.faithfulness import Ablation, Evidence
from regard.systems.read.model import Reader, Reading
from regard.work import proceed

MAX_WORDS = 60
"""The first words of a text that are measured."""
ROWS = 16
"""Sentences that are read together."""
METHOD = (
    "Each word in turn is erased, and the rest is read again. When a word has been read: the drop of the "
    "log-probability of the next one without the earlier word that is attended to most, beside the mean over all "
    "earlier words."
)
TAG_METHOD = (
    "Each word in turn is erased, and the rest is read again: the drop of the log-probability of a word's label "
    "without the word that it attends to most, beside the mean over all words that it can attend to."
)


def evidence(model: Reader, text: Any, options: Any, result: Reading) -> Evidence | None:
    """The attention to earlier words, and what erasing them costs; None for a reader without attention.

    Readers that classify attend between words, not from a class to words, so that there is no one cost to measure.
    Taggers label each word.
    """
    trace = result.trace
    if trace is None or not trace.maps:
        return None
    weights = np.asarray(trace.maps[0].weights, dtype=np.float64)
    words = list(result.words[:MAX_WORDS])
    if model.config.task == "tag":
        weights = weights[: len(words), : len(words)].copy()
        looks_ahead = model.config.direction == "both" and not model.config.look_back
        weights[np.eye(len(words), dtype=bool) if looks_ahead else np.triu_indices(len(words))] = np.nan
        effects = np.where(np.isnan(weights), np.nan, tag_effects(model, words))
        ablation = Ablation.from_effects(
            [weights], [effects], unit="log-probability of the label of a word", method=TAG_METHOD
        )
        return Evidence([weights], "words" if looks_ahead else "earlier words", ablation)
    if model.config.task != "language-model":
        return Evidence([weights], "words")
    # Some language models attend to the word itself; none to words that are yet to come.
    ahead = np.triu_indices(len(words), 1 if np.diag(weights).any() else 0)
    weights = weights[: len(words), : len(words)].copy()
    weights[ahead] = np.nan
    effects = word_effects(model, words)
    ablation = Ablation.from_effects([weights], [effects], unit="log-probability of the next word", method=METHOD)
    return Evidence([weights], "earlier words", ablation)


@torch.inference_mode()
def word_effects(model: Reader, words: list[str]) -> Float[np.ndarray, "n n"]:
    """How much the log-probability of the word after each word falls without each word before it; NaN for others."""
    variants = [words, *(words[:index] + words[index + 1 :] for index in range(len(words) - 1))]
    scores = []
    for start in range(0, len(variants), ROWS):
        proceed()
        ids, lengths = model.padded(variants[start : start + ROWS])
        bits, _ = model.surprisals(ids, lengths, weights=False)
        scores += [
            -math.log(2) * row[: length + 1].double().cpu().numpy() for row, length in zip(bits, lengths, strict=True)
        ]
    effects = np.full((len(words), len(words)), np.nan)
    for index, without in enumerate(scores[1:]):
        # Row t is about the word after word t, which stands one position earlier without the erased word.
        effects[index + 1 :, index] = scores[0][index + 2 :] - without[index + 1 :]
    return effects


@torch.inference_mode()
def tag_effects(model: Reader, words: list[str]) -> Float[np.ndarray, "n n"]:
    """How much the log-probability of the label of each word falls without each other word; NaN for the word itself."""
    kept = [[*range(len(words))], *([*range(index), *range(index + 1, len(words))] for index in range(len(words)))]
    # A word alone would leave an empty sentence.
    kept = [each for each in kept if each]
    scores = []
    for start in range(0, len(kept), ROWS):
        proceed()
        part = kept[start : start + ROWS]
        ids, lengths = model.padded([[words[position] for position in each] for each in part])
        scores += list(model.network(ids, lengths).logits.float().log_softmax(-1).double().cpu().numpy())
    labels = scores[0].argmax(-1)
    effects = np.full((len(words), len(words)), np.nan)
    for index, (positions, without) in enumerate(zip(kept[1:], scores[1:], strict=True)):
        for row, position in enumerate(positions):
            effects[position, index] = scores[0][position, labels[position]] - without[row, labels[position]]
    return effects
