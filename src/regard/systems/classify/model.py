"""DocumentClassifier: hierarchical attention, words to sentences to documents (Yang et al. 2016)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, overload

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.config import Checked, Count, Fraction, PositiveInt
from regard.data.documents import Document
from regard.data.text import split_sentences
from regard.data.tokenizer import PAD, UNKNOWN, Tokenizer
from regard.errors import DataError, OptionError, counted
from regard.systems.classify.batch import DocumentBatch, Packing
from regard.systems.classify.classification import (
    Classification,
    EncodedText,
    SentenceWeight,
    document_trace,
    weighted_sentences,
)
from regard.systems.classify.config import ClassificationOptions
from regard.systems.classify.pooling import Pool, Pooling
from regard.systems.folder import Labels
from regard.systems.system import System

CHARACTERS_PER_WORD = 6
"""About how many characters a word has, its space included: what the cost of a text is estimated by."""


@dataclass(frozen=True)
class DocumentClassifierConfig(Checked):
    """The parts of a document classifier."""

    pool: Pool = "attention"
    """How words form a sentence and sentences a document: attention, average (HN-AVE) or max (HN-MAX)."""
    embedding: PositiveInt = 100
    """Size of a word's vector."""
    hidden: PositiveInt = 64
    """Units of each direction of both recurrent networks."""
    read: Literal["states", "sentences"] = "states"
    """What sentence attention reads: the states of the sentence network, as in the paper, which also carry what other
    sentences say, or the sentence vectors, so that the weight of a sentence is about this very sentence."""
    attention_dim: Count = 0
    """Size of the attention's hidden layer; 0 for twice `hidden`."""
    dropout: Fraction = 0.3
    """Dropout of word vectors, sentence vectors and the document vector."""
    word_dropout: Fraction = 0.0
    """Probability that a word is hidden in training."""
    split: Literal["sentences", "lines"] = "sentences"
    """What a text is split into: sentences, or its lines."""
    max_sentence_words: PositiveInt = 64
    """Longest sentence in tokens; the rest of a longer one becomes the next sentence, so that nothing is lost."""
    max_sentences: Count = 0
    """Sentences of a document that are read; those after them are left out and counted. 0 for all."""

    def check(self) -> None:
        """Rules between the fields."""
        if self.read == "sentences" and self.pool != "attention":
            raise OptionError(f"read 'sentences' needs attention, which decides what is read; got pool {self.pool!r}.")


class Reading(NamedTuple):
    """The logits of each document, and the weights in the plain order of words and sentences."""

    logits: Float[Tensor, "b y"]
    word_weights: Float[Tensor, "n"]
    sentence_weights: Float[Tensor, "s"]


class DocumentClassifier(System):
    """Word BiGRU and word attention give sentence vectors; sentence BiGRU and sentence attention give the document's.

    Nothing is padded, so that neither longer sentences nor longer documents in a batch change a result.
    """

    kind = "classify"
    Config = DocumentClassifierConfig
    Options = ClassificationOptions
    assets: ClassVar[Mapping[str, Any]] = {"tokenizer": Tokenizer, "labels": Labels}
    config: DocumentClassifierConfig

    def __init__(self, config: DocumentClassifierConfig, tokenizer: Tokenizer, labels: Sequence[str]) -> None:
        super().__init__(config)
        if len(labels) < 2:
            raise OptionError(f"A document classifier needs at least two classes; got {list(labels)!s:.200}.")
        self.tokenizer, self.labels = tokenizer, Labels(labels)
        dim, inner = 2 * config.hidden, config.attention_dim or 2 * config.hidden
        self.embedding = nn.Embedding(len(tokenizer), config.embedding, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.embedding**-0.5)
        self.word_network = _network(config.embedding, config.hidden)
        self.word_pooling = Pooling(config.pool, dim, inner)
        self.sentence_network = _network(dim, config.hidden)
        self.sentence_pooling = Pooling(config.pool, dim, inner)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(dim, len(labels))

    def forward(
        self,
        batch: DocumentBatch,
        *,
        vectors: Float[Tensor, "n e"] | None = None,
        word_weights: Float[Tensor, "n"] | None = None,
        sentence_weights: Float[Tensor, "s"] | None = None,
    ) -> Reading:
        """A logit for each class of each document.

        `vectors` replaces the vectors of the words, in packed order. `word_weights` and `sentence_weights`, in the
        plain order, replace the weights of attention.
        """
        by_sentence, by_document = batch.by_sentence, batch.by_document
        if vectors is None:
            vectors = self.embedding(self._with_hidden_words(batch.words))
        over_words = None if word_weights is None else word_weights[by_sentence.places]
        over_sentences = None if sentence_weights is None else sentence_weights[by_document.places]
        states = _read(self.word_network, self.dropout(vectors), by_sentence)
        sentences, words = self.word_pooling(states, by_sentence.owners, by_sentence.count, override=over_words)
        packed = self.dropout(sentences).index_select(0, by_document.places)
        states = _read(self.sentence_network, packed, by_document)
        values = None if self.config.read == "states" else packed
        documents, shares = self.sentence_pooling(
            states, by_document.owners, by_document.count, values=values, override=over_sentences
        )
        logits = self.output(self.dropout(documents))
        return Reading(logits, by_sentence.restored(words), by_document.restored(shares))

    @overload
    def classify(self, texts: str | Document, **options: Any) -> Classification: ...

    @overload
    def classify(self, texts: Sequence[str | Document], **options: Any) -> list[Classification]: ...

    def classify(self, texts: Any, **options: Any) -> Classification | list[Classification]:
        """Classify a text, or each text of a list; a `Document` may already be split into sentences.

        Options are the fields of `ClassificationOptions`. `stream` does the same for an iterable of any length.
        """
        checked = self.options(options)
        if isinstance(texts, list | tuple):
            return self.answer(texts, checked)
        only: Classification = self.answer([texts], checked)[0]
        return only

    def costs(self, inputs: Sequence[str | Document]) -> list[int]:
        """About the number of words of each text."""
        return [1 + len(_document(each).key) // CHARACTERS_PER_WORD for each in inputs]

    def parse(self, line: str, options: ClassificationOptions) -> str | None:
        """A document, which is in one line; a blank line holds none."""
        return line if line.strip() else None

    def as_text(self, result: Classification, options: ClassificationOptions) -> str:
        """The class and its probability."""
        left_out = f" ({counted(result.sentences_left_out, 'sentence')} not read)" if result.sentences_left_out else ""
        return f"{result.label} {result.probability:.3f}{left_out}"

    def predict(self, inputs: Sequence[str | Document], options: ClassificationOptions) -> list[Classification]:
        """The class of each document of one batch."""
        texts = [self.encode(each) for each in inputs]
        batch = DocumentBatch.from_ids([text.ids for text in texts]).to(self.device)
        reading = self(batch)
        rows = reading.logits.float().softmax(-1).cpu()
        words, sentences = reading.word_weights.cpu().tolist(), reading.sentence_weights.cpu().tolist()
        results, word, sentence = [], 0, 0
        for text, row in zip(texts, rows, strict=True):
            order = row.argsort(descending=True, stable=True).tolist()
            probabilities = {self.labels[place]: float(row[place]) for place in order}
            best = self.labels[order[0]]
            parts: tuple[SentenceWeight, ...] = ()
            trace = None
            if options.weights:
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
        if self.training:
            raise OptionError("This DocumentClassifier is in training mode; call model.eval() first.")
        return torch.cat([self(batch.to(self.device)).logits.float().softmax(-1) for batch in batches]).cpu()

    def _with_hidden_words(self, words: Tensor) -> Tensor:
        rate = self.config.word_dropout
        if not (self.training and rate):
            return words
        return words.masked_fill(torch.rand(words.shape, device=words.device) < rate, UNKNOWN)


def cut_points(owners: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Where to cut a sentence into parts of at most `limit` ids: between words, unless one word is longer than that."""
    cuts, first = [], 0
    while len(owners) - first > limit:
        last = first + limit
        while last > first and owners[last] == owners[last - 1]:
            last -= 1
        last = last if last > first else first + limit
        cuts.append((first, last))
        first = last
    return [*cuts, (first, len(owners))]


def _document(text: str | Document) -> Document:
    if isinstance(text, Document):
        return text
    if not isinstance(text, str):
        raise OptionError(f"classify takes a text, a Document, or a list of these; got {type(text).__name__}.")
    return Document(text)


def _network(inputs: int, hidden: int) -> nn.GRU:
    """A bidirectional GRU with orthogonal recurrent parameters."""
    network = nn.GRU(inputs, hidden, bidirectional=True, batch_first=True)
    for name, parameter in network.named_parameters():
        if "weight_hh" in name:
            for block in parameter.data.split(hidden):
                nn.init.orthogonal_(block)
        elif "weight_ih" in name:
            nn.init.xavier_uniform_(parameter)
        else:
            nn.init.zeros_(parameter)
    return network


def _read(network: nn.GRU, inputs: Float[Tensor, "n d"], packing: Packing) -> Float[Tensor, "n h"]:
    """The states of packed sequences, in packed order."""
    states: Tensor = network(PackedSequence(inputs, packing.rows))[0].data
    return states
