"""Looking inside one translation, and changing it; two translators beside each other, or one beside known links.

    found = inspect(model, "The agreement was signed.")         # its words, with the likeliest others at each step
    change = force_word(model, found, 1, "traité")              # or move_attention, or Change(heads=("cross 2.1",))
    again = translate_with_change(model, found.source, change)  # what follows from it

A sentence is read as the model reads it: `sentences` gives those of a text. Whole texts, names and capitals are the
business of `Translator.translate`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from msgspec import Meta

from regard.config import Count, Probability
from regard.data.tokenizer import END, UNKNOWN
from regard.errors import OptionError, counted
from regard.metrics.alignment import GoldAlignment, Link, alignment_error_rate, links_from_weights
from regard.search.beam import BeamNode, BeamStep, BeamTree, beam_tree
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.systems.endpoint import NOT_SENT, endpoint
from regard.systems.predictor import Result
from regard.systems.translate.alignment import WordMap, align_pairs, align_words
from regard.systems.translate.changes import ALIGNMENTS, UNCHANGED, Change, head_names
from regard.systems.translate.config import parse_world
from regard.systems.translate.forced import (
    NextWord,
    SentenceDecoder,
    likeliest_words,
    next_log_probs,
    pieces_of,
    split_tokens,
)
from regard.systems.translate.model import Translator
from regard.systems.translate.sentences import split
from regard.systems.translate.translation import traces_of
from regard.systems.word_edits import WordEdit, compare_words
from regard.trace import Axis, Map, Trace

MAX_WORDS = 64
"""Words of a translation, the first ones, for which the likeliest others are found."""
MAX_EXAMPLES = 200
"""Number of examples of the world babel that can be asked for."""
SEARCH = Search()
SENTENCE = {"sentence": "He is happy."}
"""An example for requests."""


@dataclass(frozen=True)
class SourceWord:
    """A word of the source, and the positions of its tokens."""

    text: str
    positions: tuple[int, ...]


@dataclass(frozen=True)
class InspectedWord:
    """A word of a translation, and what else could have stood in its place."""

    text: str
    tokens: tuple[int, ...]
    first: int
    """The step that predicts its first token."""
    step: int
    """The step whose attention is shown for it."""
    begins: bool
    """Whether a space stands before it."""
    probability: float
    """Of exactly this word after the words before it."""
    likeliest: tuple[NextWord, ...]
    """The likeliest words at this position, best first; none after the first MAX_WORDS words."""


@dataclass(frozen=True)
class Inspection:
    """One translation with everything that can be asked about it."""

    source: str
    """The sentence."""
    source_tokens: tuple[int, ...]
    """Its tokens, that of the end included."""
    source_words: tuple[SourceWord, ...]
    text: str
    """The translation."""
    tokens: tuple[int, ...]
    """Its tokens, without that of the end."""
    log_prob: float
    """The log-probability of all its tokens, of the end too."""
    score: float
    """What the search ranked it by."""
    finished: bool
    """False where it was cut at the length limit."""
    unknown: bool
    """Whether the sentence has a piece that the vocabulary does not know."""
    words: tuple[InspectedWord, ...]
    """Its words; the last one is the end, "</s>", where it has one."""
    trace: Trace | None = field(repr=False)
    """What was attended to; None for a model without attention."""


@dataclass(frozen=True)
class InspectedText:
    """A sentence of a text, its translation, and what can be changed about it."""

    architecture: str
    sentences: tuple[str, ...]
    """The sentences of the text as the model reads them."""
    sentence: int
    heads: tuple[str, ...]
    """The heads that can be removed."""
    alignments: tuple[str, ...]
    """The alignments that can take the place of that of the model; none where it cannot be replaced."""
    alignment: str
    """That of the model."""
    before: Inspection


@dataclass(frozen=True)
class Changed:
    """A translation after a change."""

    after: Inspection
    edits: tuple[WordEdit, ...]
    """How the words of the original become those of the new translation."""
    before_under_change: float
    """The log-probability of the original translation with the change. A forced beginning changes no probability."""
    after_unchanged: float
    """The log-probability of the new translation by the model as it is."""


def sentences(model: Translator, text: str) -> list[str]:
    """The sentences of a text as the model reads them one by one; none where the text has no words."""
    tokenizer = model.source_tokenizer
    return [part.given for part in split(text, tokenizer, by_sentence=model.config.split_sentences)]


@endpoint("inspect", input="text", example={"text": SENTENCE["sentence"]})
def inspect_text(
    model: Translator, text: str, sentence: Count = 0, *, words: Count = 5, search: Search = SEARCH
) -> InspectedText:
    """Look into the translation of a sentence: which words could have stood in its place, and what they attended to.
    A sentence of at most 128 tokens is inspected.

    Parameters
    ----------
    sentence
        Which sentence of the text, counted from 0.
    words
        How many of the likeliest words to report at each step; 0 for none, which is faster.
    search
        The beam search.
    """
    found = sentences(model, text)
    if not found:
        raise OptionError("There is nothing to translate: the text has no words.")
    if sentence >= len(found):
        raise OptionError(f"The text has {counted(len(found), 'sentence')}, counted from 0; got sentence {sentence}.")
    has_alignment = getattr(model.decoder, "attention", None) is not None
    return InspectedText(
        model.config.architecture,
        tuple(found),
        sentence,
        tuple(head_names(model)),
        ALIGNMENTS if has_alignment else (),
        model.config.align,
        inspect(model, found[sentence], words=words, search=search),
    )


def inspect(
    model: Translator, sentence: str, change: Change = UNCHANGED, *, words: Count = 5, search: Search = SEARCH
) -> Inspection:
    """Translate a sentence by beam search, with so many of the likeliest words at each step; 0 is faster.

    The translation equals that of `model.translate(sentence, split=False)` where
    nothing is changed.
    """
    decoder = SentenceDecoder(model, sentence, change)
    return _inspection(decoder, decoder.search(search)[0], words)


@endpoint("change", input="sentence", example=SENTENCE | {"change": {"word": "Elle"}})
def translate_with_change(
    model: Translator,
    sentence: str,
    change: Change,
    *,
    before: Sequence[int] = (),
    words: Count = 5,
    search: Search = SEARCH,
) -> Changed:
    """Translate a sentence with a change, and compare words and log-probabilities with those of the original.
    The sentence has at most 128 tokens.

    Parameters
    ----------
    change
        What is to be different.
    before
        The tokens of the original translation with that of the end, where they are known; otherwise it is searched for.
    words
        How many of the likeliest words to report at each step; 0 for none, which is faster.
    search
        The beam search.
    """
    changed = SentenceDecoder(model, sentence, change)
    plain = SentenceDecoder(model, sentence) if change.changes_model or not before else changed
    original = list(before) or _with_end(plain.search(search)[0])
    changed.check_tokens(original)
    hypothesis = changed.search(search)[0]
    after, tokenizer = _inspection(changed, hypothesis, words), model.target_tokenizer
    known = pieces_of(tokenizer)
    texts = [known.text(original[span.start : span.stop]) for span in split_tokens(tokenizer, original)]
    judged = plain.log_prob(_with_end(hypothesis)) if change.changes_model else after.log_prob
    edits = compare_words(texts, [word.text for word in after.words])
    return Changed(after, edits, changed.log_prob(original), judged)


def force_word(model: Translator, found: Inspection, position: int, word: str | Sequence[int]) -> Change:
    """The change by which a translation has another word at a position, and is decoded again from there.

    `position` counts `found.words` from 0; `word` is a text, or the tokens of a `NextWord`. A text begins a new word
    unless it is a punctuation mark, or follows an elided article (l'). This is for Python: the page sends a `Change`.
    """
    before = found.tokens[: _word_at(found, position).first]
    if isinstance(word, str) and word.strip():
        return Change(prefix=before, word=word)
    if isinstance(word, str) or not word or END in word[:-1]:
        raise OptionError(f"word must be a non-empty text or tokens, with the end only as the last; got {word!r}.")
    return Change(prefix=(*before, *word))


def move_attention(model: Translator, found: Inspection, position: int, weights: Mapping[int, float]) -> Change:
    """The change by which the step of a word attends elsewhere, and the translation is decoded again from there.

    `position` counts `found.words` from 0. `weights` has the weight of source words, counted from 0 in
    `found.source.split()`; they are divided by their sum, and each is spread evenly over the tokens of its word. With
    alignment_step "input", the attention of a word is that of the step after it, which then changes the next word.
    """
    step, total = _word_at(found, position).step, sum(weights.values())
    if total <= 0 or min(weights.values()) < 0:
        raise OptionError(f"The weights must be 0 or more, and one of them above 0; got {dict(weights)}.")
    owners = model.source_tokenizer.word_index(found.source_tokens)
    if wrong := [word for word in weights if word not in owners]:
        raise OptionError(f"The sentence has {counted(max(owners) + 1, 'word')}, counted from 0; got word {wrong[0]}.")
    row = [weights.get(owner, 0.0) / total / owners.count(owner) for owner in owners]
    return Change(prefix=found.tokens[:step], attention={step: row})


def _word_at(found: Inspection, position: int) -> InspectedWord:
    if not 0 <= position < len(found.words):
        count = counted(len(found.words), "word")
        raise OptionError(f"The translation has {count}, counted from 0; got position {position}.")
    return found.words[position]


def _inspection(decoder: SentenceDecoder, hypothesis: Hypothesis, count: int) -> Inspection:
    tokenizer = decoder.model.source_tokenizer
    # The maps of all heads come from teacher forcing, in which no attention is replaced.
    which = "main" if decoder.change.attention else "all"
    with torch.inference_mode():
        (trace,) = traces_of(decoder.model, [decoder.sentence], [decoder.ids], [hypothesis], which)
    owners = tokenizer.word_index(decoder.ids)
    indices = [tuple(index for index, owner in enumerate(owners) if owner == word) for word in range(max(owners) + 1)]
    source = [SourceWord(*each) for each in zip(decoder.sentence.split(), indices, strict=False) if each[1]]
    return Inspection(
        decoder.sentence,
        tuple(decoder.ids),
        tuple(source),
        decoder.model.target_tokenizer.decode(hypothesis.tokens),
        tuple(hypothesis.tokens),
        sum(hypothesis.log_probs),
        hypothesis.score,
        hypothesis.finished,
        UNKNOWN in decoder.ids,
        _words(decoder, hypothesis, count),
        trace,
    )


@torch.inference_mode()
def _words(decoder: SentenceDecoder, hypothesis: Hypothesis, count: int) -> tuple[InspectedWord, ...]:
    tokenizer, last = decoder.model.target_tokenizer, len(hypothesis.tokens)
    tokens, known = _with_end(hypothesis), pieces_of(tokenizer)
    steps = decoder.steps(hypothesis.tokens)
    log_probs = torch.cat([next_log_probs(step) for step in steps]).cpu()
    of_tokens = log_probs[range(len(tokens)), tokens].tolist()
    # A word that may go on is this word only if nothing continues it.
    ends = log_probs.masked_fill(known.inner, -torch.inf).logsumexp(-1).tolist()
    spans = split_tokens(tokenizer, tokens)
    shown = [steps[span.start] for span in spans[:MAX_WORDS]] if count else []
    likeliest = likeliest_words(decoder.decoder, shown, tokenizer, count)
    # The step whose attention is shown for a token predicts it, or is the one after, which reads it.
    later = decoder.model.config.alignment_step == "input"
    words: list[InspectedWord] = []
    for index, span in enumerate(spans):
        pieces = tuple(tokens[span.start : span.stop])
        log_prob = sum(of_tokens[span.start : span.stop]) + (ends[span.stop] if known.open[pieces[-1]] else 0.0)
        step = min(span.start + 1, last) if later else span.start
        others = tuple(likeliest[index]) if index < len(likeliest) else ()
        begins = known.begin[pieces[0]]
        words.append(InspectedWord(known.text(pieces), pieces, span.start, step, begins, math.exp(log_prob), others))
    return tuple(words)


def _with_end(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.tokens, END] if hypothesis.finished else list(hypothesis.tokens)


@dataclass(frozen=True)
class TreeNode(BeamNode):
    """A hypothesis of the search: that of its parent, and one token more."""

    label: str = ""
    """Its last token as a label, such as "accord"; "<s>" for the empty one."""
    begins: bool = False
    """Whether a space stands before that."""


@dataclass(frozen=True)
class SearchTree:
    """All hypotheses of a beam search."""

    sentence: str
    source: Axis
    """The tokens of the source."""
    nodes: tuple[TreeNode, ...]
    """The hypotheses, parents before their children; the first is the empty one."""
    weights: Float[np.ndarray, "r n"]
    """The attention of each step of each hypothesis that was extended."""
    shifted: bool
    """Whether the attention of a token is that of the next step, which reads it."""
    decoder: SentenceDecoder = field(repr=False, metadata=NOT_SENT)
    tree: BeamTree = field(repr=False, metadata=NOT_SENT)

    def text(self, index: int) -> str:
        """The translation so far."""
        return self.decoder.model.target_tokenizer.decode(self.tree.tokens(index))

    def outputs(self) -> list[int]:
        """The indices of the hypotheses that became outputs, best first."""
        ranks = {node.rank: index for index, node in enumerate(self.nodes) if node.rank is not None}
        return [ranks[rank] for rank in sorted(ranks)]

    def trace(self, index: int) -> Trace | None:
        """What a hypothesis attended to at each of its steps; None for a model without attention."""
        tokens, decoder = self.tree.tokens(index), self.decoder
        finished = tokens[-1:] == [END]
        log_probs = [self.nodes[each].log_prob for each in self.tree.path(index)]
        weights = self.tree.attention(index)
        branch = Hypothesis(tokens[:-1] if finished else tokens, log_probs, sum(log_probs), finished, weights)
        return traces_of(decoder.model, [decoder.sentence], [decoder.ids], [branch], "main")[0]


@endpoint("tree", input="sentence", example=SENTENCE)
@torch.inference_mode()
def search_tree(model: Translator, sentence: str, change: Change = UNCHANGED, *, search: Search = SEARCH) -> SearchTree:
    """The beam search as a tree: hypotheses that were extended, pruned or finished, and their attention.
    The sentence has at most 128 tokens.

    Each step has the best 2 x beam extensions of the hypotheses, of which the best `beam` go on; the others are pruned.
    The outputs are the same as without recording.

    Parameters
    ----------
    change
        What is to be different.
    search
        The beam search.
    """
    decoder = SentenceDecoder(model, sentence, change)
    steps: list[BeamStep] = []
    outputs = decoder.search(search, steps)
    tree, known = beam_tree(steps, outputs, end=END), pieces_of(model.target_tokenizer)
    nodes = [
        TreeNode(
            **vars(node),
            label="<s>" if token is None else "</s>" if token == END else model.target_tokenizer.pieces([token])[0],
            begins=token is not None and known.begin[token],
        )
        for node in tree.nodes
        for token in (node.token,)
    ]
    source = Axis("source", "tokens", (*model.source_tokenizer.pieces(decoder.ids[:-1]), "</s>"), text=sentence)
    weights = np.zeros((0, 0), np.float32) if tree.weights is None else tree.weights
    return SearchTree(sentence, source, tuple(nodes), weights, model.config.alignment_step == "input", decoder, tree)


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


@endpoint("compare", input="sentence", example=SENTENCE | {"second_change": {"align": "hard"}})
def compare_models(
    model: Translator,
    second: Translator,
    sentence: str,
    *,
    first_change: Change = UNCHANGED,
    second_change: Change = UNCHANGED,
    search: Search = SEARCH,
) -> Comparison:
    """Two models beside each other, or one with another alignment, with the difference of their attention.
    The sentence has at most 128 tokens.

    What they attend to is compared for the words of the first translation. The models may have different vocabularies:
    maps are compared word by word. Compare models of the same languages; what a model attends to while it is given a
    language that it does not know says nothing. A change makes another model of one:
    `second_change=Change(align="hard")` compares soft with hard attention.

    Parameters
    ----------
    second
        The model to compare with: another one, or the same with a change.
    first_change
        What is to be different about the first model.
    second_change
        What is to be different about the second model.
    search
        The beam search.
    """
    one = inspect(model, sentence, first_change, words=0, search=search)
    other = inspect(second, sentence, second_change, words=0, search=search)
    judged = [*second.target_tokenizer.encode(one.text), END]
    by_second = SentenceDecoder(second, sentence, Change(heads=second_change.heads, align=second_change.align))
    words = tuple(sentence.split()), tuple(one.text.split())
    trace = None
    if model.has_attention and second.has_attention and words[1]:
        models = first_change.apply(model), second_change.apply(second)
        maps = [align_words(each, [words])[0] for each in models]
        trace = _word_trace(*words, {"difference": maps[0] - maps[1], "first": maps[0], "second": maps[1]})
    edits = compare_words([word.text for word in one.words], [word.text for word in other.words])
    return Comparison(one, other, edits, by_second.log_prob(judged), trace)


@dataclass(frozen=True)
class AlignmentComparison:
    """The attention of a model for a sentence pair, beside the reference links (source word, target word)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    """The reference links that are certain."""
    possible: frozenset[Link]
    """The reference links that are at least possible."""
    links: frozenset[Link]
    """Each target word with the source word that it attends to most."""
    error_rate: float
    """The alignment error rate of these."""
    precision: float
    recall: float
    trace: Trace = field(repr=False)
    """The attention from word to word while the model is given the translation."""


def compare_with_gold(model: Translator, gold: GoldAlignment) -> AlignmentComparison:
    """Align a sentence pair by the attention of a model, and compare with the reference links."""
    weights = align_words(model, [(gold.source, gold.target)])[0]
    links = links_from_weights(weights)
    scores = alignment_error_rate([links], [gold.sure], [gold.possible])
    trace = _word_trace(gold.source, gold.target, {"attention": weights})
    measured = scores.error_rate, scores.precision, scores.recall
    return AlignmentComparison(
        gold.source, gold.target, gold.sure, gold.possible, frozenset(links), *measured, trace=trace
    )


@endpoint("gold", example={"direction": "en-fr", "number": 1})
def compare_with_babel(
    model: Translator, direction: str = "en-fr", number: Annotated[int, Meta(ge=0, lt=MAX_EXAMPLES)] = 0
) -> AlignmentComparison:
    """A sentence pair of the world babel, whose reference links are known, beside the attention of a model.

    Parameters
    ----------
    direction
        The languages of the pair, such as en-fr.
    number
        Which of its test sentences, counted from 0.
    """
    return compare_with_gold(model, babel_example(direction, number))


def babel_example(direction: str, number: int = 0, *, max_words: int = 12) -> GoldAlignment:
    """A test sentence of the world babel with its reference links; `direction` is such as "en-fr"."""
    from regard.worlds.babel import pairs

    if not 0 <= number < MAX_EXAMPLES:
        raise OptionError(f"Examples are counted from 0 to {MAX_EXAMPLES - 1}; got {number}.")
    source, target = parse_world(f"babel:{direction}")
    pair = next(islice(pairs(source, target, split="test", max_words=max_words), number, None))
    return GoldAlignment(pair.source, pair.target, pair.sure, pair.possible)


@dataclass(frozen=True)
class AlignedSentences:
    """The words of two sentences, separated by spaces, and the links between them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: frozenset[Link]
    """Pairs of a source word and a target word, counted from 0."""
    trace: Trace = field(repr=False)
    """The attention from word to word."""


@endpoint("align", example={"source": "He is happy .", "target": "Il est heureux ."})
def align_sentences(model: Translator, source: str, target: str, *, threshold: Probability = 0.0) -> AlignedSentences:
    """Link the words of a sentence pair by the attention of a translator; there are none above 1000 tokens.

    Parameters
    ----------
    threshold
        Links with a smaller weight are left out.
    """
    words = source.split(), target.split()
    if not all(words):
        raise OptionError("Both sentences need a word.")
    (pair,) = align_pairs(model, [words], threshold=threshold)
    trace = model.with_attention_quality(Result(trace=pair.trace)).trace
    return AlignedSentences(pair.source, pair.target, pair.links, trace)


def _word_trace(source: Sequence[str], target: Sequence[str], maps: dict[str, WordMap]) -> Trace:
    axes = (
        Axis("source", "words", tuple(source), text=" ".join(source)),
        Axis("target", "words", tuple(target), text=" ".join(target)),
    )
    named = tuple(Map(name, "target", "source", np.asarray(weights)) for name, weights in maps.items())
    return Trace("translation", axes, named)
