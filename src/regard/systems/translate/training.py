"""How a translator learns: teacher-forced cross-entropy, validated by decoding."""

import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.align import Hard
from regard.attention.guidance import guidance_loss
from regard.data.augmentation import in_other_forms
from regard.data.batches import BatchLoader, CostBatches
from regard.data.corpus import Corpus
from regard.data.pairs import Batch, CorpusPairs, TextPairs, collate, padded_sizes
from regard.data.tokenizer import END, PAD
from regard.errors import OptionError
from regard.files import write_text
from regard.metrics.translation import corpus_bleu
from regard.search.options import Search
from regard.systems.translate.config import RAW, TranslationData, TranslationTrain
from regard.systems.translate.data import TranslationSplits, read_splits, train_tokenizers
from regard.systems.translate.model import Translator
from regard.training.batch_sizes import load_batches
from regard.training.experiment import Experiment
from regard.training.losses import RunningBaseline, mean_where, real_tokens, reinforce_loss, smoothed_cross_entropy
from regard.training.processes import gathered
from regard.training.recording import length_multiple
from regard.training.task import Task

BATCHES_PER_EPOCH = 500
"""How many batches an epoch should have at least, where max_tokens is chosen automatically."""
MAX_WORKERS = 4
"""How many processes prepare batches where their number is chosen automatically."""


class TranslationTask(Task):
    """The loss of a batch, and what a validation measures."""

    unit = "tokens"
    settings: TranslationTrain

    def __init__(self, model: Translator, settings: TranslationTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model, self.is_recordable = model, not model.custom_parts
        self.baseline = RunningBaseline()
        self._is_hard = any(isinstance(module, Hard) for module in model.modules())
        self._predictions: list[str] = []
        self._references: list[str] = []

    def amount(self, batch: Batch) -> int:
        """The number of target tokens to predict."""
        return int(batch.target_lengths.sum()) - len(batch)

    def variant(self) -> bool:
        """Whether hard attention is still soft."""
        return self._is_hard and self.is_soft(self.step)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy of the next word; with hard attention, also the REINFORCE term."""
        loss, nll = self._losses(batch, soft=self.variant())
        self.log("loss", nll, batch_size=self.mean_over)
        return loss

    def is_soft(self, step: int) -> bool:
        """Whether hard attention is still soft in this step."""
        return self.fraction_done(step + 1) < self.settings.soft_fraction

    def validate(self, batch: Batch) -> None:
        """The loss of the reference translations, and translations by decoding (never teacher-forced)."""
        _, nll = self._losses(batch, soft=False)
        self.log("valid_loss", nll, batch_size=self.amount(batch))
        tokenizer, settings = self.model.target_tokenizer, self.settings
        options = Search(beam=settings.valid_beam, max_length=settings.max_output_length or None)
        hypotheses = self.model.search(batch.source, batch.source_lengths, options)
        self._predictions += [tokenizer.decode(best[0].tokens) for best in hypotheses]
        self._references += [
            tokenizer.decode([t for t in row if t not in (PAD, END)]) for row in batch.target[:, 1:].tolist()
        ]

    def validated(self) -> None:
        """BLEU and exact match of the decoded translations."""
        predictions = [text for part in gathered(self._predictions) for text in part]
        references = [text for part in gathered(self._references) for text in part]
        matches = zip(predictions, references, strict=True)
        exact = sum(prediction == reference for prediction, reference in matches) / len(predictions)
        bleu = corpus_bleu(predictions, references, lowercase=True).value
        self.log("valid_bleu", bleu)
        self.log("valid_exact", exact)
        self._predictions, self._references = [], []

    def _losses(self, batch: Batch, *, soft: bool) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the plain cross-entropy per token."""
        settings = self.settings
        inputs, targets = batch.target[:, :-1], batch.target[:, 1:]
        encoded = self.model.encode(batch.source, batch.source_lengths)
        is_guided = batch.right is not None and settings.guidance > 0
        unrolled = self.model.decoder(encoded, inputs, weights=is_guided, soft=soft)
        select, is_real = real_tokens(batch.target_lengths - 1, targets)
        logits = self.model.decoder.output(select(unrolled.features)).float()
        loss, nll = smoothed_cross_entropy(logits, select(targets), smoothing=settings.label_smoothing, real=is_real)
        if unrolled.log_prob is not None and unrolled.entropy is not None and self.training:
            advantage = self.baseline.advantage(-nll.detach(), is_real)
            loss = loss + settings.reinforce_weight * reinforce_loss(advantage, select(unrolled.log_prob), is_real)
            loss = loss - settings.entropy_weight * mean_where(select(unrolled.entropy), is_real)
        if unrolled.overlap is not None and settings.coverage_weight:
            loss = loss + settings.coverage_weight * mean_where(select(unrolled.overlap), is_real)
        if batch.right is not None and unrolled.weights is not None:
            guidance = guidance_loss(self.model.by_word(unrolled.weights), batch.right)
            self.log("guidance", guidance, batch_size=len(batch))
            loss = loss + settings.guidance * guidance
        return loss, mean_where(nll.detach(), is_real)


class TranslationExperiment(Experiment[Translator]):
    """Sentence pairs in, a trained translator out."""

    Data = TranslationData
    Train = TranslationTrain
    file_fields = (
        "folder", "pairs", "source", "target", "valid_source", "valid_target", "test_source", "test_target", "dataset",
        "alignments",
    )  # fmt: skip
    score = "valid_bleu"

    @property
    def half_precision_on_gpu(self) -> bool:
        """Transformers train in bfloat16."""
        return bool(self.recipe.model.architecture == "transformer")

    def read_data(self) -> TranslationSplits:
        """The sentence pairs."""
        return read_splits(self.recipe.data)

    def build(self, splits: TranslationSplits) -> Translator:
        """A new translator, with tokenizers trained on the pairs."""
        return Translator(self.recipe.model, *train_tokenizers(self.recipe.data, splits))

    def task(self, model: Translator, splits: TranslationSplits) -> tuple[Task, BatchLoader, BatchLoader]:
        """The task, and the batches of training and validation.

        The training pairs are stored as token ids in the run folder; a store of the same pairs is used again.
        """
        data, settings = self.recipe.data, self.recipe.train
        tokenizers = model.source_tokenizer, model.target_tokenizer
        is_guided, split = settings.guidance > 0, data.alignment_words == "split"
        self._check_guidance(splits)
        pairs: Iterable[Any] = splits.train.with_links() if is_guided else splits.train
        fingerprint = splits.train.fingerprint
        if data.copied or data.cased:
            forms = {"copied": data.copied, "cased": data.cased, "seed": settings.seed}
            pairs = in_other_forms(pairs, **forms, split=split)
            fingerprint = fingerprint and f"{fingerprint} {forms}"
        corpus = Corpus.build(
            pairs,
            *tokenizers,
            self.folder / "corpus",
            max_length=data.max_length,
            progress=self.progress,
            fingerprint=fingerprint,
            linked=is_guided,
            split=split,
        )
        if self.progress:
            held_out = f" Held out: {count:,}." if (count := splits.given - corpus.report.read) else ""
            sys.stderr.write(f"Training pairs: {corpus.report}.{held_out}\n")
        self._report = corpus.report
        dropout = data.bpe_dropout
        examples: Any = corpus
        if dropout or is_guided:
            options = {"dropout": dropout, "seed": settings.seed, "linked": is_guided, "split": split}
            examples = CorpusPairs(corpus, *tokenizers, **options)
        valid = TextPairs(splits.valid, *tokenizers)
        multiple = length_multiple(settings.pad_to)
        sizes, valid_sizes = padded_sizes(examples.lengths, multiple=multiple), padded_sizes(valid.lengths)
        usual, collated = choose_max_tokens(sizes), partial(collate, multiple=multiple)

        def load(size: int) -> BatchLoader:
            batches = CostBatches(sizes, max_cost=size, shuffle=True, seed=settings.seed, with_epoch=bool(dropout))
            return BatchLoader(examples, batches, collate_fn=collated, **self._workers())

        train_loader = load_batches(load, settings.max_tokens, usual=usual)
        valid_batches = CostBatches(valid_sizes, max_cost=settings.max_tokens or usual, shuffle=False, seed=0)
        task = TranslationTask(model, settings, total_steps=settings.epochs * len(train_loader))
        return task, train_loader, BatchLoader(valid, valid_batches, collate_fn=collate)

    def test(self, model: Translator, splits: TranslationSplits) -> dict[str, Any]:
        """Translate the test sentences with a beam of 5; the translations are kept beside the model."""
        counts = {f"train_{name}": count for name, count in asdict(self._report).items()}
        if not splits.test:
            return counts
        limit = self.recipe.train.max_output_length or None
        sources = [source for source, _ in splits.test]
        translations = model.translate(sources, beam=5, max_length=limit, traces="none", **RAW)
        lines = [
            f"{source}\t{target}\t{translation.text}\n"
            for (source, target), translation in zip(splits.test, translations, strict=True)
        ]
        write_text(self.folder / "test.tsv", "".join(lines))
        references = [target for _, target in splits.test]
        predictions = [translation.text for translation in translations]
        bleu = corpus_bleu(predictions, references, lowercase=self.recipe.data.lowercase)
        scores = {"test_bleu": bleu.value, "test_signature": bleu.signature, "test_sentences": len(references)}
        return counts | scores

    def _check_guidance(self, splits: TranslationSplits) -> None:
        """Refuse a weight of the guidance without links, links without a weight, and attention that has no gradient."""
        data, model, weight = self.recipe.data, self.recipe.model, self.recipe.train.guidance
        if weight and not splits.train.is_linked:
            raise OptionError(f"guidance {weight} needs word links: give --data.alignments FILE, or set guidance to 0.")
        if data.alignments and not weight:
            raise OptionError("alignments have no effect with guidance 0: set --train.guidance, such as 0.5.")
        if weight and (model.architecture == "plain" or model.align in ("hard", "uniform")):
            what = "no attention" if model.architecture == "plain" else f"align {model.align!r}"
            raise OptionError(f"guidance {weight} needs attention with a gradient; this model has {what}.")

    def _workers(self) -> dict[str, Any]:
        """How many processes prepare batches beside this one, and whether a GPU can fetch them while it computes."""
        count, on_gpu = self.recipe.train.workers, torch.cuda.is_available()
        if count < 0:
            is_slow = self.recipe.data.bpe_dropout > 0 or self.recipe.train.guidance > 0
            count = min(MAX_WORKERS, (os.cpu_count() or 1) // 2) if is_slow and on_gpu else 0
        return {"num_workers": count, "persistent_workers": count > 0, "pin_memory": on_gpu}


def choose_max_tokens(sizes: np.ndarray) -> int:
    """Tokens in a batch, for pairs of these padded sizes: so many that an epoch has about 500 batches."""
    return max(512, min(4096, int(sizes.max(1).sum()) // BATCHES_PER_EPOCH))
