"""Small readers of every task with random parameters, and sentences for them."""

import torch

from regard.data.vocabulary import Vocabulary
from regard.systems.read.config import ReadingConfig
from regard.systems.read.model import Reader

TEXTS = ["the cat sat on the mat .", "it slept", "the mat", "a dog that the cat saw did n't sleep because it sat ."]
PAIRS = [("the cat sat on the mat .", "it sat ."), ("a dog slept", "the dog did n't sleep ."), ("it", "the cat")]
LABELS = {"language-model": (), "classify": ("bad", "good"), "entail": ("yes", "no", "maybe"), "tag": ("-", "NOUN")}
KINDS = {
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


def small_reader(kind: str) -> Reader:
    """A reader whose parameters depend on its kind alone."""
    torch.manual_seed(3)
    config = ReadingConfig(**{"embedding": 6, "hidden": 8, **KINDS[kind]})
    vocabulary = Vocabulary.build([text.split() for text in TEXTS])
    return Reader(config, vocabulary, LABELS[config.task]).eval()
