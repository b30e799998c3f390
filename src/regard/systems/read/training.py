"""How a reader learns: cross-entropy of the next word, or of the labels."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader, CostBatches
from regard.data.tokenizer import UNKNOWN
from regard.data.word_vectors import read_vectors
from regard.errors import DataError, OptionError
from regard.systems.read.config import ReadingData, ReadingTrain
from regard.systems.read.data import (
    IGNORED,
    Examples,
    ReadingBatch,
    ReadingSplits,
    build_vocabulary,
    labels_of,
    read_splits,
)
from regard.systems.read.evaluation import accuracy, antecedent_scores, model_perplexity
from regard.systems.read.model import Reader, with_end
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment
from regard.training.losses import mean_where, real_tokens, smoothed_cross_entropy
from regard.training.processes import gathered
from regard.training.recording import length_multiple
from regard.training.task import Task

BATCHES_PER_EPOCH = 400
"""How many batches an epoch should have, where max_tokens is chosen automatically."""


class ReadingTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "words"
    settings: ReadingTrain
    class_weights: Float[Tensor, "k"] | None

    def __init__(
        self, model: Reader, settings: ReadingTrain, total_steps: int, class_weights: Float[Tensor, "k"] | None = None
    ) -> None:
        super().__init__(settings, total_steps)
        self.model, self.is_recordable = model, not model.custom_parts
        self.register_buffer("class_weights", class_weights, persistent=False)
        self._nll, self._right, self._count = 0.0, 0.0, 0

    def amount(self, batch: ReadingBatch) -> int:
        """The number of words."""
        return int(batch.lengths[-1].sum())

    def loss(self, batch: ReadingBatch) -> Tensor:
        """Cross-entropy of the words or labels."""
        loss, nll, _, is_real = self._losses(batch)
        self.mean_over = float(len(nll))
        self.log("loss", mean_where(nll.detach(), is_real), batch_size=len(nll))
        return loss

    def validate(self, batch: ReadingBatch) -> None:
        """Collect the cross-entropy and the number of right labels."""
        _, nll, right, _ = self._losses(batch)
        self._nll += float(nll.double().sum())
        self._right += float(right.sum())
        self._count += len(nll)

    def validated(self) -> None:
        """Perplexity of a language model, accuracy of the others."""
        nll, right, count = (sum(parts) for parts in zip(*gathered((self._nll, self._right, self._count)), strict=True))
        mean = nll / max(1, count)
        self.log("valid_loss", mean)
        if self.model.config.task == "language-model":
            self.log("valid_perplexity", math.exp(min(mean, 50.0)))
            self.log("valid_log_prob", -mean)
        else:
            self.log("valid_accuracy", 100 * right / max(1, count))
        self._nll, self._right, self._count = 0.0, 0.0, 0

    def _losses(self, batch: ReadingBatch) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """The loss to minimise; of each word or label its cross-entropy, if it is predicted rightly, and if it counts.

        All count where the last is None.
        """
        if self.model.config.task == "language-model":
            return self._language_loss(batch)
        parts = [part for pair in zip(batch.sentences, batch.lengths, strict=True) for part in pair]
        logits, targets = self.model.network(*parts).logits, batch.targets
        if targets is None:
            raise TypeError("A classifier learns from labels.")
        is_real = None
        if targets.ndim == 2:
            select, is_real = real_tokens(batch.lengths[0], targets)
            logits, targets = select(logits), select(targets)
        if is_real is not None:
            targets = targets.where(is_real, IGNORED)
        logits = logits.float()
        nll = functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="none")
        loss = mean_where(nll, is_real)
        if self.training:
            loss = functional.cross_entropy(
                logits,
                targets,
                ignore_index=IGNORED,
                weight=self.class_weights,
                label_smoothing=self.settings.label_smoothing,
            )
        return loss, nll, logits.argmax(-1) == targets, is_real

    def _language_loss(self, batch: ReadingBatch) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        settings, (ids,), (lengths,) = self.settings, batch.sentences, batch.lengths
        predicted = self.model.network(ids, lengths)
        targets = with_end(ids, lengths)
        select, is_real = real_tokens(lengths + 1, targets)
        features = select(predicted.features)
        logits = self.model.network.output(features).float()
        loss, nll = smoothed_cross_entropy(logits, select(targets), smoothing=settings.label_smoothing, real=is_real)
        if self.training and settings.state_penalty:
            loss = loss + settings.state_penalty * mean_where(features.float().square().mean(-1), is_real)
        if self.training and settings.slowness_penalty:
            states = predicted.sentences.states
            loss = loss + settings.slowness_penalty * (states[:, 1:] - states[:, :-1]).float().square().mean()
        return loss, nll, nll.new_zeros(()), is_real


class ReadingExperiment(Experiment[Reader]):
    """Sentences in, a trained reader out."""

    Data = ReadingData
    Train = ReadingTrain
    file_fields = ("folder", "train", "valid", "test", "vectors")

    @property
    def score(self) -> str:  # type: ignore[override]
        """The validation metric: the mean log-probability of a word, or the accuracy."""
        return "valid_log_prob" if self.recipe.model.task == "language-model" else "valid_accuracy"

    def read_data(self) -> ReadingSplits:
        """The sentences of the recipe."""
        return read_splits(self.recipe.data, self.recipe.model.task, self.recipe.model.direction)

    def build(self, splits: ReadingSplits) -> Reader:
        """A new reader of the training sentences' words and labels, perhaps with learned word vectors."""
        data, config = self.recipe.data, self.recipe.model
        vocabulary = build_vocabulary(data, splits.train)
        model = Reader(config, vocabulary, labels_of(splits.train))
        if data.vectors:
            self.notes["vector_coverage"] = fill_words(model, data.vectors)
        elif self.recipe.train.freeze_words:
            raise OptionError("freeze_words keeps learned word vectors as they are; give some with --data.vectors.")
        return model

    def check_model(self, model: Reader, splits: ReadingSplits) -> None:
        """The labels must be the same."""
        found = labels_of(splits.train)
        if list(model.labels) != found:
            raise DataError(f"The model knows the labels {list(model.labels)[:8]}, and the data has {found[:8]}.")

    def task(self, model: Reader, splits: ReadingSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """Batches of sentences of like length."""
        data, settings = self.recipe.data, self.recipe.train
        kept = [each for each in splits.train if max(map(len, each.sentences)) <= data.max_words]
        if not kept:
            raise DataError(f"Every training sentence is longer than max_words {data.max_words}.")
        self._left_out = len(splits.train) - len(kept)
        per_word, multiple = model.config.task == "tag", length_multiple(settings.pad_to)
        train, valid = (
            Examples(part, model.vocabulary, model.labels, per_word=per_word, multiple=multiple)
            for part in (kept, splits.valid)
        )
        self._counts = {"train_sentences": len(train), "valid_sentences": len(valid), "train_too_long": self._left_out}
        if settings.freeze_words:
            model.network.get_submodule(_embedding_name(model)).weight.requires_grad_(False)
        usual = max(512, min(4096, int(train.sizes.max(1).sum()) // BATCHES_PER_EPOCH))

        def load(size: int) -> BatchLoader:
            batches = CostBatches(train.sizes, max_cost=size, shuffle=True, seed=settings.seed)
            return BatchLoader(train, batches, collate_fn=train.collate, pin_memory=torch.cuda.is_available())

        loader = load_batches(load, settings.max_tokens, usual=usual)
        valid_batches = CostBatches(valid.sizes, max_cost=4 * (settings.max_tokens or usual), shuffle=False, seed=0)
        task = ReadingTask(
            model, settings, settings.epochs * len(loader), self._class_weights(train, len(model.labels))
        )
        return task, loader, BatchLoader(valid, valid_batches, collate_fn=valid.collate)

    def test(self, model: Reader, splits: ReadingSplits) -> dict[str, Any]:
        """Perplexity, accuracy, and in the world stories how often the antecedent is attended to first."""
        metrics: dict[str, Any] = self.notes | self._counts | {"vocabulary": len(model.vocabulary)}
        if splits.test is None:
            return metrics
        metrics["test_sentences"] = len(splits.test)
        if model.config.task == "language-model":
            metrics["test_perplexity"] = model_perplexity(model, splits.test)
        else:
            metrics["test_accuracy"] = accuracy(model, splits.test)
        if self.recipe.data.world and model.config.cell != "lstm":
            scores = antecedent_scores(model, len(splits.test))
            metrics |= {"test_antecedent": scores.attended, "test_named": scores.named}
        return metrics

    def _class_weights(self, train: Examples, num_labels: int) -> Float[Tensor, "k"] | None:
        if not self.recipe.train.class_weights or not num_labels:
            return None
        counts = torch.tensor([float(train.counts[number]) for number in range(num_labels)]).clamp_min(1)
        return counts.sum() / (num_labels * counts)


def fill_words(model: Reader, path: str) -> float:
    """Start the words of a model from learned vectors; return the fraction of words that have one."""
    found = read_vectors(path, model.vocabulary.words)
    embedding = model.network.get_submodule(_embedding_name(model)).weight
    if found.dim != embedding.shape[1]:
        raise OptionError(
            f"The vectors of {path} have {found.dim} features; the model takes {embedding.shape[1]}. Set "
            f"--model.embedding {found.dim}."
        )
    known = torch.from_numpy(found.known)
    known[: UNKNOWN + 1] = False
    with torch.no_grad():
        embedding[known] = torch.from_numpy(found.vectors)[known].to(embedding.dtype)
    return float(known.double().mean())


def _embedding_name(model: Reader) -> str:
    return "embedding.embedding" if model.config.task == "language-model" else "words.embedding"
