"""Classification: the class of a document, with the sentences and words that carried it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.systems.system import Result
from regard.trace import Axis, Map, Series, Trace


@dataclass(frozen=True)
class WordWeight:
    """A word and its attention weight within its sentence."""

    word: str
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"word": self.word, "weight": self.weight}


@dataclass(frozen=True)
class SentenceWeight:
    """A sentence, its attention weight within the document, and its words."""

    text: str
    weight: float
    words: tuple[WordWeight, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"text": self.text, "weight": self.weight, "words": [word.to_dict() for word in self.words]}


@dataclass(frozen=True)
class Classification(Result):
    """The class of a document, with the sentences and words that carried it."""

    label: str
    """The most probable class."""
    probability: float
    probabilities: dict[str, float] = field(repr=False)
    """The probability of each class, the most probable first."""
    sentences: tuple[SentenceWeight, ...] = field(default=(), repr=False)
    """The sentences in order; () where weights were not asked for."""
    sentences_left_out: int = 0
    """Sentences beyond `max_sentences`, which were not read."""


@dataclass(frozen=True)
class EncodedText:
    """A document as its model reads it: the words and ids of each sentence."""

    words: tuple[tuple[str, ...], ...]
    ids: tuple[tuple[int, ...], ...]
    owners: tuple[tuple[int, ...], ...]
    """For each id the word of the sentence that it belongs to: a word may have several ids."""
    left_out: int = 0


def weighted_sentences(
    text: EncodedText, words: Sequence[float], sentences: Sequence[float]
) -> tuple[SentenceWeight, ...]:
    """The sentences with their weights; the weight of a word is the sum over its ids."""
    parts, start = [], 0
    for surface, owners, weight in zip(text.words, text.owners, sentences, strict=True):
        sums = [0.0] * len(surface)
        for owner, share in zip(owners, words[start : start + len(owners)], strict=True):
            sums[owner] += share
        start += len(owners)
        weighted = tuple(WordWeight(word, share) for word, share in zip(surface, sums, strict=True))
        parts.append(SentenceWeight(" ".join(surface), weight, weighted))
    return tuple(parts)


def document_trace(sentences: Sequence[SentenceWeight], probabilities: Mapping[str, float], left_out: int) -> Trace:
    """Sentence weights and word weights as two maps of one row; the series "sentence" says where each word stands."""
    words = [(number, word) for number, sentence in enumerate(sentences) for word in sentence.words]
    label, probability = next(iter(probabilities.items()))
    return Trace(
        "document",
        (
            Axis("label", "classes", (label,)),
            Axis("sentences", "sentences", tuple(sentence.text for sentence in sentences)),
            Axis("words", "words", tuple(word.word for _, word in words)),
        ),
        (
            Map("sentences", "label", "sentences", [[sentence.weight for sentence in sentences]]),
            Map("words", "label", "words", [[word.weight for _, word in words]]),
        ),
        (Series("sentence", "words", [number for number, _ in words]),),
        extras={
            "probability": probability,
            "probabilities": dict(probabilities),
            "sentences_left_out": left_out,
        },
    )
