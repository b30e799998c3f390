"""DocumentClassifier: hierarchical attention, words to sentences to documents (Yang et al. 2016)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.documents import Document
from regard.data.text import ByteStream, decode_text, read_text, split_sentences
from regard.data.tokenizer import PAD, UNKNOWN, Tokenizer
from regard.errors import DataError, OptionError, counted
from regard.systems.classify.config import ClassificationArguments, ClassificationConfig, ClassificationOptions
from regard.systems.classify.data import DocumentBatch, cut_points
from regard.systems.classify.networks import build_encoder, build_pooling, run_packed
from regard.systems.folder import Labels
from regard.systems.predictor import Result
from regard.systems.system import System
from regard.trace import Axis, Map, Series, Trace

CHARACTERS_PER_WORD = 6
"""About how many characters a word has, its space included: what the cost of a text is estimated by."""


MAX_LISTED = 3
"""Further classes and sentences listed below a label, and words of each sentence."""


@dataclass(frozen=True)
class WordWeight:
    """A word and its attention weight within its sentence."""

    word: str
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {"word": self.word, "weight": self.weight}


@dataclass(frozen=True)
class SentenceWeight:
    """A sentence, its attention weight within the document, and its words."""

    text: str
    weight: float
    words: tuple[WordWeight, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {"text": self.text, "weight": self.weight, "words": [word.to_dict() for word in self.words]}


@dataclass(frozen=True)
class Classification(Result):
    """The class of a document, with the sentences and words that it was decided by."""

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


class ClassifierOutput(NamedTuple):
    """The logits of each document, and the weights in the plain order of words and sentences."""

    logits: Float[Tensor, "b y"]
    word_weights: Float[Tensor, "n"]
    sentence_weights: Float[Tensor, "s"]


class DocumentClassifier(System[str | Document, Classification, ClassificationOptions]):
    """Word BiGRU and word attention give sentence vectors; sentence BiGRU and sentence attention give the document's.

    An input is a text, or a `Document`, which may be split into sentences already. Nothing is padded, so that neither
    longer sentences nor longer documents in a batch change a result.
    """

    kind = "classify"
    names_view = True
    Config = ClassificationConfig
    assets: ClassVar[Mapping[str, Any]] = {"tokenizer": Tokenizer, "labels": Labels}
    config: ClassificationConfig

    def __init__(self, config: ClassificationConfig, tokenizer: Tokenizer, labels: Sequence[str]) -> None:
        super().__init__(config)
        if len(labels) < 2:
            raise OptionError(f"A document classifier needs at least two classes; got {list(labels)!s:.200}.")
        self.tokenizer, self.labels = tokenizer, Labels(labels)
        self.embedding = nn.Embedding(len(tokenizer), config.embedding, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.embedding**-0.5)
        self.word_network, sentence_dim = build_encoder(config, config.embedding)
        self.word_pooling = build_pooling(config, sentence_dim)
        self.sentence_network, dim = build_encoder(config, sentence_dim)
        self.sentence_pooling = build_pooling(config, dim)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(dim if config.read == "states" else sentence_dim, len(labels))

    def forward(
        self,
        batch: DocumentBatch,
        *,
        vectors: Float[Tensor, "n e"] | None = None,
        word_weights: Float[Tensor, "n"] | None = None,
        sentence_weights: Float[Tensor, "s"] | None = None,
    ) -> ClassifierOutput:
        """A logit for each class of each document.

        `vectors` replaces the vectors of the words, in packed order. `word_weights` and `sentence_weights`, in the
        plain order, replace the weights of attention.
        """
        by_sentence, by_document = batch.by_sentence, batch.by_document
        if vectors is None:
            vectors = self.embedding(self._with_hidden_words(batch.words))
        over_words = None if word_weights is None else word_weights[by_sentence.indices]
        over_sentences = None if sentence_weights is None else sentence_weights[by_document.indices]
        states = run_packed(self.word_network, self.dropout(vectors), by_sentence)
        sentences, words = self.word_pooling(states, by_sentence, override=over_words)
        if batch.shared is not None:
            sentences = sentences[batch.shared]
        packed = self.dropout(sentences).index_select(0, by_document.indices)
        states = run_packed(self.sentence_network, packed, by_document)
        values = None if self.config.read == "states" else packed
        documents, shares = self.sentence_pooling(states, by_document, values=values, override=over_sentences)
        logits = self.output(self.dropout(documents))
        return ClassifierOutput(logits, by_sentence.restored(words), by_document.restored(shares))

    classify = System.predict

    def costs(self, inputs: Sequence[str | Document]) -> list[int]:
        """About the number of words of each text."""
        return [1 + len(_document(each).key) // CHARACTERS_PER_WORD for each in inputs]

    def parse(self, line: str, options: ClassificationOptions) -> str | None:
        """A document, which is in one line; a blank line holds none."""
        return line if line.strip() else None

    def read_arguments(
        self,
        given: Sequence[str],
        arguments: ClassificationArguments,
        options: ClassificationOptions,
        pipe: ByteStream,
    ) -> list[str] | None:
        """Texts, whole files, or the standard input as one document, unless each line of it is one."""
        if given and arguments.file:
            raise OptionError("Give texts or files, not both.")
        if arguments.lines and not given and not arguments.file:
            return None
        return list(given) or [read_text(path) for path in arguments.file] or [decode_text(pipe, "The standard input")]

    def as_detail(self, result: Classification, options: ClassificationOptions) -> str:
        """The class, the next ones, and the sentences that carried it, each with its strongest words."""
        lines = [self.as_text(result, options)]
        if others := list(result.probabilities.items())[1 : 1 + MAX_LISTED]:
            lines.append(f"  other classes: {', '.join(f'{label} {probability:.3f}' for label, probability in others)}")
        for sentence in sorted(result.sentences, key=lambda each: -each.weight)[:MAX_LISTED]:
            strongest = sorted(sentence.words, key=lambda each: -each.weight)[:MAX_LISTED]
            words = ", ".join(f"{word.word} {word.weight:.2f}" for word in strongest)
            lines.append(f"  {sentence.weight:.2f}  {sentence.text}  [{words}]")
        return "\n".join(lines) if result.sentences else lines[0]

    def as_text(self, result: Classification, options: ClassificationOptions) -> str:
        """The class and its probability."""
        left_out = f" ({counted(result.sentences_left_out, 'sentence')} not read)" if result.sentences_left_out else ""
        return f"{result.label} {result.probability:.3f}{left_out}"

    def predict_batch(self, inputs: Sequence[str | Document], options: ClassificationOptions) -> list[Classification]:
        """The class of each document of one batch."""
        texts = [self.encode(each) for each in inputs]
        batch = DocumentBatch.from_ids([text.ids for text in texts]).to(self.device)
        output = self(batch)
        rows = output.logits.float().softmax(-1).cpu()
        words, sentences = output.word_weights.cpu().tolist(), output.sentence_weights.cpu().tolist()
        results, word, sentence = [], 0, 0
        for text, row in zip(texts, rows, strict=True):
            order = row.argsort(descending=True, stable=True).tolist()
            probabilities = {self.labels[index]: float(row[index]) for index in order}
            best = self.labels[order[0]]
            parts: tuple[SentenceWeight, ...] = ()
            trace = None
            if options.traces != "none":
                size = sum(map(len, text.ids))
                parts = weighted_sentences(
                    text, words[word : word + size], sentences[sentence : sentence + len(text.ids)]
                )
                trace = document_trace(parts, probabilities, text.left_out)
                word += size
                sentence += len(text.ids)
            results.append(Classification(best, probabilities[best], probabilities, parts, text.left_out, trace=trace))
        return results

    def encode(self, text: str | Document) -> EncodedText:
        """A text as the model reads it: split into sentences, their words, and the ids of these."""
        document = _document(text)
        sentences = [sentence for sentence in self.split(document) if sentence.split()]
        words: list[tuple[str, ...]] = []
        ids: list[tuple[int, ...]] = []
        owners: list[tuple[int, ...]] = []
        for sentence, numbers in zip(sentences, self.tokenizer.encode_batch(sentences), strict=True):
            if not numbers:
                continue
            surface = sentence.split()
            owner = self.tokenizer.word_index(numbers)
            for first, last in cut_points(owner, self.config.max_sentence_words):
                base = owner[first]
                words.append(tuple(surface[base : owner[last - 1] + 1]))
                ids.append(tuple(numbers[first:last]))
                owners.append(tuple(each - base for each in owner[first:last]))
        if not ids:
            raise DataError(f"A document needs at least one word; got {document.key[:60]!r}.")
        limit = self.config.max_sentences or len(ids)
        left_out = max(0, len(ids) - limit)
        return EncodedText(tuple(words[:limit]), tuple(ids[:limit]), tuple(owners[:limit]), left_out)

    def split(self, document: Document) -> Sequence[str]:
        """The sentences of a document; those that it brings along, where it does."""
        return document.sentences or split_sentences(document.text, lines=self.config.split == "lines")

    @torch.inference_mode()
    def probabilities(self, batches: Any) -> Float[Tensor, "n y"]:
        """The probability of each class for each document of some batches, in order, on the CPU."""
        self.check_mode()
        return torch.cat([self(batch.to(self.device)).logits.float().softmax(-1) for batch in batches]).cpu()

    def _with_hidden_words(self, words: Tensor) -> Tensor:
        rate = self.config.word_dropout
        if not (self.training and rate):
            return words
        return words.masked_fill(torch.rand(words.shape, device=words.device) < rate, UNKNOWN)


def _document(text: str | Document) -> Document:
    if isinstance(text, Document):
        return text
    if not isinstance(text, str):
        raise OptionError(f"classify takes a text, a Document, or a list of these; got {type(text).__name__}.")
    return Document(text)


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
