"""How well a reader predicts, and how accurate its attention is where the right answer is known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from regard.errors import OptionError, counted
from regard.systems.predictor import batches_by_cost
from regard.systems.read.config import ReadingData, ReadingTest
from regard.systems.read.data import Example, read_examples
from regard.systems.read.model import Reader
from regard.systems.report import Measure, Report, class_table
from regard.worlds.stories import NONE, Story, stories

BATCH = 64
"""Sentences that are read together."""


@dataclass(frozen=True)
class AntecedentScores:
    """How a reader finds antecedents, in percent of the sentences."""

    attended: float
    """The antecedent has the largest weight where a reader of this direction can know it."""
    named: float
    """The antecedent is what the reader names there."""
    pronouns: float
    """As `attended`, for pronouns whose antecedent only a later word decides."""
    agreement: float
    """As `attended`, for verbs that agree with their subject."""


def evaluate(model: Reader, test_set: ReadingTest, *, name: str = "model") -> Report:
    """Read the sentences of a test set."""
    if test_set.world:
        return _evaluate_world(model, test_set.count, name)
    data = ReadingData(format=test_set.format)
    examples = list(read_examples(test_set.file, model.config.task, data, split=model.vocabulary.split))
    if not examples:
        raise OptionError(f"There are no sentences in {test_set.file}.")
    title = counted(len(examples), "sentence")
    if model.config.task == "language-model":
        perplexity = model_perplexity(model, examples)
        words = sum(len(example.sentences[0]) + 1 for example in examples)
        note = f"per word, {words:,} words with the end of each sentence; sentence by sentence"
        scores = {
            "perplexity": Measure(perplexity, note=note),
            "bits per word": Measure(math.log2(perplexity)),
        }
        return Report(name, title, scores)
    answers = _answers(model, examples)
    right, total = _count_right(model, examples, answers)
    scores = {"accuracy": Measure(100 * right / total, note=f"percent of {total:,}")}
    tables: dict[str, list[dict[str, Any]]] = {}
    if model.config.task != "tag":
        numbers = {label: number for number, label in enumerate(model.labels)}
        right_labels, found = (
            [numbers.get(one, -1) for (one,) in part] for part in ([each.labels for each in examples], answers)
        )
        tables["By class"] = class_table(model.labels, right_labels, found, "sentences")
    outputs = [_output(model, *pair) for pair in zip(examples, answers, strict=True)]
    return Report(name, title, scores, tables, outputs)


def model_perplexity(model: Reader, examples: Sequence[Example]) -> float:
    """2 to the mean surprisal of all words and ends of sentences, sentence by sentence."""
    total, count = 0.0, 0
    lengths = [len(example.sentences[0]) for example in examples]
    for indices in batches_by_cost(lengths, max_batch=BATCH):
        with torch.inference_mode():
            ids, sizes = model.padded([examples[index].sentences[0] for index in indices])
            bits, _ = model.surprisals(ids, sizes, weights=False)
            exists = torch.arange(bits.shape[1]) <= sizes.unsqueeze(1)
            total += float(bits.double().cpu()[exists].sum())
            count += int(exists.sum())
    return float(2 ** (total / count))


def accuracy(model: Reader, examples: Sequence[Example]) -> float:
    """Percent of right labels; of tagged words, percent of right tags."""
    right, total = _count_right(model, examples, _answers(model, examples))
    return 100 * right / total


def antecedent_scores(model: Reader, count: int) -> AntecedentScores:
    """How often the antecedent is attended to first, and named, in test sentences of the world stories."""
    direction = model.config.direction
    tested = list(islice(stories(split="test"), count))
    readings = model.read([story.text for story in tested])
    attended: dict[str, list[bool]] = {"later": [], "agreement": [], "pronoun": []}
    named = []
    for story, reading in zip(tested, readings, strict=True):
        if reading.trace is None or not reading.trace.maps:
            raise OptionError(f"A reader with cell {model.config.cell!r} attends to nothing.")
        index = story.link.position(direction)
        is_first = int(reading.trace.weights[index].argmax()) == story.link.antecedent
        attended[_kind(story)].append(is_first)
        named.append(bool(reading.tags) and reading.tags[index] == story.words[story.link.antecedent])
    every = [each for part in attended.values() for each in part]
    return AntecedentScores(
        _percent(every), _percent(named), _percent(attended["later"]), _percent(attended["agreement"])
    )


def _evaluate_world(model: Reader, count: int, name: str) -> Report:
    if model.config.task != "tag":
        raise OptionError(f"The world stories scores readers with task tag; this one has task {model.config.task!r}.")
    found = antecedent_scores(model, count)
    where = "at the pronoun or verb" if model.config.direction == "both" else "where it is known from left to right"
    scores = {
        "antecedent attended first": Measure(found.attended, "{:.1f}", f"percent, {where}"),
        "antecedent named": Measure(found.named, "{:.1f}", "percent"),
        "pronouns decided later": Measure(found.pronouns, "{:.1f}", "percent attended first"),
        "agreement": Measure(found.agreement, "{:.1f}", "percent attended first"),
    }
    return Report(name, counted(count, "story", "stories"), scores)


def _kind(story: Story) -> str:
    if story.link.kind == "agreement":
        return "agreement"
    return "later" if story.link.known_at > story.link.word else "pronoun"


def _percent(flags: Sequence[bool]) -> float:
    return 100 * sum(flags) / max(1, len(flags))


def _answers(model: Reader, examples: Sequence[Example]) -> list[tuple[str, ...]]:
    """The label of each example, or the tags of its words."""
    if model.config.task == "tag":
        return model.tag([example.sentences[0] for example in examples])
    texts = [tuple(map(" ".join, example.sentences)) for example in examples]
    inputs: list[Any] = [text if len(text) == 2 else text[0] for text in texts]
    return [(reading.label or "",) for reading in model.read(inputs, traces="none")]


def _count_right(model: Reader, examples: Sequence[Example], answers: Sequence[tuple[str, ...]]) -> tuple[int, int]:
    """How many answers are right, and of how many; words without a tag do not count."""
    pairs = [
        (own, right)
        for example, answer in zip(examples, answers, strict=True)
        for own, right in zip(answer, example.labels, strict=True)
        if right != NONE or model.config.task != "tag"
    ]
    return sum(own == right for own, right in pairs), max(1, len(pairs))


def _output(model: Reader, example: Example, answer: tuple[str, ...]) -> dict[str, Any]:
    texts = [" ".join(words) for words in example.sentences]
    given = list(answer) if model.config.task == "tag" else answer[0]
    return {"text": texts, "label": list(example.labels), "answer": given}
