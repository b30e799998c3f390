"""What a document classifier learns from: labelled documents, read from their files as they are needed."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batches import ON_CPU, Movable
from regard.data.documents import BadRows, Document, Format, read_documents
from regard.data.public.newsgroups import read_post
from regard.data.splits import HashHoldOut, Splits, Stream
from regard.data.tokenizer import INNER_UNKNOWN, UNKNOWN, Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.classify.config import ClassificationData, Posts

if TYPE_CHECKING:
    from regard.systems.classify.model import DocumentClassifier

ENCODED_AT_ONCE = 512
"""Documents whose texts are in memory at a time while a large file is encoded."""
WORLD_COUNT = 500
"""Documents of the world to evaluate on, where no number is given."""
EncodedDocument = Sequence[Sequence[int]]
"""The ids of the words of each sentence."""


@dataclass(frozen=True)
class Packing(Movable):
    """The order in which a recurrent network reads sequences of different lengths, the longest first.

    Position by position: all first elements, then all second elements, and so on, as in torch's PackedSequence.
    """

    indices: Int[Tensor, "n"]
    """For each packed element its index in the plain order, one sequence after the other."""
    owners: Int[Tensor, "n"]
    """For each packed element the number of its sequence."""
    rows: Int[Tensor, "t"] = field(metadata=ON_CPU)
    """How many sequences have a t-th element; the network needs it on the CPU."""
    count: int
    """Number of sequences."""

    @classmethod
    def from_lengths(cls, lengths: Int[np.ndarray, "s"]) -> "Packing":
        """Pack sequences of these lengths."""
        lengths = np.asarray(lengths, dtype=np.int64)
        if not len(lengths) or lengths.min() < 1:
            raise DataError("Only sequences with at least one element can be packed.")
        starts = np.cumsum(lengths) - lengths
        order = np.argsort(-lengths, kind="stable")
        owners = np.repeat(np.arange(len(lengths)), lengths)
        steps = np.arange(int(lengths.sum())) - starts[owners]
        ranks = np.empty(len(lengths), dtype=np.int64)
        ranks[order] = np.arange(len(lengths))
        indices = np.lexsort((ranks[owners], steps))
        rows = np.bincount(steps)
        return cls(torch.from_numpy(indices), torch.from_numpy(owners[indices]), torch.from_numpy(rows), len(lengths))

    def restored(self, packed: Tensor) -> Tensor:
        """Packed numbers in the plain order."""
        return torch.empty_like(packed).index_copy(0, self.indices, packed)


@dataclass(frozen=True)
class DocumentBatch(Movable):
    """Documents as one stream of words, with how words form sentences and sentences form documents."""

    words: Int[Tensor, "n"]
    """Ids of the words in packed order."""
    by_sentence: Packing
    """The words of each sentence."""
    by_document: Packing
    """The sentences of each document."""
    labels: Int[Tensor, "b"] | None = None
    shared: Int[Tensor, "s"] | None = None
    """For each sentence of the documents, which of `by_sentence` it is, where documents share sentences."""

    def __len__(self) -> int:
        return self.by_document.count

    @classmethod
    def from_ids(cls, documents: Sequence[EncodedDocument], labels: Sequence[int] | None = None) -> "DocumentBatch":
        """Pack documents, given as the ids of their sentences."""
        sentences = [sentence for document in documents for sentence in document]
        if not all(len(document) for document in documents) or not sentences:
            raise DataError("Every document of a batch needs at least one sentence with a word.")
        flat = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in sentences])
        return cls.from_flat(
            flat,
            np.array([len(sentence) for sentence in sentences]),
            np.array([len(document) for document in documents]),
            None if labels is None else np.asarray(labels, dtype=np.int64),
        )

    @classmethod
    def sharing(cls, documents: Sequence[EncodedDocument]) -> "DocumentBatch":
        """Pack documents that have many sentences in common, each of which is read once."""
        numbers: dict[tuple[int, ...], int] = {}
        indices = [numbers.setdefault(tuple(each), len(numbers)) for document in documents for each in document]
        batch = cls.from_ids([list(numbers)])
        by_document = Packing.from_lengths(np.array([len(document) for document in documents]))
        return replace(batch, by_document=by_document, shared=torch.tensor(indices))

    @classmethod
    def from_flat(
        cls,
        words: Int[np.ndarray, "n"],
        sentence_lengths: Int[np.ndarray, "s"],
        document_lengths: Int[np.ndarray, "b"],
        labels: Int[np.ndarray, "b"] | None = None,
    ) -> "DocumentBatch":
        """Pack documents, given as one array of ids, the words of each sentence and the sentences of each document."""
        by_sentence = Packing.from_lengths(sentence_lengths)
        packed = torch.from_numpy(np.asarray(words, dtype=np.int64))[by_sentence.indices]
        return cls(
            packed,
            by_sentence,
            Packing.from_lengths(document_lengths),
            None if labels is None else torch.from_numpy(np.asarray(labels, dtype=np.int64)),
        )

    def to(self, device: torch.device | str, *, non_blocking: bool = True) -> "DocumentBatch":
        """Move it to a device; to a GPU from page-locked memory, without waiting for the work that is pending there."""
        on_cpu = torch.device(device).type == "cuda" and not self.words.is_cuda
        return Movable.to(self.pin_memory() if on_cpu else self, device, non_blocking=non_blocking)


@dataclass(frozen=True)
class DocumentSplits(Splits[Stream[Document], list[Document]]):
    """Documents to train on, to validate with and to test with, and the names of the classes."""

    labels: tuple[str, ...] = ()
    bad: BadRows = field(default_factory=BadRows)


def read_splits(data: ClassificationData) -> DocumentSplits:
    """One pass over the training documents, to learn the classes and to choose what is held out."""
    bad = BadRows(data.skip_bad)
    if data.world:
        counts = {"train": data.examples, "valid": data.held_out, "test": data.held_out_test}
        parts = {name: world_documents(name, count) for name, count in counts.items()}
        labels = tuple(sorted({document.label for document in parts["train"]}))
        return DocumentSplits(_stream(lambda: parts["train"]), parts["valid"], parts["test"] or None, labels=labels)
    if not data.train:
        raise OptionError("Say what to train on: --data.train FILE or FOLDER, or --data.world reviews.")
    # Bad rows are counted in the first pass only.
    stream = _stream(lambda: _documents(data, data.train, BadRows(data.skip_bad)))
    valid, test = (list(_documents(data, name, bad)) if name else None for name in (data.valid, data.test))
    held: HashHoldOut[Document] = HashHoldOut(
        lambda document: document.key,
        valid=data.held_out if valid is None else 0,
        test=data.held_out_test if test is None else 0,
    )
    found_labels = set()
    for document in _documents(data, data.train, bad):
        found_labels.add(document.label)
        held.add(document)
    if not held.count:
        raise DataError(f"There is nothing to train on: {data.train} holds no documents.")
    held_valid, held_test = held.held_out(name="documents")
    given = {"valid": valid, "test": test}
    for part, documents in given.items():
        if unknown := sorted({document.label for document in documents or ()} - found_labels):
            raise DataError(f"The {part} documents have the classes {unknown}, which no training document has.")
    if bad.count:
        sys.stderr.write(f"{bad}\n")
    return _named(
        data,
        DocumentSplits(
            stream.leaving_out([*held_test, *held_valid]),
            held_valid if valid is None else valid,
            (held_test or None) if test is None else test,
            labels=tuple(sorted_labels(found_labels)),
            bad=bad,
        ),
    )


def _stream(read: Callable[[], Iterable[Document]]) -> Stream[Document]:
    return Stream(read, lambda document: document.key)


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """Labels in the order of `label_names`: numbers by their value, names by the alphabet."""
    found = set(labels)
    return sorted(found, key=int) if all(map(str.isdecimal, found)) else sorted(found)


def _named(data: ClassificationData, splits: DocumentSplits) -> DocumentSplits:
    """The splits with the names of the classes in place of the labels in the files."""
    if not data.label_names:
        return splits
    if len(data.label_names) != len(splits.labels):
        raise OptionError(
            f"label_names has {len(data.label_names)} names for {len(splits.labels)} classes: "
            f"{', '.join(splits.labels[:12])}."
        )
    names = dict(zip(splits.labels, data.label_names, strict=True))

    def renamed(documents: Iterable[Document]) -> list[Document]:
        return [replace(document, label=names[document.label]) for document in documents]

    train = splits.train
    return DocumentSplits(
        _stream(lambda: (replace(document, label=names[document.label]) for document in train)),
        renamed(splits.valid),
        None if splits.test is None else renamed(splits.test),
        labels=data.label_names,
        bad=splits.bad,
    )


def train_tokenizer(data: ClassificationData, documents: Iterable[Document]) -> Tokenizer:
    """A tokenizer trained on the training documents."""
    texts = (text for document in documents for text in (document.sentences or (document.text,)))
    return Tokenizer.train(
        texts, size=data.vocabulary, kind=data.tokens, lowercase=data.lowercase, minimum_count=data.minimum_count
    )


@dataclass(frozen=True)
class DocumentIds:
    """Documents as ids in three flat arrays, a few bytes per word, whatever the number of documents."""

    words: Int[np.ndarray, "n"]
    sentence_lengths: Int[np.ndarray, "s"]
    document_lengths: Int[np.ndarray, "b"]
    labels: Int[np.ndarray, "b"]
    left_out: int = 0
    """Documents that were cut at max_sentences."""
    unknown_percent: float = 0.0
    """Share of the words that are unknown."""

    def __post_init__(self) -> None:
        sentences = np.concatenate([[0], np.cumsum(self.document_lengths)])
        words = np.concatenate([[0], np.cumsum(self.sentence_lengths)])
        object.__setattr__(self, "_sentences", sentences)
        object.__setattr__(self, "_starts", words)
        object.__setattr__(self, "sizes", np.diff(words[sentences]))

    sizes: Int[np.ndarray, "b"] = field(init=False, repr=False)
    """Words of each document."""

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Sequence[int]) -> DocumentBatch:
        """These documents as a batch."""
        bounds, starts = self._sentences, self._starts  # type: ignore[attr-defined]
        rows = [self.sentence_lengths[bounds[index] : bounds[index + 1]] for index in indices]
        words = [self.words[starts[bounds[index]] : starts[bounds[index + 1]]] for index in indices]
        chosen = np.asarray(indices)
        return DocumentBatch.from_flat(
            np.concatenate(words), np.concatenate(rows), self.document_lengths[chosen], self.labels[chosen]
        )


def encode_documents(model: "DocumentClassifier", documents: Iterable[Document]) -> DocumentIds:
    """Split and tokenize documents, some at a time."""
    config, labels = model.config, {label: number for number, label in enumerate(model.labels)}
    words: list[np.ndarray] = []
    lengths: list[int] = []
    counts: list[int] = []
    classes: list[int] = []
    left_out = 0
    waiting = iter(documents)
    while group := list(islice(waiting, ENCODED_AT_ONCE)):
        split = [[each for each in model.split(document) if each.split()] for document in group]
        ids = iter(model.tokenizer.encode_batch([sentence for sentences in split for sentence in sentences]))
        for document, sentences in zip(group, split, strict=True):
            parts: list[Sequence[int]] = []
            for numbers in islice(ids, len(sentences)):
                if len(numbers) <= config.max_sentence_words:
                    parts += [numbers] if numbers else []
                    continue
                owners = model.tokenizer.word_index(numbers)
                cuts = cut_points(owners, config.max_sentence_words)
                parts += [numbers[first:last] for first, last in cuts]
            if not parts:
                raise DataError(f"A document needs at least one word; got {document.key[:60]!r}.")
            if document.label not in labels:
                raise DataError(f"The model knows the classes {list(model.labels)}; got {document.label!r}.")
            left_out += bool(config.max_sentences and len(parts) > config.max_sentences)
            parts = parts[: config.max_sentences or len(parts)]
            words.append(np.fromiter((number for part in parts for number in part), dtype=np.int32))
            lengths += map(len, parts)
            counts.append(len(parts))
            classes.append(labels[document.label])
    if not counts:
        raise DataError("There are no documents.")
    unknown = (UNKNOWN, INNER_UNKNOWN) if model.tokenizer.kind == "word" else (UNKNOWN,)
    flat = np.concatenate(words)
    percent = 100 * float(np.isin(flat, unknown).mean())
    return DocumentIds(flat, np.array(lengths), np.array(counts), np.array(classes), left_out, percent)


def world_documents(split: str, count: int) -> list[Document]:
    """Documents of the world reviews."""
    from regard.worlds.reviews import reviews

    return [
        Document(label=review.label, sentences=tuple(" ".join(sentence) for sentence in review.sentences))
        for review in islice(reviews(split), count)
    ]


def cleaned(document: Document, posts: Posts) -> Document:
    """A news post with its lines restored, or reduced to what its author wrote."""
    if not posts or not document.text:
        return document
    if posts == "body":
        return replace(document, text=" ".join(read_post(document.text).body) or "(empty)")
    # In one published copy of the 20 newsgroups, every line end has become a tab.
    text = document.text if "\n" in document.text.strip() else document.text.replace("\t", "\n")
    return replace(document, text=text)


def _documents(data: ClassificationData, name: str, bad: BadRows) -> Iterator[Document]:
    path = Path(data.folder) / name
    format: Format = data.format
    for document in read_documents(path, format=format, columns=data.columns, bad=bad):
        yield cleaned(document, data.posts)


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
