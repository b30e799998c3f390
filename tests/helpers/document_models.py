"""A small document classifier with random parameters."""

from typing import Any

import torch

from regard.data.tokenizer import Tokenizer
from regard.systems.classify.config import ClassificationConfig
from regard.systems.classify.model import DocumentClassifier

TEXTS = [
    "i loved the film and the music .",
    "my brother hated the plot of this film , and i did not .",
    "the hotel was opened in march",
    "a fine room with a view !",
]


def small_document_classifier(
    labels: tuple[str, ...] = ("negative", "positive"), *, tokens: str = "word", **config: Any
) -> DocumentClassifier:
    """A classifier whose parameters depend on its config alone, and that clearly prefers some words."""
    torch.manual_seed(5)
    tokenizer = Tokenizer.train(TEXTS * 2, kind=tokens, size=200 if tokens == "word" else 60, lowercase=True)
    model = DocumentClassifier(ClassificationConfig(**{"embedding": 7, "hidden": 5, **config}), tokenizer, labels)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.eval()
