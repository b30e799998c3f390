"""Two translators beside each other, and a translator beside the right word links."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from regard.data.tokenizer import END
from regard.errors import OptionError
from regard.metrics.alignment import AlignmentScores, GoldAlignment, Link, alignment_error_rate, links_from_weights
from regard.systems.translate.alignment import WordMap, align_words
from regard.systems.translate.changes import Change
from regard.systems.translate.config import parse_world
from regard.systems.translate.forced import UNCHANGED, SentenceDecoder
from regard.systems.translate.inspection import Inspection, WordEdit, inspect, word_edits
from regard.systems.translate.model import Translator
from regard.trace import Axis, Map, Trace

MAX_EXAMPLES = 200
"""Number of examples of the world that can be asked for."""


@dataclass(frozen=True)
class Comparison:
    """What two models make of one sentence."""

    first: Inspection
    second: Inspection
    edits: tuple[WordEdit, ...]
    """How the first translation becomes the second."""
    log_prob_by_second: float
    """The log-probability of the first translation by the second model."""
    trace: Trace | None = field(repr=False)
    """The attention of both models to the words of the source while each is given the first translation, word by word;
    the main map is the first minus the second. None where a model has no attention."""


def compare_models(
    first: Translator,
    second: Translator,
    sentence: str,
    *,
    first_change: Change = UNCHANGED,
    second_change: Change = UNCHANGED,
    **options: Any,
) -> Comparison:
    """Translate a sentence with two models, and compare what they attend to for the words of the first translation.

    The models may have different vocabularies: maps are compared word by word. Compare models of the same languages;
    what a model attends to while it is given a language that it does not know says nothing. A change makes another
    model of one: `second_change=Change(align="hard")` compares soft with hard attention.
    """
    one = inspect(first, sentence, first_change, count=0, **options)
    other = inspect(second, sentence, second_change, count=0, **options)
    judged = [*second.target_tokenizer.encode(one.text), END]
    by_second = SentenceDecoder(second, sentence, Change(heads=second_change.heads, align=second_change.align))
    words = tuple(sentence.split()), tuple(one.text.split())
    trace = None
    if first.has_attention and second.has_attention and words[1]:
        maps = [align_words(change.apply(model), [words])[0] for model, change in
                ((first, first_change), (second, second_change))]  # fmt: skip
        trace = _word_trace(*words, {"difference": maps[0] - maps[1], "first": maps[0], "second": maps[1]})
    edits = word_edits([word.text for word in one.words], [word.text for word in other.words])
    return Comparison(one, other, edits, by_second.log_prob(judged), trace)


@dataclass(frozen=True)
class GoldComparison:
    """The attention of a model for a sentence pair, beside the right word links."""

    gold: GoldAlignment
    links: frozenset[Link]
    """Each target word with the source word that it attends to most."""
    scores: AlignmentScores
    trace: Trace = field(repr=False)
    """The attention from word to word while the model is given the translation."""


def compare_with_gold(model: Translator, gold: GoldAlignment) -> GoldComparison:
    """Align a sentence pair by the attention of a model, and compare with the right links (AER, precision, recall)."""
    weights = align_words(model, [(gold.source, gold.target)])[0]
    links = links_from_weights(weights)
    scores = alignment_error_rate([links], [gold.sure], [gold.possible])
    trace = _word_trace(gold.source, gold.target, {"attention": weights})
    return GoldComparison(gold, frozenset(links), scores, trace)


def babel_example(direction: str, number: int = 0, *, max_words: int = 12) -> GoldAlignment:
    """A test sentence of the world babel with its right word links; `direction` is such as "en-fr"."""
    from regard.worlds.babel import pairs

    if not 0 <= number < MAX_EXAMPLES:
        raise OptionError(f"Examples are counted from 0 to {MAX_EXAMPLES - 1}; got {number}.")
    source, target = parse_world(f"babel:{direction}")
    pair = next(islice(pairs(source, target, split="test", max_words=max_words), number, None))
    return GoldAlignment(pair.source, pair.target, pair.sure, pair.possible)


def _word_trace(source: Sequence[str], target: Sequence[str], maps: dict[str, WordMap]) -> Trace:
    axes = (
        Axis("source", "words", tuple(source), text=" ".join(source)),
        Axis("target", "words", tuple(target), text=" ".join(target)),
    )
    named = tuple(Map(name, "target", "source", np.asarray(weights)) for name, weights in maps.items())
    return Trace("translation", axes, named)
