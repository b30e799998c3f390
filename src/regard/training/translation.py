"""Training a translator: teacher-forced cross-entropy, validated by decoding."""

import time

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention import mask
from regard.attention.align import Hard
from regard.data.pairs import Batch
from regard.data.tokenizer import END, PAD
from regard.metrics.translation import corpus_bleu
from regard.systems.translator import Translator
from regard.training.recipe import TrainConfig
from regard.training.task import Task


class TranslationTask(Task):
    """What one step of training and of validation does."""

    baseline: Tensor
    """Hard attention: the running mean of the reward."""

    def __init__(self, model: Translator, config: TrainConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        self.model, self.config = model, config
        self.register_buffer("baseline", torch.zeros(()))
        self._choosing = [module for module in model.modules() if isinstance(module, Hard)]
        self._said: list[str] = []
        self._wanted: list[str] = []
        self._clock = time.perf_counter()
        self._tokens = 0

    def training_step(self, batch: Batch, index: int) -> Tensor:
        """Cross-entropy of the next word; with hard attention, also the REINFORCE term."""
        for align in self._choosing:
            align.soft = self.is_soft(self.global_step)
        loss, nll, count = self._loss(batch)
        self._tokens += count
        if index % 20 == 19:
            now = time.perf_counter()
            self.log("tokens/s", self._tokens / (now - self._clock))
            self._clock, self._tokens = now, 0
        self.log("loss", nll, batch_size=count)
        return loss

    def is_soft(self, step: int) -> bool:
        """Whether hard attention still is soft in this step."""
        return self.share_done(step + 1) < self.config.soft

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
        self.note_validation(bleu)
        self.log("valid_bleu", bleu, prog_bar=True)
        self.log("valid_exact", exact, prog_bar=True)
        self._said, self._wanted = [], []

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor, int]:
        """The loss to minimise, the plain cross-entropy per word, and the number of words."""
        given, wanted = batch.target[:, :-1], batch.target[:, 1:]
        unrolled = self.model.decoder(self.model.encode(batch.source, batch.source_lengths), given)
        # Found on the CPU: a GPU would have to be waited for.
        is_word = mask.padding(batch.target_lengths - 1, wanted.shape[1])
        places = is_word.flatten().nonzero().squeeze(1).to(wanted.device, non_blocking=wanted.is_cuda)

        def of_words(each: Tensor) -> Tensor:
            return each.flatten(0, 1).index_select(0, places)

        # Padding gets no logits: the output layer is the largest product.
        logits = self.model.decoder.output(of_words(unrolled.features)).float()
        targets = of_words(wanted)
        log_probs = functional.log_softmax(logits, dim=-1)
        nll = functional.nll_loss(log_probs, targets, reduction="none")
        smoothing = self.config.label_smoothing
        loss = nll.mean() if not smoothing else (1 - smoothing) * nll.mean() - smoothing * log_probs.mean()
        if unrolled.log_prob is not None and unrolled.entropy is not None and self.training:
            advantage = -nll.detach() - self.baseline
            self.baseline.lerp_((-nll.detach()).mean(), 0.1)
            loss = loss - self.config.reward * (advantage * of_words(unrolled.log_prob)).mean()
            loss = loss - self.config.entropy * of_words(unrolled.entropy).mean()
        if unrolled.overlap is not None and self.config.overlap:
            loss = loss + self.config.overlap * of_words(unrolled.overlap).mean()
        return loss, nll.detach().mean(), len(targets)
