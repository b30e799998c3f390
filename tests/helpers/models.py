"""Small systems of each kind with random parameters, and inputs for them."""

from typing import Any

import numpy as np
import torch
from PIL import Image

from regard.data.tokenizer import Tokenizer
from regard.data.vocabulary import Vocabulary
from regard.systems.caption.config import CaptionConfig
from regard.systems.caption.model import Captioner
from regard.systems.classify.config import ClassificationConfig
from regard.systems.classify.model import DocumentClassifier
from regard.systems.glimpse.config import GlimpsesConfig
from regard.systems.glimpse.model import Glimpser
from regard.systems.read.config import ReadingConfig
from regard.systems.read.model import Reader
from regard.systems.recognize.config import RecognitionConfig
from regard.systems.recognize.model import ImageClassifier
from regard.systems.translate.config import TranslationConfig
from regard.systems.translate.model import Translator

TEXTS = ["a dog is running .", "two dogs run", "the small house is red and the sky is blue .", "a"]
CAPTIONS = ["a red star", "two blue rings", "a large green moon above a square"]
TRANSFORMER = {"architecture": "transformer", "hidden": 256, "heads": 2, "feedforward_dim": 24, "layers": 2}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "plain": {"architecture": "plain"},
    "rnnsearch": {},
    "rnnsearch_lstm": {"cell": "lstm"},
    "conditional": {"conditional": True},
    "lecture": {"output_state": "after"},
    "projected": {"score": "projected"},
    "luong": {"architecture": "luong", "cell": "lstm", "layers": 2, "score": "general"},
    "luong_dot": {"architecture": "luong", "score": "dot", "bidirectional": False},
    "luong_dot_bidirectional": {"architecture": "luong", "score": "dot", "encoder_hidden": 5},
    "luong_location": {"architecture": "luong", "score": "location"},
    "luong_local_m": {"architecture": "luong", "align": "local_m", "score": "general"},
    "luong_local_p": {"architecture": "luong", "align": "local_p", "score": "general", "input_feeding": False},
    "hard": {"align": "hard"},
    "uniform": {"align": "uniform"},
    "transformer": TRANSFORMER,
    "deep_encoder": {**TRANSFORMER, "decoder_layers": 1},
    "shared": {"share_embeddings": "all"},
    "separate": {"share_embeddings": "none"},
}
DOCUMENT_TEXTS = [
    "i loved the film and the music .",
    "my brother hated the plot of this film , and i did not .",
    "the hotel was opened in march",
    "a fine room with a view !",
]
READ_TEXTS = [
    "the cat sat on the mat .",
    "it slept",
    "the mat",
    "a dog that the cat saw did n't sleep because it sat .",
]
READ_PAIRS = [("the cat sat on the mat .", "it sat ."), ("a dog slept", "the dog did n't sleep ."), ("it", "the cat")]
READ_LABELS = {
    "language-model": (),
    "classify": ("bad", "good"),
    "entail": ("yes", "no", "maybe"),
    "tag": ("-", "NOUN"),
}
READERS = {
    "lstm_model": {"cell": "lstm", "layers": 2, "skip": True},
    "lstmn_model": {"layers": 2, "span": 3, "attention_dim": 4},
    "tied_model": {"share_embeddings": True},
    "self_attention_model": {"cell": "self-attention", "layers": 2, "heads": 2},
    "lstmn_classifier": {"task": "classify", "skip": True, "layers": 2},
    "lstmn_both_classifier": {"task": "classify", "direction": "both", "pool": "max"},
    "lstm_last_classifier": {"task": "classify", "cell": "lstm", "pool": "last", "classifier_dim": 5},
    "tagger": {"task": "tag"},
    "self_attention_tagger": {
        "task": "tag", "cell": "self-attention", "direction": "both", "layers": 2, "attend_to": "words",
        "look_back": True, "labels_from": "attended",
    },
    "entail": {"task": "entail"},
    "shallow": {"task": "entail", "fusion": "shallow", "direction": "both"},
    "aligned": {"task": "entail", "fusion": "aligned", "direction": "both"},
    "deep": {"task": "entail", "fusion": "deep", "layers": 2},
}  # fmt: skip


def small_translator(tokenizer: Tokenizer | None = None, **config: Any) -> Translator:
    """A translator whose parameters depend on its config alone."""
    torch.manual_seed(3)
    tokenizer = tokenizer or Tokenizer.train(TEXTS * 3, size=60)
    return Translator(TranslationConfig(**{"embedding": 12, "hidden": 10, **config}), tokenizer, tokenizer).eval()


def small_captioner(**config: Any) -> Captioner:
    """A captioner of eight by eight cells; its parameters follow the seed of the test."""
    tokenizer = Tokenizer.train(CAPTIONS, kind="word", minimum_count=1)
    small = {"filters": (4, 5, 7), "embedding": 6, "hidden": 11, "attention_dim": 5}
    return Captioner(CaptionConfig(**{**small, **config}), tokenizer).eval()


def small_classifier(labels: tuple[str, ...] = ("cat", "chien", "گربه"), **config: Any) -> ImageClassifier:
    """A LeNet for grey images."""
    small = {"architecture": "lenet5", "channels": 1, "image_size": 28}
    return ImageClassifier(RecognitionConfig(**{**small, **config}), labels).eval()


def small_glimpser(labels: tuple[str, ...] = ("a", "b", "c"), **config: Any) -> Glimpser:
    """A glimpse model of three glimpses, whose parameters depend on its config alone."""
    torch.manual_seed(5)
    small = {"image_size": 17, "glimpse_size": 5, "num_scales": 2, "num_glimpses": 3, "hidden": 11}
    small |= {"glimpse_dim": 7, "locator_dim": 6}
    return Glimpser(GlimpsesConfig(**{**small, **config}), labels).eval()


def small_document_classifier(
    labels: tuple[str, ...] = ("negative", "positive"), *, tokens: str = "word", **config: Any
) -> DocumentClassifier:
    """A classifier whose parameters depend on its config alone, and that clearly prefers some words."""
    torch.manual_seed(5)
    tokenizer = Tokenizer.train(DOCUMENT_TEXTS * 2, kind=tokens, size=200 if tokens == "word" else 60, lowercase=True)
    model = DocumentClassifier(ClassificationConfig(**{"embedding": 7, "hidden": 5, **config}), tokenizer, labels)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.eval()


def small_reader(kind: str) -> Reader:
    """A reader whose parameters depend on its kind alone."""
    torch.manual_seed(3)
    config = ReadingConfig(**{"embedding": 6, "hidden": 8, **READERS[kind]})
    vocabulary = Vocabulary.build([text.split() for text in READ_TEXTS])
    return Reader(config, vocabulary, READ_LABELS[config.task]).eval()


def photograph(width: int = 90, height: int = 70, seed: int = 3) -> Image.Image:
    """An image of random pixels."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (height, width, 3)).astype(np.uint8))
