"""Reader: a machine that reads a sentence word by word, with or without attention to what it has read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, overload

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batches import pad
from regard.data.text import ByteStream, well_formed
from regard.data.tokenizer import END, PAD, START, UNKNOWN
from regard.data.vocabulary import Vocabulary, join_words, treebank_words
from regard.encoders.readers import Sentences
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis
from regard.search.search import search
from regard.systems.folder import Labels
from regard.systems.predictor import Result, batches_by_cost
from regard.systems.read.assembly import Predictions, build_network
from regard.systems.read.config import ReadingConfig, ReadingOptions
from regard.systems.system import System
from regard.trace import Axis, Map, Series, Trace

ReadingInput = str | tuple[str, str]
"""A sentence or, for inference, a premise and a hypothesis."""
DEFAULT_LENGTH = 60
"""Maximum number of generated words where the options name no limit."""


@dataclass(frozen=True)
class Reading(Result):
    """A sentence as it was read."""

    text: str
    words: tuple[str, ...] = field(repr=False)
    unknown: tuple[str, ...] = field(default=(), repr=False)
    """Those of the words that the vocabulary does not have: each is read as any unknown word."""
    premise: str | None = None
    """Inference: the sentence that this one was compared with."""
    surprisals: tuple[float, ...] = field(default=(), repr=False)
    """Language models: -log2 p of each word given those before it, in bits."""
    perplexity: float | None = None
    """Language models: 2 to the mean surprisal of the words and of the end of the sentence."""
    label: str | None = None
    """Classifiers: the most probable label."""
    probabilities: dict[str, float] = field(default_factory=dict, repr=False)
    """Classifiers: the probability of each label."""
    tags: tuple[str, ...] = field(default=(), repr=False)
    """Taggers: the most probable label of each word."""
    score: float | None = None
    """Generated text: mean log-probability of a word, or what else the search ranked by."""
    alternatives: tuple["Reading", ...] = field(default=(), repr=False)
    """Generated text: the next best, or further samples, where `nbest` asked for them."""

    def line(self, *, generated: bool) -> str:
        """The text if it was generated; or else surprisals, tags or the label, as far as there are any."""
        if generated:
            return self.text
        if self.surprisals:
            marked = (f"{word}(unknown)" if word in self.unknown else word for word in self.words)
            words = (f"{word}/{bits:.1f}" for word, bits in zip(marked, self.surprisals, strict=True))
            return f"{self.perplexity:.1f}\t{' '.join(words)}"
        if self.tags:
            return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))
        return "" if self.label is None else f"{self.label}\t{self.probabilities[self.label]:.3f}\t{self.text}"


class Classes(Labels):
    """The labels of a classifier or tagger, none for a language model: an asset, stored as a JSON list."""

    __slots__ = ()
    min_count = 0


class Reader(System[ReadingInput, Reading, ReadingOptions]):
    """A reader of one task, its vocabulary and its labels.

    An input is a sentence; for inference it is a (premise, hypothesis).
    """

    kind = "read"
    Config = ReadingConfig
    json_input = "pair"
    assets: ClassVar[Mapping[str, Any]] = {"vocabulary": Vocabulary, "labels": Classes}
    config: ReadingConfig

    def __init__(self, config: ReadingConfig, vocabulary: Vocabulary, labels: Sequence[str] = ()) -> None:
        super().__init__(config)
        if bool(labels) == (config.task == "language-model"):
            raise OptionError(f"A reader with task {config.task!r} has {'no' if labels else 'some'} labels.")
        self.vocabulary, self.labels = vocabulary, Classes(labels)
        self.network = build_network(config, len(vocabulary), len(labels))

    read = System.predict

    @classmethod
    def is_one(cls, given: Any) -> bool:
        """Whether this is one sentence, or one pair of sentences, which is a tuple."""
        return isinstance(given, tuple) or super().is_one(given)

    @overload
    def generate(self, texts: str = "", **options: Any) -> Reading: ...

    @overload
    def generate(self, texts: list[str], **options: Any) -> list[Reading]: ...

    def generate(self, texts: Any = "", **options: Any) -> Reading | list[Reading]:
        """Continue a text, or each text of a list; "" begins a sentence. Only for language models."""
        found: Reading | list[Reading] = self.read(texts, generate=True, **options)
        return found

    def costs(self, inputs: Sequence[ReadingInput]) -> list[int]:
        """The number of words and the end of the sentence; of a pair, of its longer side."""
        return [max(len(side.split()) for side in _sides(text)) + 1 for text in inputs]

    def parse(self, line: str, options: ReadingOptions) -> ReadingInput | None:
        """A sentence, or premise<TAB>hypothesis; a blank line holds none, but a text may be generated from nothing."""
        if self.config.task != "entail":
            return line if line.strip() or options.generate else None
        premise, tab, hypothesis = line.partition("\t")
        if line.strip() and not tab:
            raise OptionError(f"A line should be premise<TAB>hypothesis; got {line[:60]!r}.")
        return (premise, hypothesis) if tab else None

    def read_arguments(
        self, given: Sequence[str], arguments: Any, options: ReadingOptions, pipe: ByteStream
    ) -> list[Any] | None:
        """Sentences, or for inference one pair of them; a text may be generated from nothing."""
        if self.config.task == "entail" and given:
            if len(given) != 2:
                raise OptionError(f"This reader compares two sentences, PREMISE HYPOTHESIS; got {len(given)}.")
            return [tuple(given)]
        return super().read_arguments(given or [""] * options.generate, arguments, options, pipe)

    def as_text(self, result: Reading, options: ReadingOptions) -> str:
        """A line for the reading and for each alternative."""
        return "\n".join(one.line(generated=options.generate) for one in (result, *result.alternatives))

    def predict_batch(self, inputs: Sequence[ReadingInput], options: ReadingOptions) -> list[Reading]:
        """Read one batch."""
        if options.generate and self.config.task != "language-model":
            raise OptionError(
                f"Generating is only for language models, such as reader-en; this reader has task {self.config.task!r}."
            )
        inputs = [self._checked(text) for text in inputs]
        match self.config.task:
            case "language-model":
                texts = [str(text) for text in inputs]
                if options.generate:
                    return self._generated(texts, options)
                return self._modelled(texts, [self.split(text) for text in texts], options)
            case "entail":
                return self._compared([(text[0], text[1]) for text in inputs], options)
            case _:
                texts = [str(text) for text in inputs]
                return self._label(texts, [self.split(text) for text in texts], options)

    @torch.inference_mode()
    def tag(self, sentences: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """A tag for each word of sentences that are words already, as in a file of tagged words."""
        if self.config.task != "tag":
            raise OptionError(f"Tagging is for readers with task tag; this one has task {self.config.task!r}.")
        self.check_mode()
        options = ReadingOptions(traces="none")
        tags: list[tuple[str, ...]] = [()] * len(sentences)
        for indices in batches_by_cost(list(map(len, sentences)), max_batch=self.max_batch):
            words = [sentences[index] for index in indices if sentences[index]]
            readings = iter(self._label(list(map(" ".join, words)), words, options) if words else ())
            for index in indices:
                tags[index] = next(readings).tags if sentences[index] else ()
        return tags

    def split(self, text: str) -> list[str]:
        """The words of a text, of which there must be some; unknown marks count where there is nothing else."""
        words = self.vocabulary.split(text) or treebank_words(text)
        if not words:
            raise OptionError(f"There is no word to read in {text!r}.")
        return words

    def padded(self, words: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Sentences as ids on the device of the model, and their lengths on the CPU."""
        ids, lengths = pad([self.vocabulary.encode(each) for each in words])
        return ids.to(self.device), lengths

    def surprisals(self, ids: Tensor, lengths: Tensor, *, weights: bool) -> tuple[Float[Tensor, "b m"], Sentences]:
        """-log2 p of each word and of the end of the sentence, and the sentences as they were read."""
        predicted = self.network(ids, lengths, weights=weights)
        log_probs = self.network.output(predicted.features).float().log_softmax(-1)
        targets = with_end(ids, lengths)
        return -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1) / math.log(2), predicted.sentences

    def _modelled(self, texts: Sequence[str], words: Sequence[Sequence[str]], options: ReadingOptions) -> list[Reading]:
        ids, lengths = self.padded(words)
        bits, sentences = self.surprisals(ids, lengths, weights=options.traces != "none")
        readings = []
        for row, (text, each, own) in enumerate(zip(texts, words, bits.cpu(), strict=True)):
            own = own[: len(each) + 1]
            reading = Reading(
                text,
                tuple(each),
                self._unknown(each),
                surprisals=tuple(own[:-1].tolist()),
                perplexity=2 ** float(own.mean()),
                trace=sentence_trace(sentences, row, text, each, options.traces, surprisals=own[:-1].tolist()),
            )
            readings.append(reading)
        return readings

    def _generated(self, texts: Sequence[str], options: ReadingOptions) -> list[Reading]:
        """Continue texts; those with equally many words together, since all of a search stop at one length."""
        prompts = [self.vocabulary.split(text) for text in texts]
        indices = sorted(range(len(texts)), key=lambda index: len(prompts[index]))
        found: dict[int, Reading] = {}
        for length, group in groupby(indices, key=lambda index: len(prompts[index])):
            together = list(group)
            found |= zip(
                together, self._continued([prompts[index] for index in together], length, options), strict=True
            )
        return [found[index] for index in range(len(texts))]

    def _continued(self, prompts: Sequence[list[str]], length: int, options: ReadingOptions) -> list[Reading]:
        limit = length + (DEFAULT_LENGTH if options.max_length is None else options.max_length)
        rules = replace(options, max_length=None).rules(
            start=START,
            end=END,
            banned=(PAD, UNKNOWN),
            max_length=limit,
            prefixes=[self.vocabulary.encode(prompt) for prompt in prompts] if length else None,
        )
        # Like the limit, the minimum is one of new words.
        rules = replace(rules, min_length=length + max(rules.min_length, 0 if length else 1))
        found = search(self.network, self.network.begin(), rules, options, num_inputs=len(prompts), device=self.device)
        readings = []
        for prompt, hypotheses in zip(prompts, found, strict=True):
            best, *others = self._reread(prompt, hypotheses, options)
            readings.append(replace(best, alternatives=tuple(others)))
        return readings

    def _reread(
        self, prompt: Sequence[str], hypotheses: Sequence[Hypothesis], options: ReadingOptions
    ) -> list[Reading]:
        """Generated texts, read again for what each word attended to; the words of the prompt stay as they are."""
        words = [[*prompt, *self.vocabulary.decode(each.tokens[len(prompt) :])] for each in hypotheses]
        readings = self._modelled([join_words(each) for each in words], words, options)
        return [replace(reading, score=each.score) for reading, each in zip(readings, hypotheses, strict=True)]

    def _label(self, texts: Sequence[str], words: Sequence[Sequence[str]], options: ReadingOptions) -> list[Reading]:
        ids, lengths = self.padded(words)
        predicted: Predictions = self.network(ids, lengths, weights=options.traces != "none")
        logits = predicted.logits.float().cpu()
        readings = []
        for row, (text, each) in enumerate(zip(texts, words, strict=True)):
            trace = sentence_trace(predicted.sentences, row, text, each, options.traces)
            if self.config.task == "tag":
                tags = tuple(self.labels[number] for number in logits[row, : len(each)].argmax(-1).tolist())
                readings.append(Reading(text, tuple(each), self._unknown(each), tags=tags, trace=trace))
            else:
                decided = self._decided(logits[row])
                readings.append(Reading(text, tuple(each), self._unknown(each), **decided, trace=trace))
        return readings

    def _compared(self, pairs: Sequence[tuple[str, str]], options: ReadingOptions) -> list[Reading]:
        premises, words = ([self.split(pair[side]) for pair in pairs] for side in (0, 1))
        predicted: Predictions = self.network(
            *self.padded(premises), *self.padded(words), weights=options.traces != "none"
        )
        logits = predicted.logits.float().cpu()
        return [
            Reading(
                text,
                tuple(words[row]),
                self._unknown([*premises[row], *words[row]]),
                premise=premise,
                **self._decided(logits[row]),
                trace=pair_trace(predicted, row, (premise, text), (premises[row], words[row]), options.traces),
            )
            for row, (premise, text) in enumerate(pairs)
        ]

    def _unknown(self, words: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in words if word not in self.vocabulary))

    def _decided(self, logits: Float[Tensor, "k"]) -> dict[str, Any]:
        values = logits.softmax(-1).tolist()
        probabilities = dict(sorted(zip(self.labels, values, strict=True), key=lambda pair: -pair[1]))
        return {"label": next(iter(probabilities)), "probabilities": probabilities}

    def _checked(self, text: Any) -> ReadingInput:
        """The sentence, or the pair of sentences, in valid Unicode."""
        is_pair = isinstance(text, tuple) and len(text) == 2 and all(isinstance(side, str) for side in text)
        if self.config.task == "entail" and not is_pair:
            raise OptionError(f"This reader compares two sentences: give (premise, hypothesis); got {text!r:.100}.")
        if self.config.task != "entail" and not isinstance(text, str):
            raise OptionError(f"A text to read is a string; got {text!r:.100}.")
        return (well_formed(text[0]), well_formed(text[1])) if is_pair else well_formed(text)


def with_end(ids: Tensor, lengths: Tensor) -> Tensor:
    """The words to predict: those of each sentence, then END, then PAD."""
    targets = torch.nn.functional.pad(ids, (0, 1), value=PAD)
    return targets.scatter(1, lengths.to(ids.device, non_blocking=ids.is_cuda).unsqueeze(1), END)


def _sides(text: Any) -> tuple[str, ...]:
    return tuple(map(str, text)) if isinstance(text, tuple) else (str(text),)


def sentence_trace(
    sentences: Sentences,
    row: int,
    text: str,
    words: Sequence[str],
    which: str,
    *,
    surprisals: Sequence[float] | None = None,
) -> Trace | None:
    """What each word of a sentence attended to: word x word, with the surprisal of each word where it is known.

    A reader without attention has a trace without maps where there are surprisals to show, and none otherwise.
    """
    if which == "none" or (surprisals is None and not sentences.maps):
        return None
    axis = Axis("words", "words", tuple(words), text=text)
    series = () if surprisals is None else (Series("surprisal", "words", surprisals),)
    return Trace("reading", (axis,), _maps(sentences, row, "reading", "words", len(words), which), series)


def pair_trace(
    predicted: Predictions, row: int, texts: tuple[str, str], words: tuple[Sequence[str], Sequence[str]], which: str
) -> Trace | None:
    """What each word of a hypothesis attended to in the premise (with fusion) and in the hypothesis itself."""
    axes = [
        Axis(name, "words", tuple(own), text=text)
        for name, own, text in zip(("premise", "words"), words, texts, strict=True)
    ]
    maps: list[Map] = []
    if predicted.between is not None:
        maps.append(Map("between", "words", "premise", _table(predicted.between[row], len(words[1]), len(words[0]))))
    maps += _maps(predicted.sentences, row, "reading", "words", len(words[1]), which)
    if predicted.premises is not None and which == "all":
        maps += _maps(predicted.premises, row, "premise", "premise", len(words[0]), which)
    return Trace("reading", tuple(axes), tuple(maps)) if maps and which != "none" else None


def _maps(sentences: Sentences, row: int, name: str, axis: str, length: int, which: str) -> tuple[Map, ...]:
    """The mean over the heads of the last layer; for "all", then each layer and head."""
    if not sentences.maps:
        return ()
    main = Map(name, axis, axis, _table(sentences.maps[-1][row].mean(0), length, length))
    if which != "all":
        return (main,)
    return main, *(
        Map(f"{name} {layer}.{head}", axis, axis, _table(table, length, length), layer, head)
        for layer, heads in enumerate(sentences.maps, 1)
        for head, table in enumerate(heads[row], 1)
    )


def _table(weights: Tensor, rows: int, columns: int) -> Tensor:
    return weights[:rows, :columns].detach().float().cpu()
