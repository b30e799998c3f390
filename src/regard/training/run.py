"""Running a recipe: read the data, train, keep the best, save the model folder."""

import hashlib
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice
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
from torch.utils.data import DataLoader

from regard.data.batches import TextPairs, TokenBatches, collate
from regard.data.corpus import Corpus
from regard.data.text import read_pairs, read_tsv
from regard.data.tokenizer import Tokenizer
from regard.errors import OptionError
from regard.metrics.translation import corpus_bleu
from regard.systems.translator import Translator
from regard.training.recipe import DataConfig, Recipe
from regard.training.translation import TranslationTask

Pairs = list[tuple[str, str]]


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
    Interrupting (Ctrl-C) ends the training early and saves what is there.
    """
    folder = Path(folder)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    lightning.seed_everything(recipe.train.seed, verbose=False)
    train_pairs, valid_pairs, test_pairs = read_data(recipe.data)
    if start_from is None:
        source_tokenizer, target_tokenizer = make_tokenizers(recipe.data, train_pairs)
        model = Translator(recipe.model, source_tokenizer, target_tokenizer)
    else:
        model = start_from.to("cpu").train()
    loaders = _loaders(recipe, train_pairs, valid_pairs, model, folder)
    task = TranslationTask(model, recipe.train, total_steps=recipe.train.epochs * len(loaders[0]))
    best = ModelCheckpoint(
        folder / "checkpoints", "best", monitor="valid_bleu", mode="max", enable_version_counter=False
    )
    trainer = _trainer(recipe, folder, best, progress=progress)
    last = folder / "checkpoints" / "last.ckpt"
    with warnings.catch_warnings():
        # Small data needs no workers, and a validation of a few batches no more logging.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
        warnings.filterwarnings("ignore", message=".*log_every_n_steps.*")
        trainer.fit(task, *loaders, ckpt_path=last if resume and last.is_file() else None, weights_only=True)
    if best.best_model_path:
        state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
        task.load_state_dict(state)
    metrics: dict[str, Any] = {name: float(value) for name, value in trainer.callback_metrics.items()}
    if best.best_model_score is not None:
        metrics["valid_bleu"] = float(best.best_model_score)
    metrics |= {"epochs": trainer.current_epoch, "steps": trainer.global_step, "seed": recipe.train.seed}
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    if test_pairs:
        metrics |= _test(model, test_pairs, folder, lowercase=recipe.data.lowercase)
    model.save(folder / "model", metrics=metrics)
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe), indent=2) + "\n", encoding="utf-8")
    return Trained(folder / "model", model, metrics)


def read_data(config: DataConfig) -> tuple[Pairs, Pairs, Pairs]:
    """The pairs to train on, to validate with, and to test with (maybe none); empty pairs are left out."""
    if config.world:
        return _world(config)
    folder = Path(config.folder)
    if config.pairs:
        pairs = list(_filled(read_tsv(folder / config.pairs, config.columns)))
    elif config.source and config.target:
        pairs = list(_filled(read_pairs(folder / config.source, folder / config.target)))
    else:
        raise OptionError("Say what to train on: source and target, or pairs, or world.")
    test: Pairs = []
    if config.test_source and config.test_target:
        test = list(_filled(read_pairs(folder / config.test_source, folder / config.test_target)))
    elif config.held_out_test:
        pairs, test = hold_out(pairs, config.held_out_test)
    if config.valid_source and config.valid_target:
        return pairs, list(_filled(read_pairs(folder / config.valid_source, folder / config.valid_target))), test
    return *hold_out(pairs, config.held_out), test


def hold_out(pairs: Pairs, count: int) -> tuple[Pairs, Pairs]:
    """Split by source sentence, so that no sentence is in both parts, however often it is translated.

    A sentence is held out by a number made of its own text, so that the split does not change with the other sentences.
    """
    sources = sorted({source for source, _ in pairs}, key=lambda text: hashlib.sha256(text.encode()).digest())
    held = set(sources[: min(count, len(sources) // 10 + 1)])
    kept = [pair for pair in pairs if pair[0] not in held]
    if not kept:
        raise OptionError(f"{len(sources)} different source sentences are too few to hold some out. Give valid_source.")
    first = {source: target for source, target in reversed(pairs) if source in held}
    return kept, sorted(first.items())


def _test(model: Translator, pairs: Pairs, folder: Path, *, lowercase: bool) -> dict[str, Any]:
    """Translate the test sentences with a beam of 5; the translations are kept beside the model."""
    said = [best[0].text for best in model.translate([source for source, _ in pairs], beam=5)]
    lines = [f"{source}\t{target}\t{text}\n" for (source, target), text in zip(pairs, said, strict=True)]
    (folder / "test.tsv").write_text("".join(lines), encoding="utf-8")
    bleu = corpus_bleu(said, [target for _, target in pairs], lowercase=lowercase)
    return {"test_bleu": bleu.value, "test_signature": bleu.signature, "test_sentences": len(pairs)}


def make_tokenizers(config: DataConfig, pairs: Pairs) -> tuple[Tokenizer, Tokenizer]:
    """Trained on the training pairs: one for both sides, or one for each."""
    options: dict[str, Any] = {"size": config.vocabulary, "kind": config.tokens, "lowercase": config.lowercase}
    if config.joint:
        tokenizer = Tokenizer.train((text for pair in pairs for text in pair), **options)
        return tokenizer, tokenizer
    return (
        Tokenizer.train((source for source, _ in pairs), **options),
        Tokenizer.train((target for _, target in pairs), **options),
    )


def _filled(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((source, target) for source, target in pairs if source.strip() and target.strip())


def _world(config: DataConfig) -> tuple[Pairs, Pairs, Pairs]:
    name, _, direction = config.world.partition(":")
    source, _, target = direction.partition("-")
    if name != "babel":
        raise OptionError(f"A world is written babel:en-fr; got {config.world!r}.")
    from regard.worlds.babel import pairs

    def take(split: str, count: int) -> Pairs:
        generated = pairs(source, target, split=split, max_words=config.max_words)
        return [(" ".join(pair.source), " ".join(pair.target)) for pair in islice(generated, count)]

    return take("train", config.examples), take("valid", config.held_out), take("test", config.held_out_test)


def _loaders(
    recipe: Recipe, train_pairs: Pairs, valid_pairs: Pairs, model: Translator, folder: Path
) -> tuple[DataLoader[Any], DataLoader[Any]]:
    tokenizers = model.source_tokenizer, model.target_tokenizer
    examples: TextPairs | Corpus
    if recipe.data.bpe_dropout:
        examples = TextPairs(train_pairs, *tokenizers, dropout=recipe.data.bpe_dropout)
    else:
        store = folder / "corpus"
        examples = Corpus.build(train_pairs, *tokenizers, store, max_length=recipe.data.max_length)
    batches = TokenBatches(examples.lengths, max_tokens=recipe.train.max_tokens, shuffle=True, seed=recipe.train.seed)
    valid = TextPairs(valid_pairs, *tokenizers)
    valid_batches = TokenBatches(valid.lengths, max_tokens=recipe.train.max_tokens, shuffle=False, seed=0)
    return (
        DataLoader(examples, batch_sampler=batches, collate_fn=collate),  # type: ignore[arg-type]
        DataLoader(valid, batch_sampler=valid_batches, collate_fn=collate),  # type: ignore[arg-type]
    )


class _NewOrderEachEpoch(Callback):
    """Tells the batches which epoch it is, so that each has an order of its own."""

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        loader = trainer.train_dataloader
        if loader is not None and isinstance(loader.batch_sampler, TokenBatches):
            loader.batch_sampler.set_epoch(trainer.current_epoch)


class _StopWhenInterrupted(Callback):
    """Ctrl-C ends the training after this batch, so that the model is saved; a second Ctrl-C ends it at once."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self._interrupted = False
        self._before: Any = None

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Take over Ctrl-C, where this is allowed: in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *_: self._stop(trainer))

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Leave a checkpoint to resume from."""
        if self._interrupted:
            trainer.save_checkpoint(self.checkpoint)

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
    precision: Any = config.precision
    if precision == "auto":
        precision = "bf16-mixed" if on_gpu and recipe.model.architecture == "transformer" else "32-true"
    stop = _StopWhenInterrupted(folder / "checkpoints" / "last.ckpt")
    # Of its own: the `save_last` of a checkpoint that monitors a score keeps the last of the best, not the last.
    last = ModelCheckpoint(folder / "checkpoints", "last", save_on_train_epoch_end=True, enable_version_counter=False)
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
