"""What a document classifier learns from: labelled documents, read from their files as they are needed."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Int

from regard.config import Checked, Count, PositiveInt
from regard.data.documents import BadRows, Document, Format, read_documents
from regard.data.public.newsgroups import read_post
from regard.data.splits import HashHoldOut, Splits
from regard.data.tokenizer import INNER_UNKNOWN, UNKNOWN, Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.classify.batch import DocumentBatch
from regard.systems.classify.model import DocumentClassifier, cut_points

ENCODED_AT_ONCE = 512
"""Documents whose texts are in memory at a time while a large file is encoded."""
WORLD_COUNT = 500
"""Documents of the world to evaluate on, where no number is given."""
Posts = Literal["", "whole", "body"]


@dataclass(frozen=True)
class DocumentData(Checked):
    """Which documents to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    train: str = ""
    """Training documents: a CSV, TSV or JSON lines file (also .gz, .xz, .zip), or a folder or tar archive with one
    folder per class, such as aclImdb/train or 20news-bydate.tar.gz/20news-bydate-train."""
    valid: str = ""
    """Documents to validate with; without them, training documents are held out."""
    test: str = ""
    """Documents to test with when training has ended."""
    format: Literal["auto", "csv", "tsv", "jsonl", "folders"] = "auto"
    """Format of the documents; auto decides by the name."""
    columns: tuple[str, str] = ("text", "label")
    """Columns or JSON fields with the text and the label; numbers, counted from 0, in a file without a header line."""
    label_names: tuple[str, ...] = ()
    """Names of the classes, in the order of the labels in the files, where those are mere numbers."""
    posts: Posts = ""
    """News posts: whole restores their lines; body also removes headers, quotations and signatures."""
    skip_bad: bool = False
    """Skip rows that cannot be read, and report them, instead of stopping at the first."""
    world: Literal["", "reviews"] = ""
    """Or a generated world: reviews."""
    examples: PositiveInt = 20_000
    """Number of documents of the world to generate."""
    held_out: PositiveInt = 1000
    """Number of training documents held out for validation, at most a tenth of them."""
    held_out_test: Count = 0
    """Number of training documents held out for testing, where there is no test file."""
    tokens: Literal["word", "bpe"] = "word"
    """Whole words, or subwords."""
    vocabulary: PositiveInt = 20_000
    """Size of the vocabulary."""
    minimum_count: PositiveInt = 2
    """Rarer words are unknown."""
    lowercase: bool = True
    """Convert all text to lower case."""
    vectors: str = ""
    """Word vectors to start from: GloVe or word2vec text, or .npz."""

    def check(self) -> None:
        """Rules between the fields."""
        if self.train and self.world:
            raise OptionError("Give files (train) or a world, not both.")
        if self.vocabulary < 8:
            raise OptionError(f"vocabulary must be 8 or more, for the special tokens; got {self.vocabulary}.")


class Stream:
    """Documents that can be read again and again: each pass opens the files anew, so that none has to be kept."""

    def __init__(self, read: Callable[[], Iterable[Document]], without: frozenset[str] = frozenset()) -> None:
        self._read, self._without = read, without

    def __iter__(self) -> Iterator[Document]:
        return (document for document in self._read() if document.key not in self._without)

    def leaving_out(self, documents: Iterable[Document]) -> "Stream":
        """The stream without these documents and their duplicates."""
        return Stream(self._read, self._without | {document.key for document in documents})


@dataclass(frozen=True)
class DocumentSplits(Splits[Stream, list[Document]]):
    """Documents to train on, to validate with and to test with, and the names of the classes."""

    labels: tuple[str, ...] = ()
    bad: BadRows = field(default_factory=BadRows)


def read_splits(data: DocumentData) -> DocumentSplits:
    """One pass over the training documents, to learn the classes and to choose what is held out."""
    bad = BadRows(data.skip_bad)
    if data.world:
        counts = {"train": data.examples, "valid": data.held_out, "test": data.held_out_test}
        parts = {name: world_documents(name, count) for name, count in counts.items()}
        labels = tuple(sorted({document.label for document in parts["train"]}))
        return DocumentSplits(Stream(lambda: parts["train"]), parts["valid"], parts["test"] or None, labels=labels)
    if not data.train:
        raise OptionError("Say what to train on: --data.train FILE or FOLDER, or --data.world reviews.")
    # Bad rows are counted in the first pass only.
    stream = Stream(lambda: _documents(data, data.train, BadRows(data.skip_bad)))
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


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """Labels in the order of `label_names`: numbers by their value, names by the alphabet."""
    found = set(labels)
    return sorted(found, key=int) if all(map(str.isdecimal, found)) else sorted(found)


def _named(data: DocumentData, splits: DocumentSplits) -> DocumentSplits:
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
        Stream(lambda: (replace(document, label=names[document.label]) for document in train)),
        renamed(splits.valid),
        None if splits.test is None else renamed(splits.test),
        labels=data.label_names,
        bad=splits.bad,
    )


def train_tokenizer(data: DocumentData, documents: Iterable[Document]) -> Tokenizer:
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

    def batch(self, places: Sequence[int]) -> DocumentBatch:
        """These documents as a batch."""
        bounds, starts = self._sentences, self._starts  # type: ignore[attr-defined]
        rows = [self.sentence_lengths[bounds[place] : bounds[place + 1]] for place in places]
        words = [self.words[starts[bounds[place]] : starts[bounds[place + 1]]] for place in places]
        chosen = np.asarray(places)
        return DocumentBatch.from_flat(
            np.concatenate(words), np.concatenate(rows), self.document_lengths[chosen], self.labels[chosen]
        )


def encode_documents(model: DocumentClassifier, documents: Iterable[Document]) -> DocumentIds:
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


def _documents(data: DocumentData, name: str, bad: BadRows) -> Iterator[Document]:
    path = Path(data.folder) / name
    format: Format = data.format
    for document in read_documents(path, format=format, columns=data.columns, bad=bad):
        yield cleaned(document, data.posts)
