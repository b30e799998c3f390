"""One sentence, decoded along given tokens: searches that begin with them, their score, the likeliest next words."""

import functools
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.config import from_values
from regard.data.batches import pad
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.decoders.protocol import Decoder, Step, select
from regard.decoders.steered import Steered
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.search.beam import BeamNode, BeamStep, BeamTree, beam, beam_tree
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.systems.translate.changes import Change, check_attention
from regard.systems.translate.model import Translator, traces_of
from regard.systems.translate.sentences import MAX_TOKENS
from regard.trace import Trace

UNCHANGED = Change()
WIDTH = 16
"""Unfinished words that are followed at a time."""
MAX_PIECES = 12
"""Pieces after which a word ends."""
_JOINERS = "\u200c\u200d\u00ad"


def checked_search(options: Mapping[str, Any]) -> Search:
    """The options of the search, checked: sampling and text prefixes have no place here."""
    search = from_values(Search, options, "inspection")
    if search.sample or search.prefix is not None:
        raise OptionError("Inspection searches with a beam: use Change(prefix=...) in place of prefix, no sampling.")
    return search


class SentenceDecoder:
    """A sentence as a model reads it, with a change: encoded, and ready to be decoded any number of times."""

    def __init__(self, model: Translator, sentence: str, change: Change = UNCHANGED) -> None:
        model.check_mode()
        self.model, self.sentence, self.change = change.apply(model), sentence, change
        self.ids = [*model.source_tokenizer.encode(sentence), END]
        if len(self.ids) == 1:
            raise OptionError("There is nothing to translate: the sentence has no words.")
        if len(self.ids) > MAX_TOKENS + 1:
            raise OptionError(
                f"A sentence of at most {MAX_TOKENS} tokens can be inspected; this one has {len(self.ids) - 1}. "
                "Inspect its parts."
            )
        if wrong := [token for token in change.prefix if not END <= token < len(model.target_tokenizer)]:
            raise OptionError(
                f"A prefix has tokens of the target vocabulary, {END} to {len(model.target_tokenizer) - 1}; got "
                f"{wrong[0]}."
            )
        if change.attention and not model.has_attention:
            raise OptionError("A plain model has no attention to change.")
        attention = {step: row.to(model.device) for step, row in check_attention(change, len(self.ids)).items()}
        self.decoder: Decoder = Steered(self.model.decoder, attention) if attention else self.model.decoder
        self.encoded = self._encode()

    @torch.inference_mode()
    def _encode(self) -> Encoded:
        padded, lengths = pad([self.ids])
        return self.model.encode(padded.to(self.model.device), lengths)

    @torch.inference_mode()
    def search(self, options: Search, record: list[BeamStep] | None = None) -> list[Hypothesis]:
        """The hypotheses of a beam search, best first; `record` is that of `beam`."""
        prefix, (limit,) = list(self.change.prefix), self.model.length_limits([len(self.ids)], options)
        rules = options.rules(
            start=START,
            end=END,
            banned=(PAD,),
            max_length=limit,
            prefixes=[prefix] if prefix else None,
            limits=[max(limit, len(prefix))],
        )
        state, whole_beam = self.decoder.start(self.encoded), replace(options, nbest=options.beam)
        return beam(self.decoder, state, rules, whole_beam, rows=1, device=self.encoded.states.device, record=record)[0]

    @torch.inference_mode()
    def steps(self, tokens: Sequence[int]) -> list[Step]:
        """The step that predicts each token of a given translation, and the one after the last."""
        state, found = self.decoder.start(self.encoded), []
        for last in (START, *tokens):
            found.append(self.decoder.step(torch.tensor([last], device=self.model.device), state))
            state = found[-1].state
        return found

    @torch.inference_mode()
    def log_prob(self, tokens: Sequence[int]) -> float:
        """The log-probability of a given translation."""
        steps = zip(self.steps(tokens[:-1]), tokens, strict=True) if tokens else ()
        return math.fsum(step.logits[0].float().log_softmax(-1)[token].item() for step, token in steps)


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
    pieces = pieces_of(tokenizer)
    inner = pieces.inner.to(step.logits.device)
    log_probs, state = next_log_probs(step), step.state
    found: list[NextWord] = []
    words: list[tuple[int, ...]] = [()]  # unfinished, one for each row of the state
    for length in range(1, MAX_PIECES + 1):
        begun = log_probs if length == 1 else log_probs.masked_fill(~inner, -torch.inf)
        best, places = begun.flatten().topk(min(width, begun.numel()))
        least = found[count - 1].probability if len(found) >= count else 0.0
        unfinished: list[tuple[int, tuple[int, ...], float]] = []
        for score, place in zip(best.tolist(), places.tolist(), strict=True):
            row, token = divmod(place, begun.shape[1])
            if score == -torch.inf or math.exp(score) <= least:
                break
            if pieces.open[token] and length < MAX_PIECES:
                unfinished.append((row, (*words[row], token), score))
            else:
                found.append(_word(tokenizer, (*words[row], token), score))
        if not unfinished:
            break
        # The step after a piece says how likely the word ends with it.
        device, words = log_probs.device, [tokens for _, tokens, _ in unfinished]
        last = torch.tensor([tokens[-1] for tokens in words], device=device)
        after = decoder.step(last, select(state, torch.tensor([row for row, _, _ in unfinished], device=device)))
        state = after.state
        log_probs = next_log_probs(after) + torch.tensor([[score] for _, _, score in unfinished], device=device)
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


def split_tokens(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[range]:
    """The places of the tokens of each word, where marks and elided articles are words of their own."""
    pieces = pieces_of(tokenizer)
    words: list[range] = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1]
        # After a space that is a piece of its own, a word may also begin with a mark or an unknown piece.
        is_inner = pieces.inner[token] or (not pieces.texts[before] and token > END and not pieces.begin[token])
        if words and is_inner and pieces.open[before]:
            words[-1] = range(words[-1].start, place + 1)
        else:
            words.append(range(place, place + 1))
    return words


def word_text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """The text of a word; "</s>" for the end."""
    if len(tokens) == 1:
        return "</s>" if tokens[0] == END else pieces_of(tokenizer).texts[tokens[0]]
    return tokenizer.decode(tokens)


@dataclass(frozen=True, eq=False)
class Pieces:
    """What is known of each piece of a vocabulary by its number."""

    texts: tuple[str, ...]
    begin: tuple[bool, ...]
    """Whether a space stands before it."""
    inner: Bool[Tensor, "y"]
    """Whether it continues the word before it: it begins with a letter rather than a space or a mark."""
    open: tuple[bool, ...]
    """Whether a word may go on after it: after a letter, or after a space that is a piece of its own."""


@functools.lru_cache(maxsize=8)
def pieces_of(tokenizer: Tokenizer) -> Pieces:
    """What is known of the pieces of a tokenizer, computed once for each."""
    texts = tuple(tokenizer.decode([token]) for token in range(len(tokenizer)))
    begin = tuple(tokenizer.begins_word(token) for token in range(len(tokenizer)))
    inner = [_is_letter(text[:1]) and not begins for text, begins in zip(texts, begin, strict=True)]
    is_open = tuple(_is_letter(text[-1:]) if text else token > END for token, text in enumerate(texts))
    return Pieces(texts, begin, torch.tensor(inner), is_open)


def _word(tokenizer: Tokenizer, tokens: tuple[int, ...], log_prob: float) -> NextWord:
    return NextWord(word_text(tokenizer, tokens), tokens, math.exp(log_prob), pieces_of(tokenizer).begin[tokens[0]])


def _is_letter(character: str) -> bool:
    return bool(character) and (unicodedata.category(character)[0] in "LMN" or character in _JOINERS)


@dataclass(frozen=True)
class SearchTree:
    """All hypotheses of a beam search, with their texts."""

    decoder: SentenceDecoder
    tree: BeamTree

    @property
    def nodes(self) -> tuple[BeamNode, ...]:
        """The hypotheses, parents before their children; the first is the empty one."""
        return self.tree.nodes

    def label(self, place: int) -> str:
        """The last token of a hypothesis as a label, such as "accord"; that of the empty one is "<s>"."""
        token = self.nodes[place].token
        if token is None:
            return "<s>"
        return "</s>" if token == END else self.decoder.model.target_tokenizer.pieces([token])[0]

    def text(self, place: int) -> str:
        """The translation so far."""
        return self.decoder.model.target_tokenizer.decode(self.tree.tokens(place))

    def outputs(self) -> list[int]:
        """The places of the hypotheses that became outputs, best first."""
        ranks = {node.rank: place for place, node in enumerate(self.nodes) if node.rank is not None}
        return [ranks[rank] for rank in sorted(ranks)]

    def trace(self, place: int) -> Trace | None:
        """What a hypothesis attended to at each of its steps; None for a model without attention."""
        tokens = self.tree.tokens(place)
        finished = tokens[-1:] == [END]
        log_probs = [self.nodes[each].log_prob for each in self.tree.path(place)]
        weights = self.tree.attention(place)
        branch = Hypothesis(tokens[:-1] if finished else tokens, log_probs, sum(log_probs), finished, weights)
        decoder = self.decoder
        return traces_of(decoder.model, [decoder.sentence], [decoder.ids], [branch], "main")[0]


@torch.inference_mode()
def search_tree(model: Translator, sentence: str, change: Change = UNCHANGED, **options: Any) -> SearchTree:
    """Search for a translation, and keep every hypothesis that was extended or pruned.

    Each step has the best 2 x beam extensions of the hypotheses, of which the best `beam` go on; the others are pruned.
    `options` are those of the search (beam, max_length, ...), and the outputs are the same as without recording.
    """
    decoder = SentenceDecoder(model, sentence, change)
    steps: list[BeamStep] = []
    outputs = decoder.search(checked_search(options), steps)
    return SearchTree(decoder, beam_tree(steps, outputs, end=END))
