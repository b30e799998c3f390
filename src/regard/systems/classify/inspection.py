"""What if some words were not there: a document classified without them, and what each sentence is worth."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

from regard.data.documents import Document
from regard.errors import OptionError
from regard.systems.classify.data import DocumentBatch
from regard.systems.classify.faithfulness import Explained
from regard.systems.classify.model import DocumentClassifier, SentenceWeight, WordWeight, document_trace
from regard.systems.endpoint import endpoint
from regard.trace import Trace


@dataclass(frozen=True)
class Removal:
    """A document before and after some of its words were removed."""

    words: tuple[str, ...] = field(repr=False)
    """All words of the document."""
    sentences: tuple[int, ...] = field(repr=False)
    """The sentence of each word, counted from 0."""
    removed: tuple[int, ...]
    """The words that were removed, counted from 0."""
    label: str
    """The class of the whole document."""
    before: dict[str, float]
    """The probability of each class for the whole document, the most probable first."""
    after: dict[str, float]
    """The same without the removed words."""
    word_weights: tuple[float, ...] = field(repr=False)
    """The attention to each word within its sentence, without the removed words; 0 for these."""
    sentence_weights: tuple[float, ...] = field(repr=False)
    """The attention to each sentence; 0 where no word is left."""
    sentence_drops: tuple[float, ...] = field(repr=False)
    """How far the probability of `label` falls when each sentence is removed as well; 0 where no word is left."""
    trace: Trace | None = field(default=None, repr=False)
    """The attention to what is left; None where nothing is."""


@endpoint("without", input="text", example={"text": "I loved this film. The music was awful.", "removed": [1]})
@torch.inference_mode()
def without_words(model: DocumentClassifier, text: str | Document, removed: Iterable[int] = ()) -> Removal:
    """Classify a document without some of its words, which are counted from 0 over the whole document.

    Removed words are taken out before the model reads the document; a sentence without words disappears.

    Parameters
    ----------
    removed
        Words to remove, counted from 0 over the whole document.
    """
    explained = Explained(model, text)
    count = len(explained.tokens)
    indices = sorted(set(removed))
    if wrong := [index for index in indices if not 0 <= index < count]:
        raise OptionError(f"The words of this document are numbered 0 to {count - 1}; there is no word {wrong[0]}.")
    kept = np.ones(count, dtype=bool)
    kept[indices] = False
    owners = explained.sentences
    alone = [kept & (owners != sentence) for sentence in range(int(owners.max()) + 1)]
    rows = explained.predict(explained.tokens, np.stack([np.ones(count, dtype=bool), kept, *alone]))
    best = int(rows[0].argmax())
    words, sentences = _weights(model, explained, kept)
    left = np.bincount(owners[kept], minlength=len(alone)) > 0
    weighted = [
        SentenceWeight(
            " ".join(explained.tokens[index] for index in own),
            float(sentences[number]),
            tuple(WordWeight(explained.tokens[index], float(words[index])) for index in own),
        )
        for number, own in ((number, np.flatnonzero(kept & (owners == number))) for number in np.flatnonzero(left))
    ]
    after = _named(model, rows[1])
    return Removal(
        words=tuple(explained.tokens),
        sentences=tuple(owners.tolist()),
        removed=tuple(indices),
        label=model.labels[best],
        before=_named(model, rows[0]),
        after=after,
        word_weights=tuple(words.tolist()),
        sentence_weights=tuple(sentences.tolist()),
        sentence_drops=tuple(np.where(left, rows[1, best] - rows[2:, best], 0.0).tolist()),
        trace=document_trace(weighted, after, explained.text.left_out) if weighted else None,
    )


def _weights(model: DocumentClassifier, explained: Explained, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights of words and of sentences where only some words are read."""
    words, sentences = np.zeros(len(kept)), np.zeros(int(explained.sentences.max()) + 1)
    if not kept.any():
        return words, sentences
    ids, owners = explained.kept(kept)
    output = model(DocumentBatch.from_ids([ids]).to(model.device))
    np.add.at(words, owners, output.word_weights.double().cpu().numpy())
    sentences[np.unique(explained.sentences[kept])] = output.sentence_weights.double().cpu().numpy()
    return words, sentences


def _named(model: DocumentClassifier, row: np.ndarray) -> dict[str, float]:
    order = np.argsort(-row, kind="stable")
    return {model.labels[index]: float(row[index]) for index in order}
