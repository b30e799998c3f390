"""One sentence, decoded along given tokens: searches that begin with them, their score, the likeliest next words."""

import functools
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.batches import pad
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.decoders.protocol import Decoder, Step, join, select, sizes
from regard.decoders.steered import Steered
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.search.beam import BeamStep, beam
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import DecoderSteps
from regard.systems.translate.changes import UNCHANGED, Change, check_attention
from regard.systems.translate.config import MAX_SENTENCE_TOKENS
from regard.systems.translate.model import Translator

WIDTH = 16
"""Unfinished words that are followed at a time."""
MAX_PIECES = 12
"""Pieces after which a word ends."""
_Unfinished = tuple[int, tuple[int, ...], float]
"""A word that has begun: the position that it is for, its tokens, its log-probability so far."""
_JOINERS = "\u200c\u200d\u00ad"


class SentenceDecoder:
    """A sentence as a model reads it, with a change: encoded, and ready to be decoded any number of times."""

    def __init__(self, model: Translator, sentence: str, change: Change = UNCHANGED) -> None:
        model.check_mode()
        self.model, self.sentence, self.change = change.apply(model), sentence, change
        self.ids = [*model.source_tokenizer.encode(sentence), END]
        if len(self.ids) == 1:
            raise OptionError("There is nothing to translate: the sentence has no words.")
        if len(self.ids) > MAX_SENTENCE_TOKENS + 1:
            raise OptionError(
                f"A sentence of at most {MAX_SENTENCE_TOKENS} tokens can be inspected; this one has "
                f"{len(self.ids) - 1}. Inspect its parts."
            )
        self.check_tokens(change.prefix)
        word = encode_after(model, change.prefix, change.word) if change.word.strip() else ()
        self.prefix = [*change.prefix, *word]
        if change.attention and not model.has_attention:
            raise OptionError("A plain model has no attention to change.")
        attention = {step: row.to(model.device) for step, row in check_attention(change, len(self.ids)).items()}
        self.decoder: Decoder = Steered(self.model.decoder, attention) if attention else self.model.decoder
        self.encoded = self._encode()

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """Refuse tokens that the vocabulary of translations does not have."""
        size = len(self.model.target_tokenizer)
        if wrong := [token for token in tokens if not END <= token < size]:
            raise OptionError(
                f"A translation has tokens of the target vocabulary, {END} to {size - 1}; got {wrong[0]}."
            )

    @torch.inference_mode()
    def _encode(self) -> Encoded:
        padded, lengths = pad([self.ids])
        return self.model.encode(padded.to(self.model.device), lengths)

    @torch.inference_mode()
    def search(self, options: Search, record: list[BeamStep] | None = None) -> list[Hypothesis]:
        """The hypotheses of a beam search, best first; `record` is that of `beam`."""
        if options.sample or options.prefix is not None:
            raise OptionError(
                "Inspection searches with a beam: use Change(prefix=...) in place of prefix, no sampling."
            )
        prefix, (limit,) = self.prefix, self.model.length_limits([len(self.ids)], options)
        rules = options.rules(
            start=START,
            end=END,
            banned=(PAD,),
            max_length=limit,
            prefixes=[prefix] if prefix else None,
            limits=[max(limit, len(prefix))],
        )
        state, whole_beam = self.decoder.start(self.encoded), replace(options, nbest=options.beam)
        steps = DecoderSteps(self.decoder, self.encoded.states.device)
        return beam(steps, state, rules, whole_beam, num_inputs=1, record=record)[0]

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
        """The log-probability of a given translation, in one pass where no attention is replaced."""
        if not tokens:
            return 0.0
        if self.change.attention:
            logits = torch.cat([step.logits for step in self.steps(tokens[:-1])])
        else:
            given = torch.tensor([[START, *tokens[:-1]]], device=self.model.device)
            logits = self.decoder.output(self.decoder(self.encoded, given).features)[0]
        log_probs = logits.float().log_softmax(-1).cpu()
        return math.fsum(log_probs[range(len(tokens)), list(tokens)].tolist())


def encode_after(model: Translator, before: Sequence[int], text: str) -> tuple[int, ...]:
    """The tokens of a text that continues a sentence: without a space where it is a mark or follows an elision."""
    tokenizer = model.target_tokenizer
    tokens = tokenizer.encode(text)
    last = tokenizer.decode(before[-1:])
    if not last or not (last.endswith(("'", "\u2019")) or not any(map(str.isalnum, text))):
        return tuple(tokens)
    # No merge crosses the boundary between them, so that the tokens of both are those of each.
    both = tokenizer.encode(f"{last}{text.strip()}")
    cut = next((size for size in range(1, len(both)) if tokenizer.decode(both[:size]) == last), 0)
    return tuple(both[cut:] if cut else tokens)


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
    written: tuple[str, ...]
    """Each piece with the space before it, where it has one."""

    def text(self, tokens: Sequence[int]) -> str:
        """The text of a word; "</s>" for the end."""
        return " ".join("".join(map(self.written.__getitem__, tokens)).split())


@functools.lru_cache(maxsize=8)
def pieces_of(tokenizer: Tokenizer) -> Pieces:
    """What is known of the pieces of a tokenizer, computed once for each."""
    texts = tuple(tokenizer.decode([token]) for token in range(len(tokenizer)))
    begin = tuple(tokenizer.begins_word(token) for token in range(len(tokenizer)))
    inner = [_is_letter(text[:1]) and not begins for text, begins in zip(texts, begin, strict=True)]
    is_open = tuple(_is_letter(text[-1:]) if text else token > END for token, text in enumerate(texts))
    written = [" " * begins + text for begins, text in zip(begin, texts, strict=True)]
    written[END] = "</s>"
    return Pieces(texts, begin, torch.tensor(inner), is_open, tuple(written))


def _is_letter(character: str) -> bool:
    return bool(character) and (unicodedata.category(character)[0] in "LMN" or character in _JOINERS)


def likeliest_words(
    decoder: Decoder, steps: Sequence[Step], tokenizer: Tokenizer, count: int = 5, *, width: int = WIDTH
) -> list[list[NextWord]]:
    """For each of these steps with one row, the words that are likeliest to follow it, best first.

    The pieces that may continue a word are followed best first: a word that has begun is at least as likely as any word
    that it can become, so that what is less likely than the words already found need not be followed. At most `width`
    unfinished words are followed at a time. A word that can be written with different pieces counts once. Steps whose
    states have the same sizes are followed together.
    """
    pieces = pieces_of(tokenizer)
    if len(steps) > 1 and sizes(steps[0].state) != sizes(steps[-1].state):
        return [likeliest_words(decoder, [step], tokenizer, count, width=width)[0] for step in steps]
    found: list[list[NextWord]] = [[] for _ in steps]
    if not steps:
        return found
    log_probs, state = torch.cat([next_log_probs(step) for step in steps]), join([step.state for step in steps])
    device, inner = log_probs.device, pieces.inner.to(log_probs.device)
    rows: list[_Unfinished] = [(index, (), 0.0) for index in range(len(steps))]
    for length in range(1, MAX_PIECES + 1):
        longer: list[_Unfinished] = []
        ended: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in steps]
        parents: list[int] = []
        for index, first, begun in _by_position(rows, log_probs):
            best, chosen = begun.flatten().topk(min(width, begun.numel()))
            least = found[index][count - 1].probability if len(found[index]) >= count else 0.0
            for score, at in zip(best.tolist(), chosen.tolist(), strict=True):
                row, token = divmod(at, begun.shape[1])
                if score == -torch.inf or math.exp(score) <= least:
                    break
                tokens = (*rows[first + row][1], token)
                if pieces.open[token] and length < MAX_PIECES:
                    longer.append((index, tokens, score))
                    parents.append(first + row)
                else:
                    ended[index].append((score, tokens))
        if not longer:
            return [_ranked(*words, pieces, count) for words in zip(found, ended, strict=True)]
        # The step after a piece says how likely the word ends with it.
        rows = longer
        last = torch.tensor([tokens[-1] for _, tokens, _ in rows], device=device)
        after = decoder.step(last, select(state, torch.tensor(parents, device=device)))
        state = after.state
        log_probs = next_log_probs(after) + torch.tensor([[score] for _, _, score in rows], device=device)
        ends = log_probs.masked_fill(inner, -torch.inf).logsumexp(1).tolist()
        log_probs = log_probs.masked_fill(~inner, -torch.inf)
        for (index, tokens, _), score in zip(rows, ends, strict=True):
            ended[index].append((score, tokens))
        found = [_ranked(*words, pieces, count) for words in zip(found, ended, strict=True)]
    return found


def _by_position(rows: Sequence[_Unfinished], log_probs: Tensor) -> list[tuple[int, int, Tensor]]:
    """For each position its first row, and the log-probabilities of its rows, which stand together."""
    indices = [index for index, _, _ in rows]
    firsts = [row for row, index in enumerate(indices) if not row or indices[row - 1] != index]
    blocks = log_probs.tensor_split(firsts[1:])
    return [(indices[first], first, block) for first, block in zip(firsts, blocks, strict=True)]


def _ranked(
    found: Sequence[NextWord], ended: Sequence[tuple[float, tuple[int, ...]]], pieces: Pieces, count: int
) -> list[NextWord]:
    """The likeliest of the words found so far and of those that have ended, each in its likeliest spelling."""
    least = found[-1].probability if len(found) == count else 0.0
    new: set[tuple[str, bool]] = set()
    best = list(found)
    for score, tokens in sorted(ended, reverse=True):
        if len(new) == count or math.exp(score) <= least:
            break
        if text := pieces.text(tokens):
            best.append(NextWord(text, tokens, math.exp(score), pieces.begin[tokens[0]]))
            new.add((text, best[-1].begins))
    spelled: dict[tuple[str, bool], NextWord] = {}
    for word in sorted(best, key=attrgetter("probability"), reverse=True):
        spelled.setdefault((word.text, word.begins), word)
    return list(spelled.values())[:count]


def next_log_probs(step: Step) -> Float[Tensor, "b y"]:
    """The log-probabilities of the next token, of which no search chooses padding or the start."""
    log_probs = step.logits.float().log_softmax(-1)
    log_probs[:, [PAD, START]] = -torch.inf
    return log_probs


def split_tokens(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[range]:
    """The positions of the tokens of each word, where marks and elided articles are words of their own."""
    pieces = pieces_of(tokenizer)
    words: list[range] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1]
        # After a space that is a piece of its own, a word may also begin with a mark or an unknown piece.
        is_inner = pieces.inner[token] or (not pieces.texts[before] and token > END and not pieces.begin[token])
        if words and is_inner and pieces.open[before]:
            words[-1] = range(words[-1].start, index + 1)
        else:
            words.append(range(index, index + 1))
    return words
