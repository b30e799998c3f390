"""How a document classifier learns: cross-entropy of the class, batches of bounded numbers of words."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from regard.config import parse_numbers
from regard.data.batches import BatchLoader, CostBatches
from regard.data.word_vectors import read_vectors
from regard.errors import DataError, OptionError
from regard.systems.classify.config import ClassificationData, ClassificationTrain
from regard.systems.classify.data import (
    DocumentBatch,
    DocumentIds,
    DocumentSplits,
    encode_documents,
    read_splits,
    train_tokenizer,
)
from regard.systems.classify.model import DocumentClassifier
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment
from regard.training.task import Task

BATCH_SIZE = 64
"""Documents in a batch, where their number is chosen automatically."""
UNTRAINED_BATCH_FACTOR = 4
"""How much larger batches are without gradients."""
SIZE_STEPS = 128
"""Sizes of documents are rounded up to multiples of a batch's words divided by this."""


class ClassificationTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "documents"
    settings: ClassificationTrain
    class_weights: Tensor | None

    def __init__(
        self,
        model: DocumentClassifier,
        settings: ClassificationTrain,
        total_steps: int,
        class_weights: Tensor | None = None,
    ) -> None:
        super().__init__(settings, total_steps)
        self.model = model
        self.register_buffer("class_weights", class_weights, persistent=False)

    def loss(self, batch: DocumentBatch) -> Tensor:
        """Cross-entropy of the classes."""
        logits = self.model(batch).logits.float()
        loss = functional.cross_entropy(
            logits, _labels(batch), weight=self.class_weights, label_smoothing=self.settings.label_smoothing
        )
        if self.class_weights is not None:
            self.mean_over = self.class_weights[_labels(batch)].sum()
        self.log("loss", loss, batch_size=len(batch))
        return loss

    def validate(self, batch: DocumentBatch) -> None:
        """Loss and accuracy."""
        logits, labels = self.model(batch).logits.float(), _labels(batch)
        self.log("valid_loss", functional.cross_entropy(logits, labels), batch_size=len(batch))
        right = 100 * (logits.argmax(-1) == labels).float().mean()
        self.log("valid_accuracy", right, batch_size=len(batch))


class ClassificationExperiment(Experiment[DocumentClassifier]):
    """Labelled documents in, a trained classifier out."""

    Data = ClassificationData
    Train = ClassificationTrain
    file_fields = ("folder", "train", "valid", "test", "vectors")
    score = "valid_accuracy"

    def read_data(self) -> DocumentSplits:
        """The documents of the recipe."""
        return read_splits(self.recipe.data)

    def build(self, splits: DocumentSplits) -> DocumentClassifier:
        """A new classifier, with a vocabulary and classes of the training documents, and word vectors if there are."""
        data = self.recipe.data
        model = DocumentClassifier(self.recipe.model, train_tokenizer(data, splits.train), splits.labels)
        if data.vectors:
            start_from_vectors(model, Path(data.folder) / data.vectors, self.notes)
        return model

    def check_model(self, model: DocumentClassifier, splits: DocumentSplits) -> None:
        """The classes must be the same."""
        if list(model.labels) != list(splits.labels):
            raise DataError(
                f"The model knows the classes {list(model.labels)}, and the documents have {list(splits.labels)}."
            )

    def task(self, model: DocumentClassifier, splits: DocumentSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """Batches of the documents, which are kept as ids."""
        settings = self.recipe.train
        train, valid = (encode_documents(model, part) for part in (splits.train, splits.valid))
        model.embedding.weight.requires_grad_(not settings.freeze_vectors)
        self._metrics: dict[str, Any] = self.notes | {
            "train_documents": len(train),
            "train_words": len(train.words),
            "train_documents_cut": train.left_out,
            "train_unknown_percent": train.unknown_percent,
            "valid_documents": len(valid),
            "valid_documents_cut": valid.left_out,
            "valid_unknown_percent": valid.unknown_percent,
            "bad_rows": splits.bad.count,
        }
        if self.progress:
            sys.stderr.write(_described(self._metrics))
        train_loader = load_batches(
            lambda size: loader(train, replace(settings, batch_size=size), shuffle=True),
            settings.batch_size,
            usual=BATCH_SIZE,
        )
        weights = class_weights(settings, train.labels, model.labels)
        task = ClassificationTask(model, settings, settings.epochs * len(train_loader), weights)
        return task, train_loader, loader(valid, settings, shuffle=False)

    def test(self, model: DocumentClassifier, splits: DocumentSplits) -> dict[str, Any]:
        """Accuracy on the test documents, by which nothing was chosen."""
        metrics = dict(self._metrics)
        if splits.test:
            test = encode_documents(model, splits.test)
            found = predicted(model, test, self.recipe.train).argmax(-1).numpy()
            metrics |= {
                "test_accuracy": 100 * float((found == test.labels).mean()),
                "test_documents": len(test),
                "test_documents_cut": test.left_out,
                "test_unknown_percent": test.unknown_percent,
            }
        return metrics


def loader(documents: DocumentIds, settings: ClassificationTrain, *, shuffle: bool) -> BatchLoader:
    """Batches of at most max_words words and batch_size documents."""
    factor = 1 if shuffle else UNTRAINED_BATCH_FACTOR
    max_words, batch_size = settings.max_words * factor, (settings.batch_size or BATCH_SIZE) * factor
    # Only documents of equal size change places between epochs: rounded sizes mix more of them. And a document counts
    # for at least its share of the batch, so that no batch has more than batch_size documents.
    step = max(1, max_words // SIZE_STEPS)
    sizes = np.maximum(-(-documents.sizes // step) * step, -(-max_words // batch_size))[:, None]
    batches = CostBatches(sizes, max_cost=max_words, shuffle=shuffle, seed=settings.seed)
    return BatchLoader(range(len(documents)), batches, collate_fn=documents.batch)


def predicted(model: DocumentClassifier, documents: DocumentIds, settings: ClassificationTrain | None = None) -> Tensor:
    """The probability of each class for each document, in the order of the documents."""
    batches = loader(documents, settings or ClassificationTrain(), shuffle=False)
    indices = [index for batch in batches.batch_sampler for index in batch]  # type: ignore[union-attr]
    found = model.probabilities(batches)
    return torch.empty_like(found).index_copy(0, torch.tensor(indices), found)


def class_weights(settings: ClassificationTrain, labels: np.ndarray, names: Sequence[str]) -> Tensor | None:
    """The weight of each class in the loss, or None for equal weights."""
    if settings.balance_classes:
        counts = np.maximum(np.bincount(labels, minlength=len(names)), 1)
        return torch.from_numpy(len(labels) / (len(names) * counts)).float()
    given = parse_numbers("class_weights", settings.class_weights)
    if unknown := [name for name in given if name not in names]:
        raise OptionError(f"class_weights names the class {unknown[0]!r}; the documents have {list(names)}.")
    return torch.tensor([given.get(name, 1.0) for name in names]) if given else None


def start_from_vectors(model: DocumentClassifier, path: Path, metrics: dict[str, Any]) -> None:
    """Copy published word vectors into the model; words without one keep a random vector of the same size."""
    words = model.tokenizer.pieces(range(len(model.tokenizer)))
    found = read_vectors(path, words)
    if found.dim != model.config.embedding:
        raise OptionError(
            f"The vectors of {path} have {found.dim} numbers, the model takes {model.config.embedding}: set "
            f"--model.embedding {found.dim}."
        )
    known = torch.from_numpy(found.known)
    vectors = torch.from_numpy(found.vectors)
    with torch.no_grad():
        weight = model.embedding.weight
        if bool(known.any()):
            weight.mul_(vectors[known].std() / weight[1:].std())
        weight[known] = vectors[known]
        weight[model.embedding.padding_idx or 0] = 0
    metrics["vocabulary_without_vector_percent"] = 100 * float((~known).float().mean())


def _labels(batch: DocumentBatch) -> Tensor:
    if batch.labels is None:
        raise DataError("Documents need labels to train on.")
    return batch.labels


def _described(metrics: dict[str, Any]) -> str:
    missing = metrics.get("vocabulary_without_vector_percent")
    vectors = "" if missing is None else f"; {missing:.1f} % of the vocabulary has no word vector"
    cut = metrics["train_documents_cut"]
    return (
        f"Training documents: {metrics['train_documents']:,} with {metrics['train_words']:,} words"
        f"{f', {cut:,} of them cut at max_sentences' if cut else ''}; unknown words: "
        f"{metrics['train_unknown_percent']:.1f} %, in validation {metrics['valid_unknown_percent']:.1f} %{vectors}.\n"
    )
