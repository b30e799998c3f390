"""A translator whose translations and attention are known exactly, and documents with tags in known places."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from helpers.models import TEXTS, small_translator
from regard.data.tokenizer import Tokenizer
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.markup.documents import translate_documents
from regard.systems.translate.translation import Translation
from regard.trace import Axis, Map, Series, Trace

WORDS = ("house", "garden", "river", "stone", "green", "quiet", "old", "bird", "sings", "sleeps", "near", "under")
MODEL = small_translator(
    Tokenizer.train([*TEXTS, "X 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p"] * 3, size=80)
)


def exact(texts: Sequence[str], options: TranslationOptions) -> list[Translation]:
    """Sentences in the reverse order of their words, in which each word attends to the one it is."""
    found = []
    for text in texts:
        words = tuple(text.split())
        weights = np.eye(len(words))[::-1]
        axes = (
            Axis("source", "words", words, text=text),
            Axis("target", "words", words[::-1], text=" ".join(words[::-1])),
        )
        zeros = Series("log_prob", "target", [0.0] * len(words))
        trace = Trace("translation", axes, (Map("cross", "target", "source", weights),), (zeros,))
        found.append(Translation(text, " ".join(words[::-1]), 0.0, True, trace=trace))
    return found


def reversed_document(document: str, markup: str) -> Translation:
    """A document translated by `exact`."""
    options = TranslationOptions(markup=markup)  # type: ignore[arg-type]
    (found,) = translate_documents(MODEL, exact, [document], options)
    return replace(found, trace=None)


def sentence(draw: Random, tags: Sequence[tuple[str, str]], *, depth: int = 3) -> tuple[str, str]:
    """Words with tags around some of them, nested, and the same in reverse."""
    given, turned = [], []
    for _ in range(draw.randint(1, 4)):
        if depth and draw.random() < 0.4:
            opened, closed = draw.choice(tags)
            inner, inner_turned = sentence(draw, tags, depth=depth - 1)
            given.append(f"{opened}{inner}{closed}")
            turned.append(f"{opened}{inner_turned}{closed}")
        else:
            given.append(draw.choice(WORDS))
            turned.append(given[-1])
    return " ".join(given), " ".join(turned[::-1])
