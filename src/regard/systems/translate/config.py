"""The settings of a translator: its parts, options, data, training and test set."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from cyclopts import Parameter
from msgspec import Meta

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt, fields_of
from regard.errors import OptionError
from regard.search.options import Search
from regard.systems.config import Arguments, Options
from regard.training.settings import TrainSettings

Symmetrize = Literal["mutual", "intersection", "union", "grow-diag", "grow-diag-final-and"]
"""How the maps of two directions become links: by their mean, or by combining the links of each (see metrics)."""
MAX_UNSPLIT_TOKENS = 10_000
"""Tokens of the longest sentence that is decoded as a whole, where texts are not split."""
MAX_SENTENCE_TOKENS = 128
"""Longer sentences are divided before they are translated, and are not inspected."""
MAX_ERASED_TOKENS = 256
"""Faithfulness erases no words of longer sentences: with each of their words in turn, it would take minutes."""
MAX_ALIGNED_TOKENS = 1000
"""Longer sentences are not aligned: attention takes memory that grows with the square of the length."""
RAW = {"split": False}
"""Options of `translate` by which the model reads each text as a whole: for measuring the model itself."""
SCORES = ("additive", "concat", "cosine", "dot", "general", "location", "mlp", "projected", "scaled_dot")
ALIGNMENTS = ("softmax", "hard", "local_bell", "local_m", "local_p", "sparsemax", "uniform")
LOCAL = ("local_bell", "local_m", "local_p")
RECURRENT = ("plain", "rnnsearch", "luong")
_USED_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("hidden", "encoder_hidden", "cell", "bidirectional", "state_dropout", "output_dropout"), RECURRENT
    ),
    **dict.fromkeys(("conditional", "output_state"), ("rnnsearch",)),
    "input_feeding": ("luong", "plain"),
    **dict.fromkeys(("score", "align", "window", "coverage", "max_positions"), ("rnnsearch", "luong")),
    **dict.fromkeys(("decoder_layers", "heads", "feedforward_dim", "prenorm"), ("transformer",)),
    **dict.fromkeys(("alignment_layer", "alignment_head", "alignment_step"), ("transformer",)),
}


@dataclass(frozen=True)
class TranslationConfig(Checked):
    """The parts of a translator."""

    architecture: Literal["plain", "rnnsearch", "luong", "transformer"] = "rnnsearch"
    """plain (no attention), rnnsearch (Bahdanau), luong, or transformer."""
    embedding: PositiveInt = 256
    """Features of a word; of a Transformer, of every layer."""
    hidden: PositiveInt = 256
    """Units of the recurrent layers, in each direction."""
    encoder_hidden: Count = 0
    """Units of the encoder in each direction; 0 for as many as `hidden`. hidden / 2 makes dot products possible
    where the encoder is bidirectional."""
    layers: PositiveInt = 1
    """Layers of encoder and decoder (rnnsearch has one)."""
    decoder_layers: Count = 0
    """transformer: layers of the decoder; 0 for as many as the encoder has. A deep encoder with a shallow decoder
    translates faster (Kasai et al. 2021)."""
    cell: Literal["gru", "lstm"] = "gru"
    """Recurrent cell."""
    bidirectional: bool = True
    """Whether the recurrent encoder also reads backwards."""
    conditional: bool = False
    """rnnsearch: a conditional GRU, which updates its state before and after attending."""
    output_state: Literal["before", "after"] = "before"
    """rnnsearch: the state that predicts a word: that before the step, s_(i-1), as in the paper's appendix, or that
    after it, s_i, as the lectures write it. A conditional GRU always takes the new state."""
    input_feeding: bool = True
    """luong, plain: the vector that predicts a word is an input of the next step."""
    score: Annotated[str, Names(SCORES)] = "additive"
    """How well a source word matches the decoder's state."""
    align: Annotated[str, Names(ALIGNMENTS)] = "softmax"
    """How scores become attention weights; uniform is the control without attention."""
    window: PositiveInt = 10
    """local_m, local_p: how many source positions the window extends to each side; local_bell: twice the standard
    deviation of the Gaussian."""
    coverage: bool = False
    """rnnsearch, luong: the score also sees how much each source word was attended to so far (See et al. 2017)."""
    max_positions: PositiveInt = 200
    """location: number of source positions that the score can tell apart."""
    heads: PositiveInt = 4
    """transformer: number of heads of each attention."""
    feedforward_dim: PositiveInt = 1024
    """transformer: units of the feed-forward networks."""
    prenorm: bool = True
    """transformer: normalise before each sublayer rather than after it."""
    alignment_layer: Count = 0
    """transformer: the layer of the decoder, counted from 1, whose attention to the source is reported and guided; 0
    for the second to last."""
    alignment_head: Count = 0
    """transformer: the head of that layer, counted from 1; 0 for the mean of its heads."""
    alignment_step: Literal["output", "input"] = "output"
    """transformer: whether the attention of a word is that of the step that predicts it, or of the step that reads it,
    when the word is known, which aligns words better (Chen et al. 2020)."""
    dropout: Fraction = 0.2
    """Dropout of word features in training (transformer: of every sublayer)."""
    state_dropout: Fraction = 0.0
    """Dropout of the encoder's states."""
    output_dropout: Fraction = 0.2
    """Dropout before the output layer."""
    share_embeddings: Literal["none", "target", "all"] = "target"
    """Which embeddings are one matrix: none, the target words with the output layer, or all (joint vocabulary)."""
    encoder: Annotated[str, Names(("auto",))] = "auto"
    """The encoder of the architecture, or a custom one."""
    decoder: Annotated[str, Names(("auto",))] = "auto"
    """The decoder of the architecture, or a custom one."""
    split_sentences: bool = False
    """Whether `translate` reads a text sentence by sentence, unless the option `split` says otherwise: for models that
    were trained on single sentences."""

    @property
    def has_custom_networks(self) -> bool:
        """Whether the encoder or the decoder is custom; it may then use any of the fields, in its own way."""
        return self.encoder != "auto" or self.decoder != "auto"

    def check(self) -> None:
        """Refuse settings that the architecture would ignore, and sizes that do not fit together."""
        defaults = {field.name: field.default for field in fields_of(TranslationConfig)}
        custom = self.has_custom_networks
        for name, users in _USED_BY.items():
            if self.architecture not in users and getattr(self, name) != defaults[name] and not custom:
                raise OptionError(
                    f"{name} is for the architecture {' or '.join(users)}, and {self.architecture} would ignore it; "
                    f"got {name} {getattr(self, name)!r}. Remove it."
                )
        is_local = self.align in LOCAL or self.align not in ALIGNMENTS
        if self.window != defaults["window"] and not is_local and not custom:
            raise OptionError(f"window is for align {' or '.join(LOCAL)}; got window {self.window} and {self.align!r}.")
        if self.max_positions != defaults["max_positions"] and self.score in SCORES and self.score != "location":
            raise OptionError(
                f"max_positions is for score 'location'; got max_positions {self.max_positions} and {self.score!r}."
            )
        if self.conditional and self.output_state != "before":
            raise OptionError("A conditional GRU predicts from its new state anyway: remove output_state.")
        if self.architecture == "rnnsearch" and self.layers > 1 and not custom:
            raise OptionError(f"rnnsearch has one layer; got layers {self.layers}. Use architecture 'luong'.")
        if self.architecture == "transformer" and self.embedding % self.heads:
            raise OptionError(
                f"embedding must be a multiple of heads; got embedding {self.embedding} and heads {self.heads}."
            )
        if self.alignment_layer > (self.decoder_layers or self.layers) or self.alignment_head > self.heads:
            raise OptionError(
                "alignment_layer and alignment_head choose one of the decoder's "
                f"{self.decoder_layers or self.layers} layers and {self.heads} heads; got "
                f"{self.alignment_layer} and {self.alignment_head}."
            )
        states = (self.encoder_hidden or self.hidden) * (2 if self.bidirectional else 1)
        is_product = (
            self.architecture in ("rnnsearch", "luong") and self.score in ("cosine", "dot", "scaled_dot") and not custom
        )
        if is_product and states != self.hidden:
            raise OptionError(
                f"score {self.score!r} needs encoder and decoder states of one size; here the encoder has {states} "
                f"features and the decoder {self.hidden}. Use score 'general', or encoder_hidden "
                f"{self.hidden // 2 if self.bidirectional else self.hidden}."
            )


@dataclass(frozen=True)
class TranslationOptions(Options, Search):
    """Options of `translate`: those of the search, and what to report."""

    replace_unknown: bool = False
    """Write the source word that was attended to most in place of an unknown word (Luong et al. 2015); for models of
    whole words."""
    split: bool | None = None
    """Translate a text sentence by sentence and join the translations; length limits then apply to each sentence, and
    addresses stay as they are. None uses the setting of the model."""
    links: bool = False
    """Report which source word each word of the translation attends to most; the command prints it with --json."""
    markup: Literal["", "html", "markdown", "xliff"] = ""
    """Translate whole documents, in which tags stay on the words they belong to and all else stays as it is; empty for
    plain text."""

    def check(self) -> None:
        """Refuse what a document cannot have."""
        super().check()
        if self.markup and (self.nbest > 1 or self.prefix is not None or self.links):
            raise OptionError("A document (markup) has one translation: nbest, prefix and links are for plain text.")

    @property
    def takes_documents(self) -> bool:
        """Whether an input is a document with markup."""
        return bool(self.markup)


@dataclass(frozen=True)
class TranslationArguments(Arguments):
    """What the command takes beside texts."""

    alignments: Annotated[str | None, Parameter(show_default=False)] = None
    """Write to this file, for each translation, a line with the source word that each of its words attends to most:
    0-0 1-2 2-1, as Moses and fast_align write it."""

    def completed(self, options: TranslationOptions) -> TranslationOptions:
        """The options, with word links where they are to be written."""
        return options if self.alignments is None else replace(options, links=True)

    @property
    def line_files(self) -> Mapping[str, str]:
        """The file of word links."""
        return {} if self.alignments is None else {"--alignments": self.alignments}


@dataclass(frozen=True)
class TranslationData(Checked):
    """Which sentence pairs to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    source: str = ""
    """Source sentences, one per line (plain, .gz, .xz or .zip)."""
    target: str = ""
    """Target sentences, line by line parallel to the source."""
    pairs: str = ""
    """Or both in one file: source<TAB>target."""
    columns: tuple[int, int] = (0, 1)
    """The columns of `pairs` that hold source and target, counted from 0."""
    dataset: str = ""
    """Or a Hugging Face dataset: NAME or NAME:CONFIGURATION of the hub, or a file or folder of one."""
    dataset_columns: tuple[str, str] = ("source", "target")
    """The columns of `dataset` that hold source and target, or the languages in its translation column."""
    dataset_split: str = "train"
    """The split of `dataset` to train on."""
    dataset_valid: str = ""
    """Its split to validate with; without one, training pairs are held out."""
    dataset_test: str = ""
    """Its split to test with."""
    world: str = ""
    """Or a generated world and direction: babel:SOURCE-TARGET, such as babel:en-fr."""
    examples: PositiveInt = 50_000
    """Number of pairs of the world to generate."""
    max_words: PositiveInt = 20
    """Longest source sentence of the world, in words."""
    valid_source: str = ""
    """Validation sentences; without them, training pairs are held out."""
    valid_target: str = ""
    """Their translations."""
    held_out: PositiveInt = 1000
    """Number of sentences held out for validation if there are no validation files; at most a tenth of all."""
    test_source: str = ""
    """Test sentences, translated when training has ended."""
    test_target: str = ""
    """Their translations."""
    held_out_test: Count = 0
    """Number of training sentences held out for testing where there are no test files; at most a tenth of all."""
    tokens: Literal["bpe", "word"] = "bpe"
    """Subwords, or whole words."""
    vocabulary: PositiveInt = 8000
    """Size of the vocabulary, of each side or of both."""
    joint: bool = True
    """One vocabulary for both sides."""
    lowercase: bool = False
    """Convert all text to lower case."""
    bpe_dropout: Fraction = 0.0
    """Probability that a merge is left out in training (Provilkov et al. 2020)."""
    byte_fallback: bool = False
    """Spell rare characters in bytes, so that nothing is unknown, not even emoji."""
    split_digits: bool = False
    """Spell numbers digit by digit, so that any number can be copied."""
    copied: Fraction = 0.0
    """Share of the training pairs in which names and numbers that both sides have are replaced by random ones of the
    same shape, which teaches to copy."""
    cased: Fraction = 0.0
    """Share of the training pairs that are read in capitals, and then translated in capitals, or in lower case."""
    max_length: PositiveInt = 200
    """Longest sentence in tokens; longer pairs are left out and counted."""
    alignments: str = ""
    """Word links of the training pairs, line by line, such as `0-0 1-2` (source word - target word, counted from 0),
    that guide the attention. A pair with an empty line is not guided."""
    alignment_words: Literal["spaces", "split"] = "spaces"
    """What the links count as words: what spaces separate; or split, where punctuation, l' and 's are words of their
    own."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        if min(self.columns) < 0 or self.columns[0] == self.columns[1]:
            raise OptionError(f"columns must be two different columns, counted from 0; got {list(self.columns)}.")
        if self.vocabulary < 8:
            raise OptionError(
                f"vocabulary must be 8 or more, for the special tokens alone take 4; got {self.vocabulary}."
            )
        for first, second in (("source", "target"), ("valid_source", "valid_target"), ("test_source", "test_target")):
            if bool(getattr(self, first)) != bool(getattr(self, second)):
                raise OptionError(f"{first} and {second} are two parallel files; give both.")
        if self.copied + self.cased > 1:
            raise OptionError(f"copied and cased are shares of all pairs; got {self.copied} and {self.cased}.")
        if self.tokens != "bpe" and (self.byte_fallback or self.split_digits or self.copied):
            raise OptionError(
                "byte_fallback, split_digits and copied spell words in pieces; got tokens 'word'. Use tokens 'bpe'."
            )
        if self.lowercase and self.cased:
            raise OptionError(f"cased has no effect with lowercase; got cased {self.cased}. Set one of them.")
        if self.world:
            parse_world(self.world)
        if self.alignments and (self.world or self.dataset):
            raise OptionError("alignments are for the files source and target, or for pairs; the world has its own.")


@dataclass(frozen=True)
class TranslationTrain(TrainSettings):
    """How to train a translator."""

    changeable: ClassVar[frozenset[str]] = TrainSettings.changeable | {"workers"}
    label_smoothing: Fraction = 0.1
    max_tokens: Count = 0
    """Tokens in a batch, padding included; 0 chooses 512 to 4096 so that an epoch has about 500 batches, and
    fewer where it would have fewer than 20."""
    pad_to: Count = 0
    """Sentences of a batch are padded to a multiple of so many tokens, so that batches have few shapes, each of which a
    GPU records once; 0 chooses 8 on a GPU, and 1 on a CPU."""
    valid_beam: PositiveInt = 1
    """Beam size of the validations."""
    max_output_length: Count = 0
    """Longest output in tokens when validating and testing; 0 for twice the source and ten more."""
    reinforce_weight: NonNegativeFloat = 1.0
    """hard: weight of the REINFORCE term."""
    entropy_weight: NonNegativeFloat = 0.01
    """hard: weight of the entropy bonus."""
    soft_fraction: Fraction = 0.5
    """hard: fraction of the training, at its beginning, in which attention is soft, so that the first choices are worth
    a reward."""
    coverage_weight: NonNegativeFloat = 0.0
    """coverage: weight of the penalty for attending again to the same words (See et al. 2017, equation 12)."""
    guidance: NonNegativeFloat = 0.0
    """Weight of the loss that pulls the attention towards word links (data.alignments, or those of the world); 0 for
    none. Of a Transformer, it guides what model.alignment_layer and alignment_head choose."""
    workers: Annotated[int, Meta(ge=-1)] = -1
    """Processes that prepare batches; 0 for none, -1 for up to four where a GPU would wait for BPE dropout or links."""


@dataclass(frozen=True)
class TranslationTest(Search):
    """What a translator is evaluated on."""

    source: str = ""
    """File with the test sentences, one per line."""
    reference: str = ""
    """File with their translations, line by line."""
    world: str = ""
    """Instead of files, sentences of the generated world: babel:SOURCE-TARGET, such as babel:en-fr."""
    count: PositiveInt = 500
    """Number of sentences of the world."""
    gold: str = ""
    """File with word links, as JSON lines (src, tgt, sure, possible): adds the alignment error rate."""
    lowercase: bool = False
    """Compare in lower case."""
    prepare: bool = False
    """Split texts into sentences as `translate` does, rather than measure what the model does by itself."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        super().check()
        if bool(self.source) != bool(self.reference):
            raise OptionError("source and reference are two files with as many lines; give both.")
        if self.source and self.world:
            raise OptionError("Give files (source and reference) or a world, not both.")
        if not (self.source or self.world or self.gold):
            raise OptionError("Give the files of a test set (source and reference), or a world such as babel:en-fr.")


def parse_world(world: str) -> tuple[str, str]:
    """The languages of babel:SOURCE-TARGET."""
    from regard.worlds.babel import LANGUAGES

    name, _, direction = world.partition(":")
    source, _, target = direction.partition("-")
    if name != "babel" or source not in LANGUAGES or target not in LANGUAGES or source == target:
        raise OptionError(
            f"world must be babel:SOURCE-TARGET with two of the languages {', '.join(LANGUAGES)}; got {world!r}."
        )
    return source, target
