"""The settings of a document classifier: its parts, options, data, training and test set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.config import Checked, Count, Fraction, Names, PositiveInt, parse_numbers
from regard.errors import OptionError
from regard.systems.config import Arguments, Options
from regard.training.settings import TrainSettings

Pool = Literal["attention", "average", "max"]


@dataclass(frozen=True)
class ClassificationConfig(Checked):
    """The parts of a document classifier."""

    pool: Pool = "attention"
    """How words form a sentence and sentences a document: attention, average (HN-AVE) or max (HN-MAX)."""
    score: Annotated[str, Names(("context",))] = "context"
    """attention: how well a state matches a learned vector: u_i' u, u_i = tanh(W h_i + b), or a custom score."""
    align: Annotated[str, Names(("softmax", "sparsemax"))] = "softmax"
    """attention: how scores become attention weights."""
    encoder: Annotated[str, Names(("gru",))] = "gru"
    """What reads the words of a sentence, and the sentences of a document: a bidirectional GRU, or a custom encoder."""
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
        """Refuse fields that contradict each other."""
        if self.read == "sentences" and self.pool != "attention":
            raise OptionError(f"read 'sentences' needs attention, which decides what is read; got pool {self.pool!r}.")
        if self.pool != "attention" and (self.score, self.align) != ("context", "softmax"):
            raise OptionError(f"score and align are for pool attention; got pool {self.pool!r}. Remove them.")


@dataclass(frozen=True)
class ClassificationOptions(Options):
    """Options of `classify`: what to report; without traces, only the label and the probabilities."""


@dataclass(frozen=True)
class ClassificationArguments(Arguments):
    """What the command takes beside texts."""

    file: Annotated[tuple[str, ...], Parameter(alias="-f", negative="", consume_multiple=True, show_default=False)] = ()
    """Text files to classify, each of them one document; with --input, each line of a file is one."""
    lines: Annotated[bool, Parameter(negative="", show_default=False)] = False
    """Each line of the standard input is a document."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The documents."""
        return self.file


Posts = Literal["", "whole", "body"]


@dataclass(frozen=True)
class DocumentFormat(Checked):
    """How documents are read."""

    format: Literal["auto", "csv", "tsv", "jsonl", "folders"] = "auto"
    """Format of the documents; auto decides by the name."""
    columns: tuple[str, str] = ("text", "label")
    """Columns or JSON fields with the text and the label; numbers, counted from 0, in a file without a header line."""
    posts: Posts = ""
    """News posts: whole restores their lines; body also removes headers, quotations and signatures."""
    skip_bad: bool = False
    """Skip rows that cannot be read, and report them, instead of stopping at the first."""


@dataclass(frozen=True)
class ClassificationData(DocumentFormat):
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
    label_names: tuple[str, ...] = ()
    """Names of the classes, in the order of the labels in the files, where those are mere numbers."""
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
        """Refuse fields that contradict each other."""
        if self.train and self.world:
            raise OptionError("Give files (train) or a world, not both.")
        if self.vocabulary < 8:
            raise OptionError(f"vocabulary must be 8 or more, for the special tokens; got {self.vocabulary}.")


@dataclass(frozen=True)
class ClassificationTrain(TrainSettings):
    """How to train a document classifier."""

    max_words: PositiveInt = 16_384
    """Words in a batch, at most; documents of similar length go together."""
    batch_size: Count = 0
    """Documents in a batch, at most; 0 chooses 64, or fewer where an epoch would have fewer than 20 batches."""
    class_weights: str = ""
    """Weights of classes in the loss, such as positive=3,negative=0.5; other classes weigh 1."""
    balance_classes: bool = False
    """Weigh the classes so that rare ones count as much as frequent ones."""
    freeze_vectors: bool = False
    """Keep the word vectors that training starts from."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        super().check()
        if self.class_weights and self.balance_classes:
            raise OptionError("Give class_weights or balance_classes, not both.")
        parse_numbers("class_weights", self.class_weights, such_as="positive=3,negative=0.5")


@dataclass(frozen=True)
class ClassificationTest(DocumentFormat):
    """What a document classifier is evaluated on."""

    documents: str = ""
    """File (CSV, TSV or JSON lines, also compressed), or folder or tar archive with one folder per class."""
    world: str = ""
    """Instead of files, documents of the generated world: reviews."""
    split: Literal["test", "valid"] = "test"
    """Split of the world: test, or valid to compare settings."""
    count: Count = 0
    """Number of documents; 0 for all of a file, and for 500 of the world."""
    faithfulness: Count = 0
    """Number of documents, evenly spaced in the test set, on which to measure whether the attention explains the
    predictions; 0 for none."""
    rationales: bool = False
    """Compare the attention with the words that people marked (JSON lines with rationale_token_spans)."""
    shuffles: PositiveInt = 100
    """Shuffles of the permutation test."""
    word: str = ""
    """Show how the weight of this word is distributed in the documents of each class (Yang et al. 2016, Figure 3)."""
    figure: str = ""
    """Save the distributions of `word` as a figure here (.png, .svg, .pdf)."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        if bool(self.documents) == bool(self.world):
            raise OptionError("Give the test documents (documents), or the world: reviews.")
        if self.world not in ("", "reviews"):
            raise OptionError(f"world must be reviews; got {self.world!r}.")
        if self.figure and not self.word:
            raise OptionError("--figure shows the weights of a word: give it as --word WORD.")
