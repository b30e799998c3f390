"""How good a translator is, by decoding; how accurate its attention is, by forced decoding where links are known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from rich.table import Table
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest
from torch.nn import functional

from regard.config import fields_of
from regard.data.alignments import read_gold
from regard.data.batches import pad
from regard.data.text import read_pairs
from regard.data.tokenizer import END, PAD, START
from regard.errors import OptionError, counted
from regard.metrics.alignment import GoldAlignment
from regard.metrics.attention import entropy
from regard.metrics.translation import LengthBucket, bleu_by_length, perplexity, translation_scores
from regard.search.options import Search
from regard.systems.report import Measure, Report
from regard.systems.translate.alignment import alignment_error
from regard.systems.translate.config import RAW, TranslationTest, parse_world
from regard.systems.translate.data import Pairs, world_pairs
from regard.systems.translate.model import Translator

Losses = Float[np.ndarray, "m"]
Weights = Float[np.ndarray, "m n"]
BATCH = 64
"""Sentence pairs that are decoded together when the target is given."""


@dataclass(frozen=True, repr=False)
class TranslationReport(Report):
    """The scores of one translator on one test set."""

    by_length: tuple[LengthBucket, ...] = ()
    """BLEU by the length of the source: what `--plot` draws."""


def evaluate(model: Translator, test_set: TranslationTest, *, name: str = "model") -> TranslationReport:
    """Translate the sources of a test set, and compare with the references."""
    scores: dict[str, Measure] = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    outputs: list[dict[str, Any]] = []
    buckets: list[LengthBucket] = []
    title = "word alignment"
    pairs = _pairs(test_set)
    if pairs:
        sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
        searched = {field: getattr(test_set, field) for field in _search_fields()}
        searched |= {} if test_set.prepare else RAW
        translations = [one.text for one in model.translate(sources, **searched, traces="none")]
        title = f"{counted(len(pairs), 'sentence')}, beam {test_set.beam}"
        found = translation_scores(translations, references, lowercase=test_set.lowercase)
        for label, score in (("BLEU", found.bleu), ("chrF", found.chrf), ("TER", found.ter)):
            scores[label] = Measure(score.value, note=score.signature)
        scores["exact match"] = Measure(100 * found.exact_match, note="percent")
        scores |= forced_scores(model, pairs)
        buckets = bleu_by_length(sources, translations, references, lowercase=test_set.lowercase)
        tables["BLEU by source length"] = [
            {"source words": bucket.label, "sentences": bucket.count, "BLEU": bucket.bleu} for bucket in buckets
        ]
        outputs = [
            {"source": source, "reference": reference, "text": text}
            for (source, reference), text in zip(pairs, translations, strict=True)
        ]
    gold = _gold(test_set)
    if gold and model.config.architecture != "plain":
        error = alignment_error(model, gold)
        note = f"alignment error rate; precision {error.precision:.3f}, recall {error.recall:.3f}"
        scores["AER"] = Measure(error.error_rate, "{:.3f}", note)
    return TranslationReport(name, title, scores, tables, outputs, by_length=tuple(buckets))


def forced_scores(model: Translator, pairs: Pairs) -> dict[str, Measure]:
    """Perplexity per target token, and the mean entropy of the attention, when the references are given."""
    total, tokens, entropies = 0.0, 0, []
    for losses, weights in _forced(model, pairs):
        total += float(losses.sum())
        tokens += len(losses)
        if weights is not None:
            entropies.append(entropy(weights))
    scores = {"perplexity": Measure(perplexity(total, tokens), note="per target token")}
    if entropies:
        scores["entropy"] = Measure(float(np.concatenate(entropies).mean()), note="nats, of the attention")
    return scores


def _pairs(test_set: TranslationTest) -> Pairs:
    if test_set.world:
        return world_pairs(test_set.world, "test", test_set.count)
    return list(read_pairs(test_set.source, test_set.reference)) if test_set.source else []


def _gold(test_set: TranslationTest) -> list[GoldAlignment]:
    if test_set.gold:
        return read_gold(test_set.gold)
    return world_gold(test_set.world, test_set.count) if test_set.world else []


def world_gold(world: str, count: int) -> list[GoldAlignment]:
    """The reference word links of test sentences of the world babel."""
    from regard.worlds.babel import pairs

    generated = islice(pairs(*parse_world(world), split="test"), count)
    return [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in generated]


def _search_fields() -> list[str]:
    return [field.name for field in fields_of(Search)]


def _forced(model: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[Losses, Weights | None]]:
    """For each pair, the loss of each target token and what was attended to for it, END included."""
    model.check_mode()
    for first in range(0, len(pairs), BATCH):
        yield from _force(model, pairs[first : first + BATCH])


@torch.inference_mode()
def _force(model: Translator, pairs: Sequence[tuple[str, str]]) -> list[tuple[Losses, Weights | None]]:
    source, lengths = pad([model.source_tokenizer.encode(text) for text, _ in pairs], after=(END,))
    target, target_lengths = pad(
        [model.target_tokenizer.encode(text) for _, text in pairs], before=(START,), after=(END,)
    )
    source, target = source.to(model.device), target.to(model.device)
    unrolled = model.decoder(model.encode(source, lengths), target[:, :-1], weights=True)
    logits = model.decoder.output(unrolled.features).float()
    losses = functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD, reduction="none").cpu().numpy()
    weights = None if unrolled.weights is None else unrolled.weights.float().cpu().numpy()
    return [
        (losses[row, : m - 1], None if weights is None else weights[row, : m - 1, :n])
        for row, (n, m) in enumerate(zip(lengths.tolist(), target_lengths.tolist(), strict=True))
    ]


def compare(reports: Sequence[Report], *, samples: int = 1000) -> Table:
    """Paired bootstrap test of each model against the first (Koehn 2004), as sacrebleu computes it.

    p is the probability of a difference as large as the measured one if the two models were equally good.
    """
    references = [output["reference"] for output in reports[0].outputs]
    if not references or any(
        [output["reference"] for output in report.outputs] != references for report in reports[1:]
    ):
        raise OptionError("A significance test needs the translations of the same sentences by each model.")
    named: list[tuple[str, Sequence[str]]] = [
        (f"{number}. {report.model}", [output["text"] for output in report.outputs])
        for number, report in enumerate(reports, 1)
    ]
    metrics: dict[str, Any] = {"BLEU": BLEU(references=[references]), "chrF": CHRF(references=[references])}
    _, scores = PairedTest(named, metrics, references=None, test_type="bs", n_samples=samples)()
    by_metric: list[Any] = [results for key, results in scores.items() if key != "System"]
    title = f"Paired bootstrap, {samples} samples, against the first model"
    table = Table("model", title=title, title_justify="left")
    for metric in metrics:
        table.add_column(f"{metric} (95 % interval)", justify="right")
        table.add_column("p", justify="right")
    for row, (name, texts) in enumerate(named):
        cells = [name]
        is_same = row > 0 and texts == named[0][1]
        for results in by_metric:
            result = results[row]
            cells += [
                f"{result.score:.1f} ({result.mean:.1f} ± {result.ci:.1f})",
                "same" if is_same else "" if result.p_value is None else f"{result.p_value:.3f}",
            ]
        table.add_row(*cells)
    return table
