"""Training a translator: teacher-forced cross-entropy, validated by decoding."""

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import lightning.pytorch as lightning
import torch
from torch import Tensor
from torch.nn import functional

from regard.attention.align import Hard
from regard.data.batches import Batch
from regard.data.tokenizer import END, PAD
from regard.metrics.translation import corpus_bleu
from regard.systems.translator import Translator
from regard.training.recipe import TrainConfig


def step_size(schedule: str, done: float, warmup: float) -> float:
    """The step size, as a share of the highest, when a share of the training is done: it rises, and then falls."""
    rising = min(1.0, done / warmup)
    match schedule:
        case "one_cycle":
            falling = max(0.0, done - warmup) / max(1e-9, 1 - warmup)
            return rising * max(0.01, 0.5 * (1 + math.cos(math.pi * falling)))
        case "inverse_sqrt":
            return min(rising, math.sqrt(warmup / done))
        case _:
            return rising


@dataclass
class Plateau:
    """Halves the step size whenever a validation is not better than the best before it, down to 1 %.

    Luong et al. 2015 (section 4.1) halve it after each epoch from a fixed one on; here BLEU says when.
    """

    factor: float = 1.0
    best: float = -math.inf

    def after(self, value: float, *, warm: bool) -> None:
        """Take note of a validation; while the step size still rises, nothing is halved."""
        if warm and value <= self.best:
            self.factor = max(0.01, self.factor / 2)
        self.best = max(self.best, value)


class TranslationTask(lightning.LightningModule):
    """What one step of training and of validation does."""

    baseline: Tensor
    """Hard attention: the running mean of the reward."""

    def __init__(self, model: Translator, config: TrainConfig, total_steps: int) -> None:
        super().__init__()
        self.model, self.config, self.total_steps = model, config, total_steps
        self.register_buffer("baseline", torch.zeros(()))
        self._choosing = [module for module in model.modules() if isinstance(module, Hard)]
        self.plateau = Plateau()
        self._random: dict[str, Any] | None = None
        self._seconds = 0.0
        self._said: list[str] = []
        self._wanted: list[str] = []
        self._began = self._clock = time.perf_counter()
        self._tokens = 0

    def training_step(self, batch: Batch, index: int) -> Tensor:
        """Cross-entropy of the next word; with hard attention, also the REINFORCE term."""
        for align in self._choosing:
            align.soft = self.is_soft(self.global_step)
        loss, nll, count = self._loss(batch)
        self._tokens += count
        if index % 20 == 19:
            now = time.perf_counter()
            self.log("tokens/s", self._tokens / (now - self._clock), prog_bar=True)
            self._clock, self._tokens = now, 0
        self.log("loss", nll, prog_bar=True, batch_size=count)
        return loss

    def is_soft(self, step: int) -> bool:
        """Whether hard attention still is soft in this step."""
        return self._done(step + 1) < self.config.soft

    def validation_step(self, batch: Batch, index: int) -> None:
        """The loss of the given translations, and translations by decoding (never teacher-forced)."""
        _, nll, count = self._loss(batch)
        self.log("valid_loss", nll, batch_size=count)
        tokenizer = self.model.target_tokenizer
        found = self.model.search(
            batch.source,
            batch.source_lengths,
            beam=self.config.valid_beam,
            max_length=self.config.max_output or None,
        )
        self._said += [tokenizer.decode(outputs[0].tokens) for outputs in found]
        self._wanted += [
            tokenizer.decode([t for t in row if t not in (PAD, END)]) for row in batch.target[:, 1:].tolist()
        ]

    def on_validation_epoch_end(self) -> None:
        """BLEU and exact match of the decoded translations."""
        exact = sum(said == wanted for said, wanted in zip(self._said, self._wanted, strict=True)) / len(self._said)
        bleu = corpus_bleu(self._said, self._wanted, lowercase=True).value
        self.plateau.after(bleu, warm=self._done(self.global_step) > self.config.warmup)
        self.log("valid_bleu", bleu, prog_bar=True)
        self.log("valid_exact", exact, prog_bar=True)
        self._said, self._wanted = [], []

    def configure_optimizers(self) -> Any:
        """Adam, with a step size that rises and falls."""
        config = self.config
        optimizer = torch.optim.AdamW(
            self.parameters(),
            lr=config.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=config.weight_decay,
            fused=self.device.type == "cuda",
        )
        self._began = time.perf_counter() - self._seconds

        def factor(step: int) -> float:
            size = step_size(config.schedule, self._done(step + 1), max(config.warmup, 1 / self.total_steps))
            return size * self.plateau.factor if config.schedule == "plateau" else size

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what decides how training goes on: random numbers, the time spent, the halvings of the step size."""
        checkpoint["plateau"] = asdict(self.plateau)
        checkpoint["seconds"] = time.perf_counter() - self._began
        checkpoint["random"] = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from there; a checkpoint of an earlier version may lack some of it."""
        self.plateau = Plateau(**checkpoint.get("plateau", {}))
        self._seconds = checkpoint.get("seconds", 0.0)
        self._random = checkpoint.get("random")

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """The first batch after a resumption draws the numbers that it would have drawn without one."""
        if self._random is not None:
            torch.set_rng_state(self._random["cpu"].cpu())
            torch.cuda.set_rng_state_all([state.cpu() for state in self._random["cuda"]])
            self._random = None

    def _done(self, step: int) -> float:
        """The share of the training that is done: with a time limit, whatever ends first, the steps or the time."""
        done = step / self.total_steps
        if self.config.minutes:
            done = max(done, (time.perf_counter() - self._began) / (60 * self.config.minutes))
        return min(1.0, done)

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor, int]:
        """The loss to minimise, the plain cross-entropy per word, and the number of words."""
        given, wanted = batch.target[:, :-1], batch.target[:, 1:]
        unrolled = self.model.decoder(self.model.encode(batch.source, batch.source_lengths), given)
        real = wanted != PAD
        # Padding gets no logits: the output layer is the largest product.
        logits = self.model.decoder.output(unrolled.features[real]).float()
        targets = wanted[real]
        log_probs = functional.log_softmax(logits, dim=-1)
        nll = functional.nll_loss(log_probs, targets, reduction="none")
        smoothing = self.config.label_smoothing
        loss = nll.mean() if not smoothing else (1 - smoothing) * nll.mean() - smoothing * log_probs.mean()
        if unrolled.log_prob is not None and unrolled.entropy is not None and self.training:
            advantage = -nll.detach() - self.baseline
            self.baseline.lerp_((-nll.detach()).mean(), 0.1)
            loss = loss - self.config.reward * (advantage * unrolled.log_prob[real]).mean()
            loss = loss - self.config.entropy * unrolled.entropy[real].mean()
        if unrolled.overlap is not None and self.config.overlap:
            loss = loss + self.config.overlap * unrolled.overlap[real].mean()
        return loss, nll.detach().mean(), len(targets)
