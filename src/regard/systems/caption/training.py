"""How a captioner learns: cross-entropy, penalties and guidance of its attention, REINFORCE, and rewards."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.align import Hard
from regard.attention.guidance import guidance_loss
from regard.data.batches import BatchLoader
from regard.data.captioned_images import CaptionBatch, CaptionedImages
from regard.data.features import SUMS
from regard.data.tokenizer import PAD
from regard.decoders.protocol import Unrolled
from regard.encoders.encoded import Encoded
from regard.errors import OptionError
from regard.files import checksum, write_text
from regard.metrics.captions import caption_scores
from regard.systems.caption.config import CaptionData, CaptionOptions, CaptionTrain
from regard.systems.caption.data import CaptionSplits, check_reduction, fit_novelty, read_splits, train_tokenizer
from regard.systems.caption.guidance import WordCells
from regard.systems.caption.model import Captioner
from regard.systems.caption.self_critical import Critic, repeated, self_critical_loss
from regard.systems.caption.views import Views
from regard.systems.system import choose_device
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment
from regard.training.losses import (
    RunningBaseline,
    advantage_over_others,
    mean_where,
    reinforce_loss,
    smoothed_cross_entropy,
)
from regard.training.processes import gathered
from regard.training.task import Task

MAX_TOKENS = 2000
"""Words in a batch, where their number is chosen automatically."""
MAX_BYTES_ON_GPU = 8 * 2**30
"""Size of images or features up to which all of them are put on the GPU."""


class CaptionTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "captions"
    has_unused_parameters = True
    settings: CaptionTrain

    def __init__(
        self,
        model: Captioner,
        settings: CaptionTrain,
        total_steps: int,
        references: Sequence[Sequence[str]],
        critic: Critic | None = None,
        views: Views | None = None,
    ) -> None:
        super().__init__(settings, total_steps)
        self.model, self.references, self.critic, self.views = model, references, critic, views
        self.baseline = RunningBaseline()
        self._is_hard = any(isinstance(module, Hard) for module in model.modules())
        self.word_cells = WordCells(len(model.tokenizer), model.annotations.dim) if settings.matching else None
        self._predictions: dict[int, str] = {}

    def loss(self, batch: CaptionBatch) -> Tensor:
        """Cross-entropy of the next word and what the attention adds; at the end, rewards of sampled captions."""
        settings = self.settings
        if self.views is not None:
            batch = self.views.draw(batch)
        if self.critic is not None and self.fraction_done(self.step + 1) > 1 - settings.self_critical_fraction:
            return self._self_critical_loss(self.critic, batch)
        encoded, target = self.model.encode(batch.images), batch.target
        is_soft = self._soft_rows(len(batch))
        if is_soft is not None and settings.attention_samples > 1:
            # All samples of a caption are read in the same way.
            times = settings.attention_samples
            encoded, target, is_soft = repeated(encoded, times), target.repeat(times, 1), is_soft.repeat(times)
        inputs, targets = target[:, :-1], target[:, 1:]
        # The penalties need weights, and only soft attention has weights that say more than what was chosen.
        needs_weights = is_soft is None and (
            settings.doubly_stochastic_weight > 0 or settings.guidance > 0 or settings.matching > 0
        )
        soft: bool | Tensor = True if is_soft is None else is_soft
        unrolled = self.model.decoder(encoded, inputs, weights=needs_weights, soft=soft)
        nll, loss = self._cross_entropy(unrolled, targets)
        real = targets != PAD
        self.log("loss", nll[real].mean(), batch_size=len(batch))
        if needs_weights and unrolled.weights is not None:
            loss = loss + self._attention_loss(unrolled.weights, batch, encoded)
        if is_soft is not None and unrolled.log_prob is not None:
            loss = loss + self._reinforce(unrolled, nll, real & ~is_soft.unsqueeze(1))
        self.mean_over = real.sum()
        return loss

    def validate(self, batch: CaptionBatch) -> None:
        """The loss of one caption of each image, and captions by decoding (never teacher-forced)."""
        unrolled = self.model.decoder(self.model.encode(batch.images), batch.target[:, :-1])
        targets = batch.target[:, 1:]
        nll, _ = self._cross_entropy(unrolled, targets)
        self.log("valid_loss", nll[targets != PAD].mean(), batch_size=len(batch))
        options = CaptionOptions(beam=self.settings.valid_beam, max_length=self.settings.max_output_length)
        for index, best in zip(batch.indices.tolist(), self.model.search(batch.images, options), strict=True):
            self._predictions[index] = self.model.tokenizer.decode(best[0].tokens)

    def validated(self) -> None:
        """BLEU-4, CIDEr-D and exact match of the decoded captions, each against all references of its image."""
        found = {index: text for part in gathered(self._predictions) for index, text in part.items()}
        indices = sorted(found)
        predictions = [found[index] for index in indices]
        scores = caption_scores(predictions, [self.references[index] for index in indices], meteor=False)
        self.log("valid_bleu", scores.bleu[3])
        self.log("valid_bleu1", scores.bleu[0])
        self.log("valid_cider", scores.cider_d)
        self.log("valid_exact", scores.exact_match)
        self._predictions = {}

    def _self_critical_loss(self, critic: Critic, batch: CaptionBatch) -> Tensor:
        self.model.eval()
        loss, reward = self_critical_loss(
            self.model,
            critic,
            self.model.encode(batch.images),
            batch.indices,
            num_samples=self.settings.num_samples,
            max_length=self.settings.max_output_length,
        )
        self.model.train()
        self.log("reward", reward, batch_size=len(batch))
        return loss

    def _attention_loss(self, weights: Float[Tensor, "b m n"], batch: CaptionBatch, encoded: Encoded) -> Tensor:
        """The penalties of soft attention, with their weights."""
        settings, targets = self.settings, batch.target[:, 1:]
        loss = weights.new_zeros(())
        if settings.doubly_stochastic_weight:
            penalty = doubly_stochastic(weights, targets != PAD)
            self.log("doubly_stochastic", penalty, batch_size=len(batch))
            loss = loss + settings.doubly_stochastic_weight * penalty
        if batch.right is not None:
            guidance = guidance_loss(weights, batch.right)
            self.log("guidance", guidance, batch_size=len(batch))
            loss = loss + settings.guidance * guidance
        if self.word_cells is not None:
            contrast, matches = self.word_cells(targets, encoded.states, batch.indices)
            self.log("matching", contrast, batch_size=len(batch))
            loss = loss + settings.matching * (contrast + guidance_loss(weights, matches))
        return loss

    def _soft_rows(self, rows: int) -> Bool[Tensor, "b"] | None:
        """Draw which captions are read with soft attention; None where all are."""
        if not self._is_hard or self.fraction_done(self.step + 1) < self.settings.soft_fraction:
            return None
        return torch.rand(rows, device=self.device) < self.settings.soft_probability

    def _cross_entropy(self, unrolled: Unrolled, targets: Tensor) -> tuple[Float[Tensor, "b m"], Tensor]:
        """The loss of each word (0 for padding), and their mean with smoothing."""
        real = targets != PAD
        # Padding gets no logits: the output layer is the largest product.
        logits = self.model.decoder.output(unrolled.features[real]).float()
        smoothing = self.settings.label_smoothing if self.training else 0.0
        loss, each = smoothed_cross_entropy(logits, targets[real], smoothing=smoothing)
        nll = torch.zeros(targets.shape, device=each.device).masked_scatter(real, each.detach())
        return nll, loss

    def _reinforce(self, unrolled: Unrolled, nll: Float[Tensor, "b m"], sampled: Bool[Tensor, "b m"]) -> Tensor:
        """-(log p - baseline) log p(choice), and an entropy bonus, over the words whose cell was sampled.

        The baseline is the running mean of log p or, with several samples of a caption, the mean of log p of the same
        word in the others.
        """
        if unrolled.log_prob is None or unrolled.entropy is None:
            raise TypeError("Hard attention gives the log-probability and the entropy of its choices.")
        settings = self.settings
        if settings.attention_samples > 1:
            advantage = advantage_over_others(-nll.unflatten(0, (settings.attention_samples, -1))).flatten(0, 1)
        else:
            advantage = self.baseline.advantage(-nll, sampled)
        entropy = mean_where(unrolled.entropy, sampled)
        self.log("entropy", entropy, batch_size=len(nll))
        reinforce = reinforce_loss(advantage, unrolled.log_prob, sampled)
        loss: Tensor = settings.reinforce_weight * reinforce - settings.entropy_weight * entropy
        return loss


def doubly_stochastic(weights: Float[Tensor, "b m n"], real: Bool[Tensor, "b m"]) -> Float[Tensor, ""]:
    """The mean over cells and captions of (1 - sum_t alpha_ti)^2 (Xu et al. 2015, equation 14: its sum over cells)."""
    attended = (weights.float() * real.unsqueeze(-1)).sum(1)
    return (1 - attended).square().mean()


class CaptionExperiment(Experiment[Captioner]):
    """Images with captions in, a trained captioner out."""

    Data = CaptionData
    Train = CaptionTrain
    file_fields = ("folder", "captions", "images", "store", "regions")
    score = "valid_bleu"

    def checksums(self, splits: CaptionSplits) -> dict[str, str]:
        """Of the captions and regions, and of the checksums that the store has of its features."""
        data = self.recipe.data
        paths = {"captions": data.captions, "regions": data.regions, "store": data.store and f"{data.store}/{SUMS}"}
        return {name: checksum(Path(data.folder) / path) for name, path in paths.items() if path}

    def read_data(self) -> CaptionSplits:
        """The images and captions of the recipe."""
        self._check_guidance()
        is_guided = self.recipe.train.guidance > 0
        return read_splits(self.recipe.data, self.recipe.model, guided=is_guided, progress=self.progress)

    def build(self, splits: CaptionSplits) -> Captioner:
        """A new captioner, with the words of the training captions."""
        model = Captioner(self.recipe.model, train_tokenizer(self.recipe.data, splits.train))
        if model.reduction is not None and splits.reduction is not None:
            model.reduction.load_state_dict(splits.reduction.state_dict())
        if model.novelty is not None:
            fit_novelty(model, self.recipe.data, splits)
        return model

    def check_model(self, model: Captioner, splits: CaptionSplits) -> None:
        """The features must be reduced as those that the model was trained with."""
        check_reduction(model, splits.reduction)

    def task(self, model: Captioner, splits: CaptionSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """Batches of captions beside their images."""
        settings = self.recipe.train
        train, valid = _on_device(splits.train), _on_device(splits.valid)
        examples = train.examples(model.tokenizer, max_length=self.recipe.data.max_length)
        self._train_captions = len(examples)
        train_loader = load_batches(
            lambda size: examples.loader(
                max_tokens=size, shuffle=True, bucket=settings.bucket_by_length, seed=settings.seed
            ),
            settings.max_tokens,
            usual=MAX_TOKENS,
        )
        valid_tokens = 4 * (settings.max_tokens or MAX_TOKENS)
        valid_loader = valid.first_captions(model.tokenizer).loader(max_tokens=valid_tokens, shuffle=False)
        if model.network is not None:
            # With channels last, convolutions need not change the layout of each map.
            model.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        critic = Critic(train.captions) if settings.self_critical_fraction else None
        total = settings.epochs * len(train_loader)
        views = splits.views
        if views is not None and views.images.values.nbytes <= MAX_BYTES_ON_GPU:
            views = views.to(choose_device())
        task = CaptionTask(model, settings, total, splits.valid.captions, critic, views)
        return task, train_loader, valid_loader

    def test(self, model: Captioner, splits: CaptionSplits) -> dict[str, Any]:
        """Caption the validation and test images with a beam of 5."""
        metrics: dict[str, Any] = {
            "train_images": len(splits.train),
            "train_captions": self._train_captions,
            "valid_images": len(splits.valid),
        }
        metrics |= self._decoded(model, splits.valid, "valid")
        if splits.test is not None:
            metrics |= self._decoded(model, splits.test, "test")
        return metrics

    def _check_guidance(self) -> None:
        """Refuse a weight of the guidance without regions, regions without a weight, and attention without gradient."""
        data, model, train = self.recipe.data, self.recipe.model, self.recipe.train
        if train.guidance and not (data.regions or data.world):
            raise OptionError(
                f"guidance {train.guidance} needs regions: give --data.regions FILE, or set guidance to 0."
            )
        if data.regions and not train.guidance:
            raise OptionError("regions have no effect with guidance 0: set --train.guidance, such as 0.5.")
        for name in ("guidance", "matching"):
            if (weight := getattr(train, name)) and (model.architecture == "show_and_tell" or model.align == "hard"):
                what = "no attention" if model.architecture == "show_and_tell" else "align 'hard'"
                raise OptionError(f"{name} {weight} needs attention with a gradient; this model has {what}.")

    def _decoded(self, model: Captioner, captioned: CaptionedImages, part: str) -> dict[str, float]:
        """The scores of captions found with a beam of 5; the captions are kept beside the model."""
        options = CaptionOptions(beam=5, max_length=self.recipe.train.max_output_length)
        images, predictions = _on_device(captioned).images, []
        for indices in torch.arange(len(captioned)).split(100):
            for best in model.search(images.take(indices).to(model.device), options):
                predictions.append(model.tokenizer.decode(best[0].tokens))
        rows = zip(predictions, captioned.captions, strict=True)
        lines = ["\t".join([text, *references]) + "\n" for text, references in rows]
        write_text(self.folder / f"{part}.tsv", "".join(lines))
        scores = caption_scores(predictions, captioned.captions, meteor=False)
        named = {f"beam_bleu{order}": value for order, value in enumerate(scores.bleu, 1)}
        named |= {"beam_rouge_l": scores.rouge_l, "beam_cider_d": scores.cider_d, "beam_exact": scores.exact_match}
        return {f"{part}_{name}": value for name, value in named.items()}


def _on_device(captioned: CaptionedImages) -> CaptionedImages:
    """Move the images to the GPU, where there is one and the images are not too many for it."""
    size = captioned.images.values.nbytes
    return replace(captioned, images=captioned.images.to(choose_device())) if size <= MAX_BYTES_ON_GPU else captioned
