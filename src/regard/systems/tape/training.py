"""How a memory machine learns: cross-entropy of the bits that count, on tapes that are new in every update."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader, CostBatches
from regard.data.splits import Splits
from regard.errors import OptionError
from regard.systems.tape.config import TapeData, TapeTest, TapeTrain
from regard.systems.tape.evaluation import evaluate, score_tapes, tapes_of_all_lengths, tapes_of_length
from regard.systems.tape.model import TuringMachine
from regard.training import processes
from regard.training.experiment import Experiment
from regard.training.task import Task as TrainingTask
from regard.worlds.tapes import RepeatCopy, Tapes, Task

VALID_SEED = 2**33
"""Seed of the tapes to validate with: beyond those of evaluations, and apart from those of training."""


class TapeTask(TrainingTask):
    """The steps of training and validation.

    Tapes follow from the seed and the number of the update alone, so that a resumed training sees the same ones.
    """

    unit = "tapes"
    tolerated_losses = 100
    settings: TapeTrain

    def __init__(self, model: TuringMachine, settings: TapeTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model, self.is_recordable = model, not model.custom_parts

    def prepared(self, batch: int) -> Tapes:
        """The tapes of this update, or the part of them that this process learns from."""
        tapes = self.tapes(self.step)
        part = slice(processes.rank(), None, processes.count())
        return tapes._replace(inputs=tapes.inputs[part], targets=tapes.targets[part])

    def amount(self, batch: Tapes) -> int:
        """The number of tapes."""
        return len(batch.inputs)

    def loss(self, batch: Tapes) -> Tensor:
        """Mean cross-entropy of the bits that count."""
        loss = bit_loss(self.model(batch.inputs), batch)
        self.log("loss", loss, batch_size=len(batch.inputs))
        return loss

    def tapes(self, step: int) -> Tapes:
        """The tapes of an update."""
        settings, task = self.settings, self.model.task
        random = Random(f"{settings.seed} {step}")  # noqa: S311 - not for secrets
        generator = torch.Generator(self.model.device).manual_seed(random.getrandbits(63))
        length = random.randint(task.min_length, self.longest(step, task.min_length, task.max_length))
        if isinstance(task, RepeatCopy):
            # Drawn here: asking the GPU for a number would wait for it.
            repeats = random.randint(1, self.longest(step, 1, task.max_repeats))
            return task.write(task.draw(settings.batch_size, length, generator, repeats=repeats))
        return task.sample(settings.batch_size, length, generator)

    def longest(self, step: int, shortest: int, longest: int) -> int:
        """The greatest length, or number of copies, in an update: it grows from `shortest` to `longest`."""
        if not self.settings.curriculum:
            return longest
        grown = min(1.0, self.fraction_done(step) / self.settings.curriculum)
        return max(1, shortest + round(grown * (longest - shortest)))

    def validate(self, batch: Tapes) -> None:
        """Bits per sequence, and how much of the answers is right."""
        scored = score_tapes(self.model(batch.inputs), batch)
        count = len(batch.inputs)
        self.log("valid_bits", scored.bits.mean(), batch_size=count)
        self.log("valid_log_likelihood", -scored.bits.mean(), batch_size=count)
        self.log("valid_exact", 100 * scored.exact.double().mean(), batch_size=count)

    def clip(self) -> None:
        """Clip the norm of the gradients; an update whose gradients overflow changes nothing."""
        clip_finite(list(self.model.parameters()), self.settings.gradient_clip or math.inf)

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Adam, or RMSprop with the smoothing and momentum of Graves 2013."""
        settings, parameters = self.settings, list(self.model.parameters())
        if settings.optimizer == "adam":
            return torch.optim.AdamW(
                parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=self.may_fuse or None
            )
        return torch.optim.RMSprop(
            parameters,
            lr=settings.learning_rate,
            alpha=0.95,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )


def bit_loss(logits: Tensor, tapes: Tapes) -> Tensor:
    """The mean cross-entropy of the bits that count, in nats; 0 where there are none."""
    each = functional.binary_cross_entropy_with_logits(logits.float(), tapes.targets, reduction="none")
    counted = tapes.scored[:, None]
    return (each * counted).sum() / (counted.sum() * logits.shape[0] * logits.shape[2]).clamp_min(1)


def clip_finite(parameters: Sequence[Tensor], max_norm: float) -> None:
    """Scale gradients to a norm of at most `max_norm`, and to 0 if one of them is not finite.

    Over many steps the gradient of a sharp focus can grow beyond all numbers; clipped as it is, it would become NaN.
    """
    grads = [part.grad for part in parameters if part.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    # Decided on the device: asking a GPU whether the norm is finite would wait for it.
    scale = torch.where(norm.isfinite(), (max_norm / (norm + 1e-6)).clamp(max=1.0), 0.0)
    for grad in grads:
        grad.nan_to_num_(0.0, 0.0, 0.0)
    torch._foreach_mul_(grads, scale)


class TapeExperiment(Experiment[TuringMachine]):
    """Tapes in, a trained memory machine out."""

    Data = TapeData
    Train = TapeTrain
    score = "valid_log_likelihood"

    def read_data(self) -> Splits[Task, list[Tapes]]:
        """The task, and tapes to validate with; those to test with are drawn when testing."""
        data = self.recipe.data
        task = data.make_task()
        valid = tapes_of_all_lengths(task, data.valid_tapes, seed=VALID_SEED)
        for length in data.valid_lengths:
            valid += tapes_of_length(task, length, data.valid_tapes, seed=VALID_SEED + 2**19 + length)
        return Splits(task, valid, None)

    def build(self, splits: Splits[Task, list[Tapes]]) -> TuringMachine:
        """A new machine, whose memory can hold the longest sequence."""
        model = TuringMachine(self.recipe.model, splits.train)
        model.check_slots(splits.train.max_length)
        try:
            model.check_slots(max(self.recipe.data.valid_lengths, default=0))
        except OptionError as error:
            raise OptionError(f"[data] valid_lengths: {error}") from error
        return model

    def check_model(self, model: TuringMachine, splits: Splits[Task, list[Tapes]]) -> None:
        """The numbers on a tape must be the same; lengths may differ."""
        old, new = model.task, splits.train
        if (old.name, old.input_size, old.output_size) != (new.name, new.input_size, new.output_size):
            raise OptionError(
                f"The machine to start from was trained for {old.name} with {old.bits} bits, and this recipe asks for "
                f"{new.name} with {new.bits}. Set --data.task and --data.bits."
            )
        model.task = new

    def task(
        self, model: TuringMachine, splits: Splits[Task, list[Tapes]]
    ) -> tuple[TrainingTask, BatchLoader, BatchLoader]:
        """Numbers of updates to train with, and tapes to validate with."""
        settings = self.recipe.train
        if settings.batch_size < processes.count():
            raise OptionError(f"{processes.count()} processes cannot divide a batch_size of {settings.batch_size}.")
        train = _one_by_one(range(settings.epoch_updates))
        task = TapeTask(model, settings, total_steps=settings.epochs * settings.epoch_updates)
        return task, train, _one_by_one(splits.valid)

    def test(self, model: TuringMachine, splits: Splits[Task, list[Tapes]]) -> dict[str, Any]:
        """Bits per sequence on 1,000 fresh tapes, and the bits that are right on longer ones."""
        report = evaluate(model, TapeTest())
        metrics: dict[str, Any] = {
            "parameters": sum(part.numel() for part in model.parameters()),
            "test_tapes": TapeTest().count,
            "test_bits": report["bits per sequence"],
            "test_exact": report["exact sequences"],
            "test_bits_right": report["bits right"],
        }
        for row in report.tables.get("By length", []):
            metrics[f"length_{row['length']}_bits_right"] = row["bits right"]
        return metrics


def _one_by_one(items: Any) -> BatchLoader:
    batches = CostBatches(np.ones((len(items), 1), dtype=np.int64), max_cost=1, shuffle=False, seed=0)
    return BatchLoader(items, batches, collate_fn=lambda parts: parts[0], divisible=False)
