"""What a reader learns from: plain text, labelled sentences, pairs of sentences, tagged words, or a generated world."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batches import ON_CPU, Movable, pad, round_up
from regard.data.labelled_sentences import read_inference, read_labelled, read_tagged, read_trees
from regard.data.public.datasets import hint_for
from regard.data.splits import HashHoldOut, Splits
from regard.data.text import read_lines
from regard.data.vocabulary import Vocabulary, treebank_words
from regard.errors import DataError, OptionError
from regard.systems.read.config import ReadingData

FORMATS: dict[str, tuple[str, ...]] = {
    "language-model": ("lines",),
    "classify": ("labelled", "trees"),
    "entail": ("inference",),
    "tag": ("tagged",),
}
"""The formats of each task; the first is its default."""
COMPRESSIONS = ("", ".gz", ".xz", ".zip")
SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
"""The labels 0 to 4 of the Stanford Sentiment Treebank."""
IGNORED = -1
"""The target of padding."""


@dataclass(frozen=True)
class Example:
    """Sentences as words, and the labels to predict for them."""

    sentences: tuple[tuple[str, ...], ...]
    """One sentence; for inference, the premise and the hypothesis."""
    labels: tuple[str, ...] = ()
    """One label; of tagged words, one for each; none for language models."""


ReadingSplits = Splits[list[Example], list[Example]]


@dataclass(frozen=True, eq=False)
class ReadingBatch(Movable):
    """Padded sentences and the labels to predict."""

    sentences: tuple[Int[Tensor, "b _"], ...]
    lengths: tuple[Int[Tensor, "b"], ...] = field(metadata=ON_CPU)
    targets: Int[Tensor, "b ..."] | None
    """One label per sentence, (b,), or per word, (b, n); None for language models."""

    def __len__(self) -> int:
        return len(self.sentences[0])


class Examples:
    """Examples as ids, kept in memory: indexable, with `sizes` for CostBatches, and collated to a ReadingBatch."""

    def __init__(
        self,
        examples: Sequence[Example],
        vocabulary: Vocabulary,
        labels: Sequence[str],
        *,
        per_word: bool,
        multiple: int = 1,
    ) -> None:
        """Sentences of a batch are padded to a multiple of `multiple` words."""
        self.per_word, self.multiple = per_word, multiple
        numbers = {label: number for number, label in enumerate(labels)}
        unknown = {label for example in examples for label in example.labels} - numbers.keys()
        # Validation sentences may have tags that the training sentences do not have; nobody can predict them.
        self._targets = [[numbers.get(label, IGNORED) for label in example.labels] for example in examples]
        if unknown and not per_word:
            raise DataError(f"Labels must occur in the training data; {sorted(unknown)[0]!r} does not.")
        self._ids = [
            tuple(np.array(vocabulary.encode(words), dtype=np.int32) for words in example.sentences)
            for example in examples
        ]
        lengths = np.array([[len(each) for each in sides] for sides in self._ids], dtype=np.int64)
        self.sizes = round_up(lengths, multiple) + 1
        self.counts = Counter(number for targets in self._targets for number in targets)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> tuple[tuple[np.ndarray, ...], list[int]]:
        return self._ids[index], self._targets[index]

    def collate(self, examples: Sequence[tuple[tuple[np.ndarray, ...], list[int]]]) -> ReadingBatch:
        """Pad examples to a batch."""
        sides = [pad(rows, multiple=self.multiple) for rows in zip(*(ids for ids, _ in examples), strict=True)]
        sentences, lengths = zip(*sides, strict=True)
        targets = [targets for _, targets in examples]
        if not targets[0]:
            return ReadingBatch(sentences, lengths, None)
        if not self.per_word:
            return ReadingBatch(sentences, lengths, torch.tensor([first for first, *_ in targets]))
        return ReadingBatch(sentences, lengths, pad(targets, value=IGNORED, multiple=self.multiple)[0])


def read_splits(data: ReadingData, task: str, direction: str) -> ReadingSplits:
    """Sentences to train on, to validate with and to test with."""
    if data.world:
        return _world(data, task, direction)
    if not data.train:
        raise OptionError("Say what to train on: --data.train FILE, or --data.world stories.")
    train = list(read_examples(_file(data, data.train), task, data, phrases=data.phrases))
    valid, test = (
        list(read_examples(_file(data, name), task, data)) if name else None for name in (data.valid, data.test)
    )
    held = HashHoldOut.from_items(
        train,
        lambda example: repr(example.sentences),
        valid=data.held_out if valid is None else 0,
        test=data.held_out_test if test is None else 0,
    )
    held_valid, held_test = held.held_out(name="sentences")
    without = {example.sentences for example in (*held_valid, *held_test)}
    kept = [example for example in train if example.sentences not in without]
    if not kept:
        raise DataError(f"There is nothing to train on in {data.train}.")
    test = (held_test or None) if test is None else test
    return Splits(kept, held_valid if valid is None else valid, test)


def read_examples(
    path: str | Path,
    task: str,
    data: ReadingData,
    *,
    phrases: bool = False,
    split: Callable[[str], list[str]] | None = None,
) -> Iterator[Example]:
    """The examples of a file, in the format of the data or else of the task; sentences without words are left out.

    Text is split by `split` or, by default, as the data says.
    """
    chosen = FORMATS[task][0] if data.format == "auto" else data.format
    if chosen not in FORMATS[task]:
        raise OptionError(f"The task {task} reads the format {' or '.join(FORMATS[task])}; got format {chosen!r}.")
    cut = split or (str.split if data.split == "spaces" else treebank_words)
    found: Iterable[Example]
    match chosen:
        case "lines":
            found = (Example((tuple(cut(line)),)) for line in read_lines(path))
        case "labelled":
            found = (Example((tuple(cut(each.texts[0])),), (each.label,)) for each in read_labelled(path))
        case "inference":
            pairs = read_inference(path)
            found = (Example((tuple(cut(each.texts[0])), tuple(cut(each.texts[1]))), (each.label,)) for each in pairs)
        case "tagged":
            found = (Example((words,), tags) for words, tags in read_tagged(path))
        case _:
            found = _trees(path, phrases=phrases, binary=data.binary)
    return (example for example in found if all(example.sentences))


def build_vocabulary(data: ReadingData, examples: Sequence[Example]) -> Vocabulary:
    """The words of the training sentences."""
    return Vocabulary.build(
        (words for example in examples for words in example.sentences),
        size=data.vocabulary,
        minimum_count=data.minimum_count,
        lowercase=data.lowercase,
    )


def labels_of(examples: Iterable[Example]) -> list[str]:
    """The labels that occur, sorted; sentiments from the most negative on."""
    found = {label for example in examples for label in example.labels}
    order = {label: number for number, label in enumerate(SENTIMENTS)}
    return sorted(found, key=lambda label: (order.get(label, len(order)), label))


def world_examples(split: str, count: int, direction: str, *, seed: int = 0) -> list[Example]:
    """Sentences of the world stories, with the tags that a reader of this direction can know."""
    from regard.worlds.stories import stories

    both = direction == "both"
    drawn = islice(stories(split=split, seed=seed), count)
    return [Example((story.words,), story.tags("both" if both else "forward")) for story in drawn]


def _world(data: ReadingData, task: str, direction: str) -> ReadingSplits:
    if task != "tag":
        raise OptionError(f"The world stories is for the task tag; got task {task!r}.")
    counts = {"train": data.examples, "valid": data.held_out, "test": data.held_out_test}
    train, valid, test = (world_examples(split, count, direction) for split, count in counts.items())
    return Splits(train, valid, test or None)


def _trees(path: str | Path, *, phrases: bool, binary: bool) -> Iterator[Example]:
    """Sentences of a treebank, or its phrases, each once."""
    seen: set[Example] = set()
    for tree in read_trees(path):
        for node in tree.phrases() if phrases else (tree,):
            if binary and node.label == "2":
                continue
            example = Example((node.words,), (_sentiment(node.label, binary),))
            if not phrases or example not in seen:
                yield example
            if phrases:
                seen.add(example)


def _sentiment(label: str, binary: bool) -> str:
    if label not in ("0", "1", "2", "3", "4"):
        return label
    if binary:
        return "negative" if label in "01" else "positive"
    return SENTIMENTS[int(label)]


def _file(data: ReadingData, name: str) -> Path:
    """The file of this name, or of this name with another compression."""
    plain = name
    for ending in COMPRESSIONS[1:]:
        plain = plain.removesuffix(ending)
    for candidate in (name, *(plain + ending for ending in COMPRESSIONS)):
        if (path := Path(data.folder) / candidate).is_file():
            return path
    raise DataError(f"There is no file {Path(data.folder) / name}. {hint_for(name)}".rstrip())
