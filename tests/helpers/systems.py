"""A model of every system with inputs for it: what the tests of the contract, of threads and of memory go through."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import regard
from helpers.models import (
    READ_PAIRS,
    READ_TEXTS,
    READERS,
    TEXTS,
    TRANSLATORS,
    photograph,
    small_captioner,
    small_classifier,
    small_document_classifier,
    small_glimpser,
    small_reader,
    small_translator,
)
from regard.data.tokenizer import Tokenizer
from regard.systems.predictor import Result
from regard.systems.pretrained import pretrained_models
from regard.systems.system import System

KINDS = sorted({model.kind for model in pretrained_models()})
"""The systems that have a shipped model."""


@dataclass(frozen=True)
class Case:
    """A model, inputs of different sizes, the name of its verb and of an option."""

    kind: str
    model: System
    inputs: list[Any]
    verb: str
    name: str
    """The shipped model of this system that is small and fast."""
    option: dict[str, Any]
    fresh: Callable[[int], Any]
    """An input for each number, all of them different."""

    def ask(self, inputs: Any, **options: Any) -> Any:
        return getattr(self.model, self.verb)(inputs, **options)


IMAGES = [photograph(30 + 17 * n, 40 + 5 * n, seed=n) for n in range(5)]


WORDS = ["a", "dog", "is", "running", "two", "dogs", "the", "house"]


def fresh_image(number: int) -> Any:
    return photograph(30 + number % 7, 40 + number % 5, seed=number)


def fresh_text(number: int) -> str:
    words = [WORDS[number // len(WORDS) ** index % len(WORDS)] for index in range(4)]
    return " ".join([*words, *words[: number % 3], "."])


def fresh_tape(number: int) -> str:
    rows = np.random.default_rng(number).integers(0, 2, (1 + number % 5, 8))
    return " ".join("".join(map(str, row)) for row in rows)


@cache
def load(name: str) -> System:
    return regard.load(name, device="cpu")


def small_case(kind: str) -> Case:
    """A small model with random parameters where there is one, or else the shipped one, which is small itself."""
    torch.manual_seed(1)
    match kind:
        case "translate":
            model: System = small_translator(Tokenizer.train(TEXTS * 3, size=60))
            return Case(kind, model, [*TEXTS, "two"], "translate", "en-fr", {"max_length": 7}, fresh_text)
        case "caption":
            return Case(kind, small_captioner(), IMAGES, "caption", "scenes", {"max_length": 7}, fresh_image)
        case "recognize":
            return Case(kind, small_classifier(), IMAGES, "recognize", "digits", {"top": 2}, fresh_image)
        case "classify":
            texts = ["A dull film. I left.", "Wonderful!", "It is long. It is loud. It is good.", "no", "Yes. Yes."]
            return Case(kind, load("reviews-en"), texts, "classify", "reviews-en", {"traces": "main"}, fresh_text)
        case "read":
            texts = ["A dog sleeps.", "It was late, so we went home early.", "Where is it?", "Yes", "Tom is too tired."]
            return Case(kind, load("reader-en"), texts, "read", "reader-en", {"max_length": 7}, fresh_text)
        case "glimpse":
            return Case(kind, load("glimpse-digits"), IMAGES, "glimpse", "glimpse-digits", {"seed": 3}, fresh_image)
        case "tape":
            tapes = ["01100110 10011001", "11110000", "00001111 01010101 10101010", "11111111", "00000001 10000000"]
            return Case(kind, load("tape-copy"), tapes, "tape", "tape-copy", {"slots": 40}, fresh_tape)
    raise AssertionError(f"Add {kind} to the tests of the contract.")


Variant = Callable[[], tuple[System, list[Any]]]
DOCUMENTS = [
    "I loved it.",
    "A. " * 23 + "The film was fine. " * 5,
    "one",
    " ".join(["my brother hated the plot and the music and i did not mind it"] * 3),
]


def variants() -> dict[str, Variant]:
    """Small models of every architecture of every system, with inputs of different sizes, by name."""
    found: dict[str, Variant] = {}
    for name, config in TRANSLATORS.items():
        found[f"translate {name}"] = lambda config=config: (small_translator(**config), TEXTS)
    for name in READERS:
        found[f"read {name}"] = lambda name=name: (
            small_reader(name),
            READ_PAIRS if READERS[name].get("task") == "entail" else READ_TEXTS,
        )
    for config in ({"pool": "attention"}, {"pool": "average"}, {"pool": "max"}, {"read": "sentences"}):
        found[f"classify {config}"] = lambda config=config: (small_document_classifier(**config), DOCUMENTS)
    for config in ({}, {"architecture": "show_and_tell"}, {"architecture": "adaptive"}, {"align": "hard"}):
        found[f"caption {config}"] = lambda config=config: (small_captioner(**config), IMAGES)
    for config in ({}, {"architecture": "small_vgg", "channels": 3, "image_size": 32}):
        found[f"recognize {config}"] = lambda config=config: (small_classifier(**config), IMAGES)
    for config in ({}, {"what": "convolution", "core": "rnn"}):
        found[f"glimpse {config}"] = lambda config=config: (small_glimpser(**config), IMAGES)
    return found


VARIANTS = variants()
SENTENCES = ["A dog is running.", "Good night.", "She has two small cats and a big house.", "Where?"]


def shipped_case(kind: str) -> Case:
    """The shipped model, with inputs that it can answer."""
    case = small_case(kind)
    inputs = {"translate": SENTENCES, "caption": IMAGES[:3]}.get(kind, case.inputs)
    return replace(case, model=load(case.name), inputs=inputs)


def close(first: Result, second: Result) -> bool:
    """Whether two results say the same, numbers to rounding."""

    def equal(one: Any, other: Any) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return one == pytest.approx(other, rel=1e-3, abs=1e-4)
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(equal, one, other))
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
        return one == other

    return type(first) is type(second) and equal(first.to_dict(), second.to_dict())
