"""The likeliest next words of a decoder: pieces of a vocabulary joined to words, with exact probabilities."""

import functools
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.decoders.protocol import Decoder, Step, select

WIDTH = 16
"""Unfinished words that are followed at a time."""
MAX_PIECES = 12
"""Pieces after which a word ends."""
_JOINERS = "\u200c\u200d\u00ad"


@dataclass(frozen=True)
class NextWord:
    """A word that could come next."""

    text: str
    """The word, "</s>" for the end."""
    tokens: tuple[int, ...]
    """Its pieces: where several ways to write it were found, the likeliest."""
    probability: float
    """Of exactly this word: of its pieces, and of no further piece of the same word after them."""
    begins: bool
    """Whether a space stands before it; otherwise it continues what was written, as a comma or a suffix does."""


def likeliest_words(
    decoder: Decoder, step: Step, tokenizer: Tokenizer, count: int = 5, *, width: int = WIDTH
) -> list[NextWord]:
    """The words that are likeliest to follow a step of a decoder with one row, best first.

    The pieces that may continue a word are followed best first: a word that has begun is at least as likely as any word
    that it can become, so that what is less likely than the words already found need not be followed. At most `width`
    unfinished words are followed at a time. A word that can be written with different pieces counts once.
    """
    inner = continuing(tokenizer).to(step.logits.device)
    log_probs, state = next_log_probs(step), step.state
    found: list[NextWord] = []
    words: list[tuple[int, ...]] = [()]  # unfinished, one for each row of the state
    for pieces in range(1, MAX_PIECES + 1):
        begun = log_probs if pieces == 1 else log_probs.masked_fill(~inner, -torch.inf)
        best, places = begun.flatten().topk(min(width, begun.numel()))
        least = found[count - 1].probability if len(found) >= count else 0.0
        going_on: list[tuple[int, tuple[int, ...], float]] = []
        for score, place in zip(best.tolist(), places.tolist(), strict=True):
            row, token = divmod(place, begun.shape[1])
            if score == -torch.inf or math.exp(score) <= least:
                break
            if is_open(tokenizer, token) and pieces < MAX_PIECES:
                going_on.append((row, (*words[row], token), score))
            else:
                found.append(_word(tokenizer, (*words[row], token), score))
        if not going_on:
            break
        # The step after a piece says how likely the word ends with it.
        device, words = log_probs.device, [tokens for _, tokens, _ in going_on]
        last = torch.tensor([tokens[-1] for tokens in words], device=device)
        after = decoder.step(last, select(state, torch.tensor([row for row, _, _ in going_on], device=device)))
        state = after.state
        log_probs = next_log_probs(after) + torch.tensor([[score] for _, _, score in going_on], device=device)
        ends = log_probs.masked_fill(inner, -torch.inf).logsumexp(1).tolist()
        ended = [_word(tokenizer, tokens, score) for tokens, score in zip(words, ends, strict=True)]
        found = _ranked([*found, *(word for word in ended if word.text)], count)
    return _ranked(found, count)


def _ranked(words: list[NextWord], count: int) -> list[NextWord]:
    """The likeliest words, each in its likeliest spelling."""
    best: dict[tuple[str, bool], NextWord] = {}
    for word in sorted(words, key=lambda word: word.probability, reverse=True):
        best.setdefault((word.text, word.begins), word)
    return list(best.values())[:count]


def next_log_probs(step: Step) -> Float[Tensor, "b y"]:
    """The log-probabilities of the next token, of which no search chooses padding or the start."""
    log_probs = step.logits.float().log_softmax(-1)
    log_probs[:, [PAD, START]] = -torch.inf
    return log_probs


@functools.lru_cache(maxsize=8)
def continuing(tokenizer: Tokenizer) -> Bool[Tensor, "y"]:
    """Which pieces continue the word before them: those that begin with a letter rather than a space or a mark."""
    texts = [tokenizer.decode([token]) for token in range(len(tokenizer))]
    return torch.tensor([_is_letter(text[:1]) and not tokenizer.begins_word(token) for token, text in enumerate(texts)])


def split_tokens(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[range]:
    """The places of the tokens of each word, where marks and elided articles are words of their own."""
    inner = continuing(tokenizer)
    words: list[range] = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1]
        # After a space that is a piece of its own, a word may also begin with a mark or an unknown piece.
        is_inner = inner[token] or (not tokenizer.decode([before]) and token > END and not tokenizer.begins_word(token))
        if words and is_inner and is_open(tokenizer, before):
            words[-1] = range(words[-1].start, place + 1)
        else:
            words.append(range(place, place + 1))
    return words


def word_text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """The text of a word; "</s>" for the end."""
    return "</s>" if tuple(tokens) == (END,) else tokenizer.decode(tokens)


def is_open(tokenizer: Tokenizer, token: int) -> bool:
    """Whether a word may go on after a piece: after a letter, or after a space that is a piece of its own."""
    text = tokenizer.decode([token])
    return _is_letter(text[-1:]) if text else token > END


def _word(tokenizer: Tokenizer, tokens: tuple[int, ...], log_prob: float) -> NextWord:
    return NextWord(word_text(tokenizer, tokens), tokens, math.exp(log_prob), tokenizer.begins_word(tokens[0]))


def _is_letter(character: str) -> bool:
    return bool(character) and (unicodedata.category(character)[0] in "LMN" or character in _JOINERS)
