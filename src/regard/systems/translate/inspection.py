"""Looking inside one translation, and changing it.

    found = inspect(model, "The agreement was signed.")       # its words, with the likeliest others at each step
    change = force_word(model, found, 1, "traité")             # or move_attention, or Change(heads=("cross 2.1",))
    again = decode_again(model, found.source, change)          # what follows from it, beside the original

A sentence is read as the model reads it: `sentences` gives those of a text. Whole texts, names and capitals are the
business of `Translator.translate`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

import torch

from regard.data.tokenizer import END, UNKNOWN
from regard.errors import OptionError, counted
from regard.search.hypothesis import Hypothesis
from regard.systems.translate.changes import Change
from regard.systems.translate.forced import (
    UNCHANGED,
    NextWord,
    SentenceDecoder,
    checked_search,
    likeliest_words,
    next_log_probs,
    pieces_of,
    split_tokens,
    word_text,
)
from regard.systems.translate.model import Translator, traces_of
from regard.systems.translate.sentences import split
from regard.trace import Trace

MAX_WORDS = 64
"""Words of a translation, the first ones, for which the likeliest others are found."""


@dataclass(frozen=True)
class InspectedWord:
    """A word of a translation, and what else could have stood in its place."""

    text: str
    tokens: tuple[int, ...]
    first: int
    """The step that predicts its first token."""
    probability: float
    """Of exactly this word after the words before it."""
    likeliest: tuple[NextWord, ...]
    """The likeliest words at this place, best first; none after the first MAX_WORDS words."""


@dataclass(frozen=True)
class Inspection:
    """One translation with everything that can be asked about it."""

    source: str
    """The sentence."""
    source_tokens: tuple[int, ...]
    """Its tokens, that of the end included."""
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
    words: tuple[InspectedWord, ...]
    """Its words; the last one is the end, "</s>", where it has one."""
    trace: Trace | None = field(repr=False)
    """What was attended to; None for a model without attention."""

    @property
    def unknown(self) -> bool:
        """Whether the sentence has a piece that the vocabulary does not know."""
        return UNKNOWN in self.source_tokens


@dataclass(frozen=True)
class WordEdit:
    """A run of words that stayed, went or came."""

    kind: Literal["same", "removed", "added"]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Redecoded:
    """A translation after a change, beside the original."""

    before: Inspection
    after: Inspection
    edits: tuple[WordEdit, ...]
    """How the words of the first become those of the second."""
    before_under_change: float
    """The log-probability of the original translation with the change. A forced beginning changes no probability."""
    after_unchanged: float
    """The log-probability of the new translation by the model as it is."""


def sentences(model: Translator, text: str) -> list[str]:
    """The sentences of a text as the model reads them one by one; none where the text has no words."""
    tokenizer = model.source_tokenizer
    return [part.given for part in split(text, tokenizer, by_sentence=model.config.split_sentences, copy=True)]


def inspect(
    model: Translator, sentence: str, change: Change = UNCHANGED, *, count: int = 5, **options: Any
) -> Inspection:
    """Translate a sentence by beam search, with the `count` likeliest words at each step; 0 for none, which is faster.

    `options` are those of the search (beam, max_length, length_penalty, ...). The translation equals that of
    `model.translate(sentence, split=False, copy_unknown=False, recase=False)` where nothing is changed.
    """
    decoder = SentenceDecoder(model, sentence, change)
    return _inspection(decoder, decoder.search(checked_search(options))[0], count)


def decode_again(model: Translator, sentence: str, change: Change, *, count: int = 5, **options: Any) -> Redecoded:
    """Translate a sentence with and without a change, and compare words and log-probabilities.

    The new translation has the `count` likeliest words at each step; the original one has none, which `inspect` has.
    """
    search = checked_search(options)
    plain, changed = SentenceDecoder(model, sentence), SentenceDecoder(model, sentence, change)
    before = _inspection(plain, plain.search(search)[0], 0)
    after = _inspection(changed, changed.search(search)[0], count)
    return Redecoded(
        before,
        after,
        word_edits([word.text for word in before.words], [word.text for word in after.words]),
        changed.log_prob(_with_end(before.tokens, before.finished)),
        plain.log_prob(_with_end(after.tokens, after.finished)),
    )


def force_word(model: Translator, found: Inspection, position: int, word: str | Sequence[int]) -> Change:
    """The change by which a translation has another word at a position, and is decoded again from there.

    `position` counts `found.words` from 0; `word` is a text, or the tokens of a `NextWord`. A text begins a new word
    unless it is a punctuation mark, or follows an elided article (l').
    """
    if not 0 <= position < len(found.words):
        raise OptionError(
            f"The translation has {counted(len(found.words), 'word')}, counted from 0; got position {position}."
        )
    before = found.tokens[: found.words[position].first]
    tokens = tuple(word) if not isinstance(word, str) else encode_after(model, before, word)
    if not tokens or END in tokens[:-1]:
        raise OptionError(f"There is no word to force in {word!r}.")
    return Change(prefix=(*before, *tokens))


def move_attention(model: Translator, found: Inspection, position: int, weights: Mapping[int, float]) -> Change:
    """The change by which the step of a word attends elsewhere, and the translation is decoded again from there.

    `position` counts `found.words` from 0. `weights` has the weight of source words, counted from 0 in
    `found.source.split()`; they are divided by their sum, and each is spread evenly over the tokens of its word. With
    alignment_step "input", the attention of a word is that of the step after it, which then changes the next word.
    """
    if not 0 <= position < len(found.words):
        raise OptionError(
            f"The translation has {counted(len(found.words), 'word')}, counted from 0; got position {position}."
        )
    total = sum(weights.values())
    if total <= 0 or min(weights.values()) < 0:
        raise OptionError(f"The weights must be 0 or more, and one of them above 0; got {dict(weights)}.")
    owners = model.source_tokenizer.word_index(found.source_tokens)
    if wrong := [word for word in weights if word not in owners]:
        raise OptionError(f"The sentence has {counted(max(owners) + 1, 'word')}, counted from 0; got word {wrong[0]}.")
    row = [weights.get(owner, 0.0) / total / owners.count(owner) for owner in owners]
    step = shown_step(model, found.words[position].first, len(found.tokens))
    return Change(prefix=found.tokens[:step], attention={step: row})


def shown_step(model: Translator, token: int, last: int) -> int:
    """The step whose attention is shown for a token: the one that predicts it, or the one after, which reads it."""
    return token if model.config.alignment_step == "output" else min(token + 1, last)


def encode_after(model: Translator, before: Sequence[int], text: str) -> tuple[int, ...]:
    """The tokens of a text that goes on after others: without a space where it is a mark or follows an elision."""
    tokenizer = model.target_tokenizer
    tokens = tokenizer.encode(text)
    last = tokenizer.decode(before[-1:])
    if not last or not (last.endswith(("'", "\u2019")) or not any(map(str.isalnum, text))):
        return tuple(tokens)
    # No merge crosses the boundary between them, so that the tokens of both are those of each.
    both = tokenizer.encode(f"{last}{text.strip()}")
    cut = next((size for size in range(1, len(both)) if tokenizer.decode(both[:size]) == last), 0)
    return tuple(both[cut:] if cut else tokens)


def word_edits(before: Sequence[str], after: Sequence[str]) -> tuple[WordEdit, ...]:
    """How a sequence of words becomes another, by the longest runs that stay."""
    edits: list[WordEdit] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            edits.append(WordEdit("same", tuple(before[a:b])))
            continue
        if b > a:
            edits.append(WordEdit("removed", tuple(before[a:b])))
        if d > c:
            edits.append(WordEdit("added", tuple(after[c:d])))
    return tuple(edits)


def _inspection(decoder: SentenceDecoder, hypothesis: Hypothesis, count: int) -> Inspection:
    # The maps of all heads come from teacher forcing, in which no attention is replaced.
    which = "main" if decoder.change.attention else "all"
    with torch.inference_mode():
        (trace,) = traces_of(decoder.model, [decoder.sentence], [decoder.ids], [hypothesis], which)
    return Inspection(
        decoder.sentence,
        tuple(decoder.ids),
        decoder.model.target_tokenizer.decode(hypothesis.tokens),
        tuple(hypothesis.tokens),
        sum(hypothesis.log_probs),
        hypothesis.score,
        hypothesis.finished,
        _words(decoder, hypothesis, count),
        trace,
    )


@torch.inference_mode()
def _words(decoder: SentenceDecoder, hypothesis: Hypothesis, count: int) -> tuple[InspectedWord, ...]:
    tokenizer = decoder.model.target_tokenizer
    tokens = _with_end(hypothesis.tokens, hypothesis.finished)
    steps = decoder.steps(hypothesis.tokens)
    known = pieces_of(tokenizer)
    inner = known.inner.to(decoder.model.device)
    words: list[InspectedWord] = []
    for span in split_tokens(tokenizer, tokens):
        pieces = tuple(tokens[place] for place in span)
        log_prob = sum(next_log_probs(steps[place])[0, tokens[place]].item() for place in span)
        if known.open[pieces[-1]]:  # it is this word only if nothing continues it
            after = next_log_probs(steps[span.stop])[0]
            log_prob += after.masked_fill(inner, -torch.inf).logsumexp(0).item()
        num_words = count if len(words) < MAX_WORDS else 0
        likeliest = likeliest_words(decoder.decoder, steps[span.start], tokenizer, num_words) if num_words else ()
        text = word_text(tokenizer, pieces)
        words.append(InspectedWord(text, pieces, span.start, math.exp(log_prob), tuple(likeliest)))
    return tuple(words)


def _with_end(tokens: Sequence[int], finished: bool) -> list[int]:
    return [*tokens, END] if finished else list(tokens)
