"""The settings of a reader: its parts, options, data, training and test set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt, fields_of
from regard.errors import OptionError
from regard.search.options import Search
from regard.systems.config import Options
from regard.training.settings import TrainSettings

CELLS = ("lstm", "lstmn", "self-attention")
RECURRENT = ("lstm", "lstmn")
_USED_BY: dict[str, tuple[str, tuple[str, ...]]] = {
    "attention_dim": ("cell", ("lstmn",)),
    "span": ("cell", ("lstmn", "self-attention")),
    "attend_to": ("cell", ("self-attention",)),
    "skip": ("cell", RECURRENT),
    "recurrent_dropout": ("cell", RECURRENT),
    "heads": ("cell", ("self-attention",)),
    "feedforward_dim": ("cell", ("self-attention",)),
    "share_embeddings": ("task", ("language-model",)),
    "look_back": ("direction", ("both",)),
    "labels_from": ("task", ("tag",)),
    "pool": ("task", ("classify", "entail")),
    "classifier_dim": ("task", ("classify", "entail")),
    "fusion": ("task", ("entail",)),
}


@dataclass(frozen=True)
class ReadingConfig(Checked):
    """The parts of a reader."""

    task: Literal["language-model", "classify", "entail", "tag"] = "language-model"
    """language-model: predict the next word; classify: label a sentence; entail: label how a second sentence follows
    from a first; tag: label each word."""
    cell: Annotated[str, Names(CELLS)] = "lstmn"
    """lstm (no attention), lstmn (an LSTM that attends to its past, Cheng et al. 2016), self-attention, or a custom
    encoder."""
    score: Annotated[str, Names(("auto",))] = "auto"
    """How well words match, where it may be custom: self-attention, and the fusion shallow or aligned. auto is that of
    the papers: scaled dot products, additive, and dot products."""
    align: Annotated[str, Names(("softmax", "sparsemax"))] = "softmax"
    """How these scores become attention weights."""
    direction: Literal["forward", "both"] = "forward"
    """forward reads from left to right; both also sees the words that follow, which a language model must not."""
    embedding: PositiveInt = 150
    """Features of a word."""
    hidden: PositiveInt = 300
    """Units of a layer, in each direction."""
    layers: PositiveInt = 1
    """Number of layers."""
    skip: bool = False
    """lstm, lstmn: the words enter every layer, not only the first."""
    attention_dim: Count = 0
    """lstmn: units of the attention; 0 for as many as `hidden`."""
    span: Count = 0
    """lstmn, self-attention: how far away a word can attend, in words; 0 for all."""
    attend_to: Literal["states", "words"] = "states"
    """self-attention: what the upper layers attend to: the states of the layer below, as usual, or the words
    themselves, so that the weights say which words were used."""
    heads: PositiveInt = 1
    """self-attention: number of heads."""
    feedforward_dim: Count = 0
    """self-attention: units of the feed-forward networks; 0 for four times `hidden`."""
    look_back: bool = False
    """self-attention, bidirectional: the last layer attends to earlier words only."""
    labels_from: Literal["states", "attended"] = "states"
    """tag: what the label of a word is computed from: its state, or (self-attention) only what it attended to in the
    last layer. With attend_to "words" a label is then a weighted vote of other words."""
    fusion: Literal["none", "shallow", "deep", "aligned"] = "none"
    """entail: how the sentences attend to each other: not at all; the second to the first after it was read (shallow)
    or while it is read (deep, lstmn only); or each to the other, word by word (aligned)."""
    pool: Literal["mean", "max", "last"] = "mean"
    """classify, entail: how the states of a sentence become one vector."""
    classifier_dim: Count = 0
    """classify, entail: units of the layer before the labels; 0 for as many as `hidden`."""
    share_embeddings: bool = False
    """language-model: the output layer uses the embedding of the words."""
    word_dropout: Fraction = 0.0
    """Probability that a word of the vocabulary is dropped from a batch in training."""
    dropout: Fraction = 0.0
    """Dropout of word features, the same for all words of a sentence."""
    layer_dropout: Fraction = 0.0
    """Dropout between layers; self-attention: of every sublayer."""
    recurrent_dropout: Fraction = 0.0
    """lstm, lstmn: dropout of the recurrent parameters (Merity et al. 2018)."""
    output_dropout: Fraction = 0.0
    """Dropout before the output layers."""

    def check(self) -> None:
        """Refuse settings that the task or the cell would ignore, and sizes that do not fit together."""
        defaults = {each.name: each.default for each in fields_of(ReadingConfig)}
        for name, (decider, users) in _USED_BY.items():
            chosen, value = getattr(self, decider), getattr(self, name)
            if chosen not in users and value != defaults[name] and (decider != "cell" or chosen in CELLS):
                raise OptionError(
                    f"{name} is for the {decider} {' or '.join(users)}, and {chosen} would ignore it; got {name} "
                    f"{value!r}. Remove it."
                )
        attends = self.cell not in RECURRENT or self.fusion in ("shallow", "aligned")
        if not attends and (self.score, self.align) != ("auto", "softmax"):
            raise OptionError(
                f"score and align are for the cell self-attention, and for the fusion shallow or aligned; got cell "
                f"{self.cell!r} and fusion {self.fusion!r}. Remove them."
            )
        if self.task == "language-model" and self.direction == "both":
            raise OptionError("A language model reads forward: it must not see the words that it predicts.")
        if self.fusion == "deep" and (self.cell != "lstmn" or self.direction == "both"):
            raise OptionError(
                f"Deep fusion is part of a forward lstmn; got cell {self.cell!r}, direction {self.direction!r}. Use "
                "fusion 'shallow'."
            )
        if (self.labels_from == "attended" or self.look_back) and self.cell != "self-attention":
            raise OptionError(
                f"labels_from 'attended' and look_back are for the cell self-attention; got cell {self.cell!r}."
            )
        if self.cell == "self-attention" and self.hidden % self.heads:
            raise OptionError(f"hidden must be a multiple of heads; got hidden {self.hidden} and heads {self.heads}.")


@dataclass(frozen=True)
class ReadingOptions(Options, Search):
    """Options of `read`: what to report, and how a language model continues a text."""

    generate: bool = False
    """Language models: continue the text, by the search that the other options describe, and read the result."""
    max_length: PositiveInt | None = 60
    """Generated text: maximum number of words after the given ones; none lets the model choose a limit."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        super().check()
        if self.prefix is not None:
            raise OptionError("prefix is the text itself here: read(text, generate=True) continues it.")


@dataclass(frozen=True)
class SentenceFormat(Checked):
    """How sentences are read."""

    format: Literal["auto", "lines", "labelled", "trees", "inference", "tagged"] = "auto"
    """Columns are separated by tabs. lines: plain text; labelled: label and text; trees: Stanford Sentiment Treebank;
    inference: label, premise and hypothesis, or SNLI's JSON lines; tagged: word and tag in each line; auto: as the task
    has."""


@dataclass(frozen=True)
class ReadingData(SentenceFormat):
    """Which sentences to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    train: str = ""
    """Training sentences (plain, .gz, .xz or .zip; the ending may be left out)."""
    valid: str = ""
    """Validation sentences; without them, training sentences are held out."""
    test: str = ""
    """Test sentences, scored when training has ended."""
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
        """Refuse fields that contradict each other."""
        if self.train and self.world:
            raise OptionError("Give a training file or a world, not both.")
        if (self.phrases or self.binary) and self.format != "trees":
            raise OptionError(f"phrases and binary are for the format trees; got {self.format!r}.")


@dataclass(frozen=True)
class ReadingTrain(TrainSettings):
    """How to train a reader."""

    max_tokens: Count = 0
    """Words in a batch, padding included; 0 chooses 512 to 4096 so that an epoch has about 400 batches, and fewer
    where it would have fewer than 20."""
    pad_to: Count = 0
    """Sentences of a batch are padded to a multiple of so many words, so that batches have few shapes, each of which a
    GPU records once; 0 chooses 8 on a GPU, and 1 on a CPU."""
    class_weights: bool = False
    """Weigh each label by the inverse of its frequency, for data that is not balanced as the test is."""
    freeze_words: bool = False
    """Keep the word vectors as they are."""
    state_penalty: NonNegativeFloat = 0.0
    """language-model: weight of the mean square of the features before the output layer (Merity et al. 2018, section
    4.7)."""
    slowness_penalty: NonNegativeFloat = 0.0
    """language-model: weight of the mean square of the difference between neighbouring states (the same section)."""


@dataclass(frozen=True)
class ReadingTest(SentenceFormat):
    """What a reader is evaluated on."""

    file: str = ""
    """Test sentences, in the format of the data that the reader is trained on."""
    world: Literal["", "stories"] = ""
    """Instead of a file, sentences of the generated world stories, where it is known what each word goes back to."""
    count: PositiveInt = 1000
    """Number of sentences of the world."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        if bool(self.file) == bool(self.world):
            raise OptionError("Give a test set: a file, or the world stories.")
