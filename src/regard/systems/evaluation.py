"""How good a translator is, and how right its attention: by decoding, and by forced decoding where links are known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch.nn import functional

from regard.data.tokenizer import END, PAD, START
from regard.errors import OptionError
from regard.metrics.alignment import (
    AlignmentScores,
    GoldAlignment,
    Link,
    alignment_error_rate,
    links_from_weights,
    merge_subwords,
)
from regard.metrics.attention import entropy
from regard.metrics.translation import LengthBucket, TranslationScores, bleu_by_length, perplexity, translation_scores
from regard.systems.translator import Translator, pad

Losses = Float[np.ndarray, "m"]
Weights = Float[np.ndarray, "m n"]


@dataclass(frozen=True)
class Evaluation:
    """The scores of a translator on a test set."""

    translations: list[str]
    scores: TranslationScores
    by_length: list[LengthBucket]
    perplexity: float
    """Per target piece, of the references."""
    entropy: float | None
    """Mean entropy of the attention in nats, when the references are forced; None without attention."""


def evaluate(
    model: Translator, sources: Sequence[str], references: Sequence[str], *, beam: int = 5, lowercase: bool = False
) -> Evaluation:
    """Translate the sources with a beam and compare with the references."""
    if len(sources) != len(references):
        raise OptionError(f"There are {len(sources)} sources and {len(references)} references; there must be as many.")
    said = [found[0].text for found in model.translate(sources, beam=beam)]
    total, pieces, entropies = 0.0, 0, []
    for losses, weights in _forced(model, list(zip(sources, references, strict=True))):
        total += float(losses.sum())
        pieces += len(losses)
        if weights is not None:
            entropies.append(entropy(weights))
    return Evaluation(
        said,
        translation_scores(said, references, lowercase=lowercase),
        bleu_by_length(sources, said, references, lowercase=lowercase),
        perplexity(total, pieces),
        float(np.concatenate(entropies).mean()) if entropies else None,
    )


def align_words(model: Translator, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Weights]:
    """For each (source words, target words) the attention from word to word, (target, source), the target forced."""
    texts = [(" ".join(source), " ".join(target)) for source, target in pairs]
    for (source, target), (_, weights) in zip(texts, _forced(model, texts), strict=True):
        if weights is None:
            raise OptionError(f"A {model.config.architecture} model has no attention to align words with.")
        source_words = [*model.source_tokenizer.word_index(model.source_tokenizer.encode(source)), -1]
        target_words = [*model.target_tokenizer.word_index(model.target_tokenizer.encode(target)), -1]
        yield merge_subwords(weights, source_words, target_words)


def link_words(
    model: Translator, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], reverse: Translator | None = None
) -> list[set[Link]]:
    """For each (source words, target words) the links between them, the target forced.

    Each target word is linked with the source word that it attends to most. With `reverse`, a model of the other
    direction, the maps of both are multiplied (and the root taken), and words are linked that choose each other there.
    """
    maps = align_words(model, pairs)
    if reverse is None:
        return [links_from_weights(weights) for weights in maps]
    backward = align_words(reverse, [(target, source) for source, target in pairs])
    return [links_from_weights(np.sqrt(one * other.T), "both") for one, other in zip(maps, backward, strict=True)]


def alignment_error(
    model: Translator, gold: Sequence[GoldAlignment], reverse: Translator | None = None
) -> AlignmentScores:
    """The alignment error rate of the attention, where the right links are known."""
    predicted = link_words(model, [(example.source, example.target) for example in gold], reverse)
    return alignment_error_rate(predicted, [one.sure for one in gold], [one.possible for one in gold])


def _forced(
    model: Translator, pairs: Sequence[tuple[str, str]], batch: int = 64
) -> Iterator[tuple[Losses, Weights | None]]:
    """For each pair, the loss of each target piece and what was attended to for it, END included."""
    model.eval()
    for first in range(0, len(pairs), batch):
        yield from _force(model, pairs[first : first + batch])


@torch.no_grad()
def _force(model: Translator, pairs: Sequence[tuple[str, str]]) -> list[tuple[Losses, Weights | None]]:
    source, lengths = pad([[*model.source_tokenizer.encode(text), END] for text, _ in pairs], model.device)
    target, target_lengths = pad(
        [[START, *model.target_tokenizer.encode(text), END] for _, text in pairs], model.device
    )
    unrolled = model.decoder(model.encode(source, lengths), target[:, :-1], weights=True)
    logits = model.decoder.output(unrolled.features).float()
    losses = functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD, reduction="none").cpu().numpy()
    weights = None if unrolled.weights is None else unrolled.weights.float().cpu().numpy()
    return [
        (losses[row, : m - 1], None if weights is None else weights[row, : m - 1, :n])
        for row, (n, m) in enumerate(zip(lengths.tolist(), target_lengths.tolist(), strict=True))
    ]
