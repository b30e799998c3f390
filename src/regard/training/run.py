"""Running a recipe: read the data, train, keep the best, save the model folder."""

import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    RichProgressBar,
    WeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch import Tensor

from regard.data.batches import BatchLoader, DroppingCorpus, TextPairs, TokenBatches
from regard.data.corpus import Corpus
from regard.metrics.translation import corpus_bleu
from regard.systems.translator import Translator
from regard.training.checkpoints import KeepLast
from regard.training.material import Material, Pairs, make_tokenizers, read_data
from regard.training.recipe import Recipe
from regard.training.translation import TranslationTask

Examples = Corpus | DroppingCorpus


@dataclass(frozen=True)
class Trained:
    """What a run leaves behind."""

    folder: Path
    model: Translator
    metrics: dict[str, Any]


def train(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    start_from: Translator | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Trained:
    """Train a translator into a folder: the model, logs/ and checkpoints/.

    `start_from` goes on from a trained model, with its tokenizers. `resume` goes on from the folder's last checkpoint.
    Interrupting (Ctrl-C) ends the training early and saves what is there. A run that was interrupted and resumed gives,
    on a CPU, the very weights that it would have given without; but not with BPE dropout, whose draws cannot be
    repeated, nor with a time limit.
    """
    folder = Path(folder)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    lightning.seed_everything(recipe.train.seed, verbose=False)
    material = read_data(recipe.data)
    if start_from is None:
        model = Translator(recipe.model, *make_tokenizers(recipe.data, material))
    else:
        model = start_from.to("cpu").train()
    examples = _examples(recipe, material, model, folder, progress=progress)
    loaders = _loaders(recipe, examples, material.valid, model)
    task = TranslationTask(model, recipe.train, total_steps=recipe.train.epochs * len(loaders[0]))
    best = ModelCheckpoint(
        folder / "checkpoints", "best", monitor="valid_bleu", mode="max", enable_version_counter=False
    )
    trainer = _trainer(recipe, folder, best, progress=progress)
    last = folder / "checkpoints" / "last.ckpt"
    _keep_earlier_log(folder / "logs")
    with _without_needless_warnings():
        trainer.fit(task, *loaders, ckpt_path=last if resume and last.is_file() else None, weights_only=True)
    if best.best_model_path:
        state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
        task.load_state_dict(state)
    metrics: dict[str, Any] = {name: float(value) for name, value in trainer.callback_metrics.items()}
    if best.best_model_score is not None:
        metrics["valid_bleu"] = float(best.best_model_score)
    metrics |= {"epochs": trainer.current_epoch, "steps": trainer.global_step, "seed": recipe.train.seed}
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    metrics |= {f"train_{name}": count for name, count in asdict(examples.report).items()}
    if material.test:
        metrics |= _test(model, material.test, folder, recipe)
    model.save(folder / "model", metrics=metrics)
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe), indent=2) + "\n", encoding="utf-8")
    return Trained(folder / "model", model, metrics)


@contextmanager
def _without_needless_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        # Small data needs no workers, and a validation of a few batches no more logging.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
        warnings.filterwarnings("ignore", message=".*log_every_n_steps.*")
        # The log of an earlier run is kept under another name, and its checkpoints are to be written over.
        warnings.filterwarnings("ignore", message=".*Previous log files in this directory will be deleted.*")
        warnings.filterwarnings("ignore", message=".*Checkpoint directory .* exists and is not empty.*")
        yield


def _keep_earlier_log(logs: Path) -> None:
    """Give the log of an earlier run a number: a new run, and one that goes on, would write over it."""
    if (logs / "metrics.csv").is_file():
        taken = len(list(logs.glob("metrics-*.csv")))
        (logs / "metrics.csv").replace(logs / f"metrics-{taken + 1}.csv")


def _test(model: Translator, pairs: Pairs, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Translate the test sentences with a beam of 5; the translations are kept beside the model."""
    sources = [source for source, _ in pairs]
    said = [best[0].text for best in model.translate(sources, beam=5, max_length=recipe.train.max_output or None)]
    lines = [f"{source}\t{target}\t{text}\n" for (source, target), text in zip(pairs, said, strict=True)]
    (folder / "test.tsv").write_text("".join(lines), encoding="utf-8")
    bleu = corpus_bleu(said, [target for _, target in pairs], lowercase=recipe.data.lowercase)
    return {"test_bleu": bleu.value, "test_signature": bleu.signature, "test_sentences": len(pairs)}


def _examples(recipe: Recipe, material: Material, model: Translator, folder: Path, *, progress: bool) -> Examples:
    """The training pairs as ids in a store of the folder; an earlier run's store of the same is used again."""
    tokenizers = model.source_tokenizer, model.target_tokenizer
    corpus = Corpus.build(
        material.train,
        *tokenizers,
        folder / "corpus",
        max_length=recipe.data.max_length,
        progress=progress,
        fingerprint=material.train.fingerprint,
    )
    if progress:
        sys.stderr.write(f"Training pairs: {corpus.report}.\n")
    dropout = recipe.data.bpe_dropout
    return DroppingCorpus(corpus, *tokenizers, dropout=dropout) if dropout else corpus


def _loaders(
    recipe: Recipe, examples: Examples, valid_pairs: Pairs, model: Translator
) -> tuple[BatchLoader, BatchLoader]:
    batches = TokenBatches(examples.lengths, max_tokens=recipe.train.max_tokens, shuffle=True, seed=recipe.train.seed)
    valid = TextPairs(valid_pairs, model.source_tokenizer, model.target_tokenizer)
    valid_batches = TokenBatches(valid.lengths, max_tokens=recipe.train.max_tokens, shuffle=False, seed=0)
    return BatchLoader(examples, batches, **_workers(recipe)), BatchLoader(valid, valid_batches)


def _workers(recipe: Recipe) -> dict[str, Any]:
    """How many processes prepare batches beside this one."""
    count = recipe.train.workers
    if count < 0:
        count = 2 if recipe.data.bpe_dropout and torch.cuda.is_available() else 0
    return {"num_workers": count, "persistent_workers": True} if count else {}


class _NewOrderEachEpoch(Callback):
    """Tells the batches which epoch it is, so that each has an order of its own."""

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        loader = trainer.train_dataloader
        if loader is not None and isinstance(loader.batch_sampler, TokenBatches):
            loader.batch_sampler.set_epoch(trainer.current_epoch)


class _StopWhenInterrupted(Callback):
    """Ctrl-C ends the training after this batch, so that the model is saved; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self._interrupted = False
        self._before: Any = None

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Take over Ctrl-C, where this is allowed: in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *_: self._stop(trainer))

    def teardown(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Give Ctrl-C back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _stop(self, trainer: lightning.Trainer) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = trainer.should_stop = True
        sys.stderr.write("\nStopping after this batch; the model will be saved. Once more to stop at once.\n")


def _running_average(decay: float) -> Callable[[Any, Any, Tensor], None]:
    """An exponential moving average that soon forgets where it began: over n steps it reaches back about n / 10."""

    def average(averaged: list[Tensor], current: list[Tensor], steps: Tensor) -> None:
        keep = ((1 + steps) / (10 + steps)).clamp(max=decay)
        torch._foreach_mul_(averaged, keep)
        torch._foreach_add_(averaged, torch._foreach_mul(current, 1 - keep))

    return average


def _trainer(recipe: Recipe, folder: Path, best: ModelCheckpoint, *, progress: bool) -> lightning.Trainer:
    config = recipe.train
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        # Products of float32 matrices round their factors to TF32, which no recipe has been seen to notice.
        torch.set_float32_matmul_precision("high")
    precision: Any = config.precision
    if precision == "auto":
        precision = "bf16-mixed" if on_gpu and recipe.model.architecture == "transformer" else "32-true"
    # Of its own: the `save_last` of a checkpoint that monitors a score keeps the last of the best, not the last.
    last = KeepLast(folder / "checkpoints" / "last.ckpt", minutes=config.checkpoint_minutes)
    stop = _StopWhenInterrupted()
    callbacks: list[Callback] = [best, last, stop, _NewOrderEachEpoch(), LearningRateMonitor("step")]
    if progress:
        callbacks.append(RichProgressBar())
    if config.average:
        callbacks.append(WeightAveraging(multi_avg_fn=_running_average(config.average)))
    if config.patience:
        callbacks.append(EarlyStopping("valid_bleu", mode="max", patience=config.patience))
    return lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=1,
        precision=precision,
        max_epochs=config.epochs,
        max_time=timedelta(minutes=config.minutes) if config.minutes else None,
        gradient_clip_val=config.clip,
        check_val_every_n_epoch=config.validate_every,
        callbacks=callbacks,
        logger=[CSVLogger(folder, "logs", ""), TensorBoardLogger(folder, "logs", "")],
        enable_progress_bar=progress,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
    )
