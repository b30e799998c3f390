"""Training a captioner: cross-entropy, the doubly stochastic penalty, REINFORCE for hard attention, and rewards."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.attention.align import Hard
from regard.data.captioned_images import CaptionBatch
from regard.data.captioned_images import CaptionedImages as Gallery
from regard.data.tokenizer import PAD
from regard.decoders.protocol import Unrolled
from regard.errors import OptionError
from regard.metrics.captions import caption_scores
from regard.systems.captioner import Captioner
from regard.training.caption_material import adopt, make_tokenizer, read_material
from regard.training.caption_recipe import CaptionRecipe, CaptionTrainConfig
from regard.training.critical import Critic, critical_loss, repeated
from regard.training.fitting import fit
from regard.training.task import Task

MOST_ON_GPU = 8 * 2**30
"""Bytes of pictures or features up to which they are all put on the GPU."""


class CaptioningTask(Task):
    """What one step of training and of validation does."""

    baseline: Tensor
    """Hard attention: the running mean of the reward, b <- 0.9 b + 0.1 log p (Xu et al. 2015, section 4.1)."""

    def __init__(
        self,
        model: Captioner,
        config: CaptionTrainConfig,
        total_steps: int,
        references: Sequence[Sequence[str]],
        critic: Critic | None = None,
    ) -> None:
        super().__init__(config, total_steps)
        self.model, self.config, self.references, self.critic = model, config, references, critic
        self.register_buffer("baseline", torch.zeros(()))
        self._choosing = [module for module in model.modules() if isinstance(module, Hard)]
        self._said: dict[int, str] = {}
        self._clock = time.perf_counter()
        self._seen = 0

    def training_step(self, batch: CaptionBatch, index: int) -> Tensor:
        """Cross-entropy of the next word, and what the attention adds; at the end, rewards of drawn captions."""
        if self.critic is not None and self.share_done(self.global_step + 1) > 1 - self.config.critical:
            return self._critical_step(self.critic, batch, index)
        encoded, target = self.model.encode(batch.images), batch.target
        is_soft = self._toss(len(batch))
        if is_soft is not None and self.config.samples > 1:
            # The coin is tossed once for all samples of a caption.
            encoded, times = repeated(encoded, self.config.samples), self.config.samples
            target, is_soft = target.repeat(times, 1), is_soft.repeat(times)
        for align in self._choosing:
            align.soft = True if is_soft is None else is_soft
        given, wanted = target[:, :-1], target[:, 1:]
        # The penalty needs weights, and only soft attention has any that say more than what was chosen.
        penalised = self.config.doubly > 0 and is_soft is None
        unrolled = self.model.decoder(encoded, given, weights=penalised)
        nll, loss = self._cross_entropy(unrolled, wanted)
        self.log("loss", nll[wanted != PAD].mean().detach(), batch_size=len(batch))
        if penalised and unrolled.weights is not None:
            penalty = doubly_stochastic(unrolled.weights, wanted != PAD)
            self.log("doubly", penalty.detach(), batch_size=len(batch))
            loss = loss + self.config.doubly * penalty
        if is_soft is not None and unrolled.log_prob is not None:
            loss = loss + self._reinforce(unrolled, nll, wanted != PAD, is_soft)
        self._count(batch, index)
        return loss

    def validation_step(self, batch: CaptionBatch, index: int) -> None:
        """The loss of one caption of each picture, and captions by decoding (never teacher-forced)."""
        encoded = self.model.encode(batch.images)
        unrolled = self.model.decoder(encoded, batch.target[:, :-1])
        wanted = batch.target[:, 1:]
        nll, _ = self._cross_entropy(unrolled, wanted)
        self.log("valid_loss", nll[wanted != PAD].mean(), batch_size=len(batch))
        found = self.model.search(batch.images, beam=self.config.valid_beam, max_length=self.config.max_output)
        for place, outputs in zip(batch.indices.tolist(), found, strict=True):
            self._said[place] = self.model.tokenizer.decode(outputs[0].tokens)

    def on_validation_epoch_end(self) -> None:
        """BLEU-4, CIDEr-D and exact match of the decoded captions, each against all references of its picture."""
        places = sorted(self._said)
        said, wanted = [self._said[place] for place in places], [self.references[place] for place in places]
        scores = caption_scores(said, wanted, meteor=False)
        self.note_validation(scores.bleu[3])
        self.log("valid_bleu", scores.bleu[3], prog_bar=True)
        self.log("valid_bleu1", scores.bleu[0])
        self.log("valid_cider", scores.cider_d, prog_bar=True)
        self.log("valid_exact", scores.exact_match)
        self._said = {}

    def _critical_step(self, critic: Critic, batch: CaptionBatch, index: int) -> Tensor:
        self.model.eval()
        loss, reward = critical_loss(
            self.model,
            critic,
            self.model.encode(batch.images),
            batch.indices,
            draws=self.config.draws,
            max_length=self.config.max_output,
        )
        self.model.train()
        self.log("reward", reward, batch_size=len(batch))
        self._count(batch, index)
        return loss

    def _toss(self, rows: int) -> Bool[Tensor, "b"] | None:
        """Which captions are read with soft attention; None where all are."""
        if not self._choosing or self.share_done(self.global_step + 1) < self.config.soft:
            return None
        return torch.rand(rows, device=self.device) < self.config.coin

    def _cross_entropy(self, unrolled: Unrolled, wanted: Tensor) -> tuple[Float[Tensor, "b m"], Tensor]:
        """The loss of each word (0 for padding), and their mean with smoothing."""
        real = wanted != PAD
        # Padding gets no logits: the output layer is the largest product.
        logits = self.model.decoder.output(unrolled.features[real]).float()
        log_probs = functional.log_softmax(logits, dim=-1)
        each = functional.nll_loss(log_probs, wanted[real], reduction="none")
        smoothing = self.config.label_smoothing if self.training else 0.0
        loss = each.mean() if not smoothing else (1 - smoothing) * each.mean() - smoothing * log_probs.mean()
        nll = torch.zeros(wanted.shape, device=each.device).masked_scatter(real, each.detach())
        return nll, loss

    def _reinforce(
        self, unrolled: Unrolled, nll: Float[Tensor, "b m"], real: Bool[Tensor, "b m"], is_soft: Bool[Tensor, "b"]
    ) -> Tensor:
        """-(log p - baseline) log p(choice), and an entropy bonus, over the words whose cell was drawn.

        The baseline is the running mean of log p, or, with several samples of a caption, the mean of log p of the same
        word in the others.
        """
        if unrolled.log_prob is None or unrolled.entropy is None:
            raise TypeError("Hard attention gives the log-probability and the entropy of its choices.")
        drawn = real & ~is_soft.unsqueeze(1)
        count = drawn.sum().clamp_min(1)
        reward, samples = -nll, self.config.samples
        if samples > 1:
            groups = reward.unflatten(0, (samples, -1))
            baseline = ((groups.sum(0) - groups) / (samples - 1)).flatten(0, 1)
        else:
            baseline = self.baseline.clone().expand_as(reward)
            self.baseline.lerp_((reward * drawn).sum() / count, 0.1)
        term = ((reward - baseline) * unrolled.log_prob * drawn).sum() / count
        entropy = (unrolled.entropy * drawn).sum() / count
        self.log("entropy", entropy.detach(), batch_size=len(nll))
        loss: Tensor = -self.config.reward * term - self.config.entropy * entropy
        return loss

    def _count(self, batch: CaptionBatch, index: int) -> None:
        self._seen += len(batch)
        if index % 20 == 19:
            now = time.perf_counter()
            self.log("captions/s", self._seen / (now - self._clock), batch_size=len(batch))
            self._clock, self._seen = now, 0


def doubly_stochastic(weights: Float[Tensor, "b m n"], real: Bool[Tensor, "b m"]) -> Float[Tensor, ""]:
    """The mean over cells and captions of (1 - sum_t alpha_ti)^2 (Xu et al. 2015, equation 14: its sum over cells)."""
    seen = (weights.float() * real.unsqueeze(-1)).sum(1)
    return (1 - seen).square().mean()


def train_captioner(
    recipe: CaptionRecipe, folder: Path, start_from: Captioner | None, *, resume: bool, progress: bool
) -> tuple[Captioner, dict[str, Any]]:
    """Train a captioner, and test it with a beam of 5 on pictures that nothing was chosen by, or else on those of the
    validation."""
    config, device = recipe.train, "cuda" if torch.cuda.is_available() else "cpu"
    if config.critical and config.draws < 2:
        raise OptionError(
            f"Captions are rewarded against each other: train.draws must be 2 or more; got {config.draws}."
        )
    material = read_material(recipe, progress=progress)
    if start_from is None:
        model = Captioner(recipe.model, make_tokenizer(recipe.data, material.train))
    else:
        model = start_from.to("cpu").train()
    adopt(model, material.reduction, new=start_from is None)
    train, valid = _placed(material.train, device), _placed(material.valid, device)
    examples = train.examples(model.tokenizer, max_length=recipe.data.max_length)
    loaders = (
        examples.loader(max_tokens=config.max_tokens, shuffle=True, bucket=config.alike, seed=config.seed),
        valid.first_captions(model.tokenizer).loader(max_tokens=4 * config.max_tokens, shuffle=False),
    )
    if model.network is not None:
        # With channels last, convolutions need not change the layout of each map.
        model.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    critic = Critic(train.captions) if config.critical else None
    task = CaptioningTask(model, config, config.epochs * len(loaders[0]), material.valid.captions, critic)
    metrics = fit(task, loaders, folder, score="valid_bleu", half_on_gpu=False, resume=resume, progress=progress)
    model.to(device).eval()
    metrics |= {"train_pictures": len(train), "train_captions": len(examples), "valid_pictures": len(valid)}
    metrics |= _decoded(model, valid, "valid", folder, config)
    if material.test is not None:
        metrics |= _decoded(model, _placed(material.test, device), "test", folder, config)
    return model, metrics


def _decoded(
    model: Captioner, gallery: Gallery, part: str, folder: Path, config: CaptionTrainConfig
) -> dict[str, float]:
    """The scores of captions found with a beam of 5; the captions are kept beside the model."""
    said: list[str] = []
    for places in torch.arange(len(gallery)).split(100):
        shown = gallery.images.take(places).to(model.device)
        found = model.search(shown, beam=5, max_length=config.max_output)
        said += [model.tokenizer.decode(outputs[0].tokens) for outputs in found]
    lines = ["\t".join([text, *wanted]) + "\n" for text, wanted in zip(said, gallery.captions, strict=True)]
    (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
    scores = caption_scores(said, gallery.captions, meteor=False)
    named = {f"beam_bleu{order}": value for order, value in enumerate(scores.bleu, 1)}
    named |= {"beam_rouge_l": scores.rouge_l, "beam_cider_d": scores.cider_d, "beam_exact": scores.exact_match}
    return {f"{part}_{name}": value for name, value in named.items()}


def _placed(gallery: Gallery, device: str) -> Gallery:
    """On the GPU, where there is one and the pictures are not too many for it."""
    size = gallery.images.values.nbytes
    return replace(gallery, images=gallery.images.to(device)) if size <= MOST_ON_GPU else gallery
