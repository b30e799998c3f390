"""Whether the attention of a document classifier explains it: which words matter, and what happens without them."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from regard.data.documents import Document
from regard.data.tokenizer import UNKNOWN
from regard.metrics.faithfulness import (
    FRACTIONS,
    Agreement,
    Erasure,
    agreement,
    erasure,
    f1,
    kendall_tau,
    leave_one_out,
    permutation_test,
)
from regard.metrics.intervals import bootstrap
from regard.systems.classify.data import DocumentBatch, EncodedDocument
from regard.systems.classify.model import Classification, DocumentClassifier, EncodedText
from regard.systems.faithfulness import Ablation, Evidence
from regard.systems.report import Measure

MAX_BATCH_WORDS = 1 << 16
"""Words in a batch of documents of which some words are erased."""
MAX_WORDS_LEFT_OUT = 400
"""Longest document for which each word is left out once."""
METHOD = (
    "The most attended {shares} % of the words are erased, and the text is classified again: the mean drop of the "
    "probability, beside that for as many words chosen at random (comprehensiveness; DeYoung et al. 2020)."
)


class Explained:
    """One document and its words: their importance by attention and by gradients, and predictions without some."""

    def __init__(
        self, model: DocumentClassifier, document: Document | str, on_cpu: DocumentClassifier | None = None
    ) -> None:
        """`on_cpu` is `cpu_copy(model)`, to be given where many documents share it."""
        model.check_mode()
        self._model, self._text = model, model.encode(document)
        self._on_cpu = on_cpu
        self.tokens = [word for sentence in self._text.words for word in sentence]
        self.sentences: Int[np.ndarray, "n"] = np.repeat(
            np.arange(len(self._text.words)), [len(words) for words in self._text.words]
        )
        """The sentence of each word."""
        offsets = np.cumsum([0, *(len(words) for words in self._text.words)])
        self._owners = np.concatenate(
            [np.asarray(owners) + offset for owners, offset in zip(self._text.owners, offsets, strict=False)]
        )

    def attention(self) -> Float[np.ndarray, "n"]:
        """Word weight x sentence weight: how much of the document's vector comes from each word; they sum to 1."""
        words, sentences = self._weights()
        lengths = [len(ids) for ids in self._text.ids]
        return self._by_word(words * np.repeat(sentences, lengths))

    def gradients(self) -> Float[np.ndarray, "n"]:
        """The norm of the gradient of the predicted class's probability at each word's vector."""
        model = self._on_cpu or cpu_copy(self._model)
        batch = self._batch([self._text.ids])
        with torch.inference_mode(False), torch.enable_grad():
            vectors = model.embedding(batch.words).detach().clone().requires_grad_()
            row = model(batch, vectors=vectors).logits.float().softmax(-1)[0]
            (slopes,) = torch.autograd.grad(row.max(), vectors)
        return self._by_word(batch.by_sentence.restored(slopes.norm(dim=-1)).numpy())

    def predict(self, tokens: Sequence[str], masks: Bool[np.ndarray, "m n"]) -> Float[np.ndarray, "m y"]:
        """The probabilities of the document with only the words of each mask."""
        return self._probabilities([self.kept(mask)[0] or [[UNKNOWN]] for mask in masks])

    def permutation(self, *, shuffles: int) -> float:
        """The median change of the output when word weights are shuffled within sentences, and sentence weights."""
        words, sentences = self._weights()
        lengths = [len(ids) for ids in self._text.ids]
        groups = np.concatenate([np.repeat(np.arange(len(lengths)), lengths), np.full(len(lengths), len(lengths))])

        def predict(rows: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m y"]:
            found = []
            size = max(1, MAX_BATCH_WORDS // len(words))
            for part in np.split(rows.astype(np.float32), range(size, len(rows), size)):
                batch = self._batch([self._text.ids] * len(part)).to(self._model.device)
                over = [
                    torch.from_numpy(np.ascontiguousarray(each)).flatten().to(self._model.device)
                    for each in (part[:, : len(words)], part[:, len(words) :])
                ]
                with torch.inference_mode():
                    output = self._model(batch, word_weights=over[0], sentence_weights=over[1])
                found.append(output.logits.float().softmax(-1).cpu().numpy())
            return np.concatenate(found)

        return permutation_test(predict, np.concatenate([words, sentences]), groups, shuffles=shuffles)

    def _weights(self) -> tuple[Float[np.ndarray, "ids"], Float[np.ndarray, "s"]]:
        with torch.inference_mode():
            output = self._model(self._batch([self._text.ids]).to(self._model.device))
        return output.word_weights.double().cpu().numpy(), output.sentence_weights.double().cpu().numpy()

    def _by_word(self, numbers: np.ndarray) -> Float[np.ndarray, "n"]:
        return np.bincount(self._owners, weights=numbers, minlength=len(self.tokens))

    def kept(self, mask: Bool[np.ndarray, "n"]) -> tuple[EncodedDocument, Int[np.ndarray, "ids"]]:
        """The document with only some of its words, and the word of each id; sentences without words are left out."""
        flags = np.asarray(mask)[self._owners]
        lengths = [len(ids) for ids in self._text.ids]
        parts = np.split(flags, np.cumsum(lengths)[:-1])
        found = [
            [number for number, keep in zip(ids, part, strict=True) if keep]
            for ids, part in zip(self._text.ids, parts, strict=True)
            if part.any()
        ]
        return found, self._owners[flags]

    def _probabilities(self, documents: Sequence[EncodedDocument]) -> Float[np.ndarray, "m y"]:
        """Of documents that share most of their sentences, each of which is read once in a batch."""
        batches: list[list[EncodedDocument]] = [[]]
        distinct: set[tuple[int, ...]] = set()
        size = 0
        for document in documents:
            own = {tuple(sentence) for sentence in document}
            # The words that are read for it, and its sentences, which are read in every document.
            size += sum(map(len, own - distinct)) + len(document)
            if batches[-1] and size > MAX_BATCH_WORDS:
                batches.append([])
                distinct, size = set(), sum(map(len, own)) + len(document)
            distinct |= own
            batches[-1].append(document)
        return self._model.probabilities(DocumentBatch.sharing(part) for part in batches if part).numpy()

    @staticmethod
    def _batch(documents: Sequence[EncodedDocument]) -> DocumentBatch:
        return DocumentBatch.from_ids(documents)

    @property
    def text(self) -> EncodedText:
        """The document as the model reads it."""
        return self._text


def cpu_copy(model: DocumentClassifier) -> DocumentClassifier:
    """The model on the CPU, for gradients: cuDNN has none of recurrent networks in evaluation mode."""
    return model if model.device.type == "cpu" else copy.deepcopy(model).cpu()


def evidence(model: DocumentClassifier, text: str | Document, options: Any, result: Classification) -> Evidence | None:
    """The attention to words, and what erasing them costs; None for a model that pools without attention."""
    if model.config.pool != "attention":
        return None
    explained = Explained(model, text)
    weights = explained.attention()
    ablation = None
    if len(explained.tokens) > 1:
        found = erasure(explained.predict, explained.tokens, weights)
        shares = ", ".join(f"{100 * share:g}" for share in FRACTIONS)
        ablation = Ablation(
            found.comprehensiveness,
            found.random_comprehensiveness,
            unit=f"probability of {result.label}",
            method=METHOD.format(shares=shares),
        )
    return Evidence([weights[None]], "words", ablation)


@dataclass(frozen=True)
class FaithfulnessScores:
    """Scores of faithfulness, averaged over documents, and what they say in one sentence."""

    scores: dict[str, Measure]
    sentence: str


def measure_faithfulness(
    model: DocumentClassifier, documents: Sequence[Document], *, shuffles: int = 100
) -> FaithfulnessScores:
    """Measure on some documents whether the attention explains the predictions."""
    erased: list[Erasure] = []
    by_gradient: list[Erasure] = []
    changes, with_gradients, with_leaving_out = [], [], []
    on_cpu = cpu_copy(model)
    for number, document in enumerate(documents):
        explained = Explained(model, document, on_cpu)
        attention, slopes = explained.attention(), explained.gradients()
        erased.append(erasure(explained.predict, explained.tokens, attention, seed=number))
        by_gradient.append(erasure(explained.predict, explained.tokens, slopes, draws=0))
        changes.append(explained.permutation(shuffles=shuffles))
        if 1 < len(explained.tokens) <= MAX_WORDS_LEFT_OUT:
            with_gradients.append(kendall_tau(attention, slopes))
            with_leaving_out.append(kendall_tau(attention, leave_one_out(explained.predict, explained.tokens)))
    values = {
        "comprehensiveness": [each.comprehensiveness for each in erased],
        "comprehensiveness, random words": [each.random_comprehensiveness for each in erased],
        "comprehensiveness, gradients": [each.comprehensiveness for each in by_gradient],
        "sufficiency": [each.sufficiency for each in erased],
        "sufficiency, random words": [each.random_sufficiency for each in erased],
        "sufficiency, gradients": [each.sufficiency for each in by_gradient],
        "permutation change": changes,
        "tau with gradients": with_gradients,
        "tau with leave-one-out": with_leaving_out,
    }
    notes = {
        "comprehensiveness": "drop of the probability without the most attended words; higher is better",
        "sufficiency": "drop of the probability with only these words; lower is better",
        "permutation change": f"median change of the output over {shuffles} shuffles of the weights, 0 to 1",
        "tau with gradients": "Kendall's tau of attention and gradients, -1 to 1",
        "tau with leave-one-out": "Kendall's tau of attention and the drop without each word",
    }
    scores = {name: interval(each, notes.get(name, "")) for name, each in values.items() if each}
    return FaithfulnessScores(scores, verdict(erased))


def interval(values: Sequence[float], note: str = "") -> Measure:
    """The mean of some values as a score, with its 95 % interval in the note."""
    found = bootstrap(values)
    return Measure(
        found.mean, "{:.3f}", f"95 % interval {found.low:.3f} to {found.high:.3f}{f'; {note}' if note else ''}"
    )


def rationale_agreement(model: DocumentClassifier, documents: Sequence[Document]) -> tuple[dict[str, Measure], str]:
    """How far the attention agrees with the words that people marked, beside gradients and random scores."""
    random = np.random.default_rng(0)
    found: dict[str, list[Agreement]] = {"attention": [], "gradients": [], "random": []}
    on_cpu = cpu_copy(model)
    for document in documents:
        explained = Explained(model, document, on_cpu)
        gold = np.zeros(len(explained.tokens), dtype=bool)
        for start, end in document.rationale:
            gold[start:end] = True
        if not gold.any():
            continue
        scores = {
            "attention": explained.attention(),
            "gradients": explained.gradients(),
            "random": random.random(len(gold)),
        }
        for name, each in scores.items():
            found[name].append(agreement(each, gold))
    if not found["attention"]:
        return {}, "No document has marked words to compare the attention with."
    names = {
        "auprc": "AUPRC",
        "average_precision": "average precision",
        "token_f1": "token F1",
        "iou_f1": "IoU F1, mean over documents",
    }
    measures = {
        f"{title}, {name}": interval([getattr(each, field) for each in rows])
        for field, title in names.items()
        for name, rows in found.items()
    }
    for name, rows in found.items():
        means = (float(np.mean([getattr(each, side) for each in rows])) for side in ("iou_precision", "iou_recall"))
        measures[f"IoU F1, {name}"] = Measure(
            f1(*means), "{:.3f}", "F1 of mean precision and mean recall, as in ERASER"
        )
    pairs = zip(found["attention"], found["random"], strict=True)
    gain = bootstrap([ours.average_precision - theirs.average_precision for ours, theirs in pairs])
    return measures, _human_verdict(gain.low, gain.high)


def verdict(erased: Sequence[Erasure]) -> str:
    """What the drops of the probability say about the attention, in one sentence."""
    gains = [each.comprehensiveness - each.random_comprehensiveness for each in erased]
    gain = bootstrap(gains)
    span = f"{100 * gain.mean:.1f} points of probability, 95 % interval {100 * gain.low:.1f} to {100 * gain.high:.1f}"
    if gain.low > 0:
        return f"The words that the model attends to matter more for its predictions than random words do ({span})."
    if gain.high < 0:
        return f"Do not read the attention as an explanation: random words matter more ({span})."
    return f"Do not read the attention as an explanation: the attended words matter no more than random ones ({span})."


def _human_verdict(low: float, high: float) -> str:
    if low > 0:
        return "The attention agrees with the words that people marked better than chance does."
    if high < 0:
        return "The attention agrees with the words that people marked worse than chance does."
    return "The attention agrees with the words that people marked no better than chance does."
