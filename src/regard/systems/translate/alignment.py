"""Word alignment by the attention of a translator whose output is given: maps from word to word, and links."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.alignments import format_links
from regard.data.batches import pad
from regard.data.text import read_pairs
from regard.data.tokenizer import END, START
from regard.errors import OptionError
from regard.metrics.alignment import (
    AlignmentScores,
    GoldAlignment,
    Link,
    alignment_error_rate,
    links_from_weights,
    symmetrize,
)
from regard.systems.predictor import batches_by_cost, in_groups
from regard.systems.translate.config import MAX_ALIGNED_TOKENS, Symmetrize
from regard.systems.translate.model import Translator
from regard.trace import Trace

WordPair = tuple[Sequence[str], Sequence[str]]
WordMap = Float[np.ndarray, "target source"]
MAX_BATCH, MAX_BATCH_ON_GPU, MAX_BATCH_TOKENS = 64, 512, 1 << 15
READ_AHEAD = 8192
"""Number of pairs that are read before the first are aligned: those of like length go together."""


def align_words(model: Translator, pairs: Sequence[WordPair]) -> list[WordMap]:
    """For each (source words, target words) the attention from word to word, (target, source), the target given.

    Weights are summed over the tokens of a source word and averaged over those of a target word. Where a sentence has
    more than MAX_ALIGNED_TOKENS tokens, all weights are 0.
    """
    return _align_words(model, pairs)[0]


def _align_words(model: Translator, pairs: Sequence[WordPair]) -> tuple[list[WordMap], list[bool]]:
    """The maps of `align_words`, and whether each pair is too long."""
    model.check_mode()
    if model.config.architecture == "plain":
        raise OptionError("A plain model has no attention to align words with.")
    for word in (word for pair in pairs for side in pair for word in side):
        if len(word.split()) != 1:
            raise OptionError(f"Words to align have no spaces, and are not empty; got {word!r:.80}.")
    maps: list[WordMap] = [np.zeros((len(target), len(source)), np.float32) for source, target in pairs]
    sources, targets = (
        tokenizer.encode_batch([" ".join(pair[side]) for pair in pairs])
        for side, tokenizer in enumerate((model.source_tokenizer, model.target_tokenizer))
    )
    costs = [max(len(source), len(target)) + 2 for source, target in zip(sources, targets, strict=True)]
    too_long = [cost > MAX_ALIGNED_TOKENS + 2 for cost in costs]
    usable = [index for index, pair in enumerate(pairs) if all(pair) and not too_long[index]]
    rows = MAX_BATCH_ON_GPU if model.device.type == "cuda" else MAX_BATCH
    for batch in batches_by_cost([costs[index] for index in usable], max_batch=rows, max_cost=MAX_BATCH_TOKENS):
        indices = [usable[number] for number in batch]
        found = _word_maps(model, [sources[index] for index in indices], [targets[index] for index in indices])
        for index, table in zip(indices, found, strict=True):
            maps[index] = table[: len(pairs[index][1]), : len(pairs[index][0])]
    return maps, too_long


@torch.inference_mode()
def _word_maps(model: Translator, sources: list[list[int]], targets: list[list[int]]) -> Float[np.ndarray, "b t s"]:
    source, lengths = pad(sources, after=(END,))
    target, _ = pad(targets, before=(START,), after=(END,))
    encoded = model.encode(source.to(model.device), lengths)
    weights = model.decoder(encoded, target[:, :-1].to(model.device), weights=True).weights
    if weights is None:
        raise OptionError(f"This {model.config.architecture} model reports no attention to align words with.")
    words = [
        pad([tokenizer.word_index(row) for row in rows], value=-1, after=(-1,))[0]
        for tokenizer, rows in ((model.source_tokenizer, sources), (model.target_tokenizer, targets))
    ]
    return merge_by_word(model.by_word(weights), *words).cpu().numpy()


def merge_by_word(
    weights: Float[Tensor, "b m n"], source_words: Int[Tensor, "b n"], target_words: Int[Tensor, "b m"]
) -> Float[Tensor, "b t s"]:
    """Merge weights between tokens to weights between words, for a batch; the function of one pair is merge_subwords.

    `source_words` is the word of each token, -1 for tokens that belong to none.
    """
    weights = weights.float()
    (batch, m, n), device = weights.shape, weights.device
    last_source, last_target = int(source_words.max()) + 1, int(target_words.max()) + 1
    # Tokens of no word go to an index after the last word, which is cut off.
    columns = source_words.to(device).remainder(last_source + 1)[:, None].expand(batch, m, n)
    rows = target_words.to(device).remainder(last_target + 1)
    by_source = weights.new_zeros(batch, m, last_source + 1).scatter_add_(2, columns, weights)[..., :-1]
    index = rows[:, :, None].expand(batch, m, last_source)
    merged = weights.new_zeros(batch, last_target + 1, last_source).scatter_add_(1, index, by_source)
    counts = weights.new_zeros(batch, last_target + 1).scatter_add_(1, rows, weights.new_ones(batch, m))
    return (merged / counts.clamp_min(1).unsqueeze(-1))[:, :-1]


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair, the links between its words, and how strong each is."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: frozenset[Link]
    weights: WordMap = field(repr=False)
    """The attention from word to word: of the model, or the geometric mean of both directions."""
    is_too_long: bool = False
    """Whether a side has more than MAX_ALIGNED_TOKENS tokens, so that there are no links."""

    @property
    def trace(self) -> Trace:
        """The attention from word to word, to be viewed."""
        texts = {"source_text": " ".join(self.source), "target_text": " ".join(self.target)}
        return Trace.from_weights(self.source, self.target, self.weights, kind="translation", **texts)

    def to_text(self) -> str:
        """The links as `0-0 1-2`."""
        return format_links(self.links)

    def to_json(self) -> str:
        """The words, the links and their weights as one line of JSON."""
        links = sorted(self.links)
        weights = [round(float(self.weights[target, source]), 4) for source, target in links]
        fields = {"source": self.source, "target": self.target, "links": links, "weights": weights}
        return json.dumps(fields, ensure_ascii=False)


def align_pairs(
    model: Translator,
    pairs: Sequence[WordPair],
    reverse: Translator | None = None,
    *,
    symmetrize: Symmetrize = "mutual",
    threshold: float = 0.0,
) -> list[AlignedPair]:
    """Align (source words, target words): each target word is linked with the source word that it attends to most.

    With `reverse`, a model of the other direction, "mutual" links words that choose each other in the geometric mean of
    both maps; the other ways combine the links of the two directions (see `metrics.symmetrize`). Links with a weight
    below `threshold` are left out.
    """
    maps, too_long = _align_words(model, pairs)
    if reverse is None:
        joint = maps
        links = [links_from_weights(weights, threshold=threshold) for weights in maps]
    else:
        turned, also_too_long = _align_words(reverse, [(target, source) for source, target in pairs])
        too_long = [any(both) for both in zip(too_long, also_too_long, strict=True)]
        backward = [other.T for other in turned]
        joint = [np.sqrt(one * other) for one, other in zip(maps, backward, strict=True)]
        links = [
            links_from_weights(mean, "both", threshold=threshold)
            if symmetrize == "mutual"
            else _symmetrized(one, other, symmetrize, threshold)
            for one, other, mean in zip(maps, backward, joint, strict=True)
        ]
    return [
        AlignedPair(tuple(source), tuple(target), frozenset(found), weights, is_too_long)
        for (source, target), found, weights, is_too_long in zip(pairs, links, joint, too_long, strict=True)
    ]


def align_files(
    model: Translator,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    reverse: Translator | None = None,
    **options: Any,
) -> Iterator[AlignedPair]:
    """Align the lines of two files, streamed; the options are those of `align_pairs`."""
    return align_stream(model, read_pairs(source, target), reverse, **options)


def align_stream(
    model: Translator, pairs: Iterable[tuple[str, str]], reverse: Translator | None = None, **options: Any
) -> Iterator[AlignedPair]:
    """Align any number of sentence pairs, in order; the options are those of `align_pairs`."""
    for group in in_groups(pairs, READ_AHEAD):
        yield from align_pairs(model, [(one.split(), other.split()) for one, other in group], reverse, **options)


def link_words(
    model: Translator, pairs: Sequence[WordPair], reverse: Translator | None = None, **options: Any
) -> list[set[Link]]:
    """The links of (source words, target words), with the options of `align_pairs`."""
    return [set(pair.links) for pair in align_pairs(model, pairs, reverse, **options)]


def _symmetrized(forward: WordMap, backward: WordMap, how: str, threshold: float) -> set[Link]:
    """Combine the links of the maps of both directions, both (target, source)."""
    turned = links_from_weights(backward.T, threshold=threshold)
    links = {(source, target) for target, source in turned}
    return symmetrize(links_from_weights(forward, threshold=threshold), links, how)


def alignment_error(
    model: Translator,
    gold: Sequence[GoldAlignment],
    reverse: Translator | None = None,
    *,
    symmetrize: Symmetrize = "mutual",
    threshold: float = 0.0,
) -> AlignmentScores:
    """The alignment error rate of the attention, where the right links are known."""
    pairs = [(example.source, example.target) for example in gold]
    predicted = link_words(model, pairs, reverse, symmetrize=symmetrize, threshold=threshold)
    return alignment_error_rate(predicted, [example.sure for example in gold], [example.possible for example in gold])
