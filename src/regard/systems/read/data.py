"""What a reader learns from: plain text, labelled sentences, pairs of sentences, tagged words, or a generated world."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from regard.config import Checked, Count, PositiveInt
from regard.data.labelled_sentences import read_inference, read_labelled, read_tagged, read_trees
from regard.data.public.datasets import hint_for
from regard.data.splits import HashHoldOut, Splits
from regard.data.text import read_lines
from regard.data.vocabulary import Vocabulary, split_words
from regard.errors import DataError, OptionError

Format = Literal["auto", "lines", "labelled", "trees", "inference", "tagged"]
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


@dataclass(frozen=True)
class Example:
    """Sentences as words, and what is to be said of them."""

    sentences: tuple[tuple[str, ...], ...]
    """One sentence; for inference, the premise and the hypothesis."""
    labels: tuple[str, ...] = ()
    """One label; of tagged words, one for each; none for language models."""


ReadingSplits = Splits[list[Example], list[Example]]


@dataclass(frozen=True)
class ReadingData(Checked):
    """Which sentences to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    train: str = ""
    """Training sentences (plain, .gz, .xz or .zip; the ending may be left out)."""
    valid: str = ""
    """Validation sentences; without them, training sentences are held out."""
    test: str = ""
    """Test sentences, scored when training has ended."""
    format: Format = "auto"
    """Columns are separated by tabs. lines: plain text; labelled: label and text; trees: Stanford Sentiment Treebank;
    inference: label, premise and hypothesis, or SNLI's JSON lines; tagged: word and tag in each line; auto: as the task
    has."""
    world: Literal["", "stories"] = ""
    """Or a generated world; stories is for the task tag."""
    examples: PositiveInt = 30_000
    """Number of sentences of the world to generate."""
    held_out: PositiveInt = 1000
    """Number of training sentences held out for validation where there is no validation file."""
    held_out_test: Count = 0
    """Number of training sentences held out for testing where there is no test file."""
    split: Literal["words", "spaces"] = "words"
    """How text is split: words separates punctuation and contractions, spaces takes the text as it is split already."""
    lowercase: bool = False
    """Convert all text to lower case."""
    vocabulary: Count = 0
    """Size of the vocabulary; 0 for all words."""
    minimum_count: PositiveInt = 1
    """Words that occur fewer times are unknown."""
    max_words: PositiveInt = 200
    """Longest training sentence in words; longer ones are left out and counted."""
    phrases: bool = False
    """trees: learn from every labelled phrase, not only from whole sentences."""
    binary: bool = False
    """trees: negative and positive only; neutral sentences and phrases are left out."""
    vectors: str = ""
    """Word vectors to start from, such as GloVe: a text file, or an .npz archive (vectors, words)."""

    def check(self) -> None:
        """Rules between the fields."""
        if self.train and self.world:
            raise OptionError("Give a training file or a world, not both.")
        if (self.phrases or self.binary) and self.format != "trees":
            raise OptionError(f"phrases and binary are for the format trees; got {self.format!r}.")


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
    cut = split or (str.split if data.split == "spaces" else split_words)
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
