"""Whether the attention of a translator matters: what each word of a translation loses without each source word."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from regard.data.batches import pad
from regard.data.text import split_sentences
from regard.data.tokenizer import END, START
from regard.systems.faithfulness import Ablation, Evidence
from regard.systems.translate.alignment import align_words
from regard.systems.translate.config import MAX_ERASED_TOKENS
from regard.systems.translate.model import Translator
from regard.systems.translate.translation import Translation

MAX_SENTENCES, MAX_WORDS = 6, 60
"""How many sentences of a text are measured, and the largest number of words of a sentence that is."""
METHOD = (
    "Each source word in turn is erased, and the translation is scored again. For each of its words: the drop of the "
    "log-probability without the source word that it attends to most, beside the mean over all source words."
)


def evidence(model: Translator, text: str, options: Any, result: Translation) -> Evidence | None:
    """The attention between words, and what erasing source words costs; None for a model without attention."""
    if not model.has_attention:
        return None
    pairs = [
        (source.split(), target.split())
        for source, target in _sentence_pairs(model, text, options, result)
        if source.split() and target.split()
    ]
    pairs = [pair for pair in pairs if _is_measured(model, *pair)][:MAX_SENTENCES]
    weights = align_words(model, pairs)
    effects = [word_effects(model, *pair) for pair in pairs]
    ablation = Ablation.from_effects(weights, effects, unit="log-probability of a word", method=METHOD)
    return Evidence(weights, "source words", ablation)


def _is_measured(model: Translator, source: list[str], target: list[str]) -> bool:
    if max(len(source), len(target)) > MAX_WORDS:
        return False
    sides = (model.source_tokenizer, source), (model.target_tokenizer, target)
    return all(len(tokenizer.encode(" ".join(words))) <= MAX_ERASED_TOKENS for tokenizer, words in sides)


@torch.inference_mode()
def word_effects(model: Translator, source: list[str], target: list[str]) -> Float[np.ndarray, "t s"]:
    """How much the log-probability of each target word falls without each source word; NaN for a single source word."""
    if len(source) < 2:
        return np.full((len(target), len(source)), np.nan)
    without = [" ".join(source[:index] + source[index + 1 :]) for index in range(len(source))]
    ids = model.source_tokenizer.encode_batch([" ".join(source), *without])
    tokens = model.target_tokenizer.encode(" ".join(target))
    sources, lengths = pad(ids, after=(END,))
    targets = torch.tensor([[START, *tokens]]).expand(len(ids), -1).to(model.device)
    encoded = model.encode(sources.to(model.device), lengths)
    features = model.decoder(encoded, targets[:, :-1]).features
    log_probs = model.decoder.output(features).float().log_softmax(-1)
    scores = log_probs.gather(-1, targets[:, 1:].unsqueeze(-1)).squeeze(-1).double().cpu().numpy()
    by_word = np.zeros((len(ids), len(target)))
    np.add.at(by_word.T, model.target_tokenizer.word_index(tokens), scores.T)
    drops: Float[np.ndarray, "t s"] = (by_word[0] - by_word[1:]).T
    return drops


def _sentence_pairs(model: Translator, text: str, options: Any, result: Translation) -> list[tuple[str, str]]:
    """The sentences of a text, each with its own translation."""
    is_split = model.config.split_sentences if options.split is None else options.split
    sentences = split_sentences(text)[:MAX_SENTENCES] if is_split else [text]
    if len(sentences) < 2:
        return [(text, result.text)]
    return [(one.source, one.text) for one in model.answer(sentences, options)]
