"""How good a document classifier is: accuracy, by class, and whether its attention is faithful."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import Any

import numpy as np

from regard.data.documents import BadRows, Document, read_documents
from regard.errors import DataError, OptionError, counted
from regard.systems.classify.config import ClassificationTest
from regard.systems.classify.data import WORLD_COUNT, cleaned, encode_documents, sorted_labels
from regard.systems.classify.faithfulness import measure_faithfulness, rationale_agreement
from regard.systems.classify.model import Classification, DocumentClassifier
from regard.systems.classify.training import predicted
from regard.systems.report import Measure, Report, class_table

PUNCTUATION = ".,;:!?\"'()[]"
HEIGHTS = " ▁▂▃▄▅▆▇█"
HISTOGRAM_BINS = 20


def evaluate(model: DocumentClassifier, test_set: ClassificationTest, *, name: str = "model") -> Report:
    """Classify the documents of a test set."""
    notes: list[str] = []
    documents = read_test(model, test_set, notes)
    encoded = encode_documents(model, documents)
    probabilities = predicted(model, encoded).numpy()
    found = probabilities.argmax(1)
    right = found == encoded.labels
    likely = np.take_along_axis(probabilities, encoded.labels[:, None], axis=1)
    by_class = class_table(model.labels, encoded.labels.tolist(), found.tolist(), "documents")
    scores = {
        "accuracy": Measure(100 * float(right.mean()), note="percent"),
        "macro F1": Measure(float(np.mean([row["F1"] for row in by_class])), note="percent: the mean over the classes"),
        "log-likelihood": Measure(float(np.log(np.maximum(likely, 1e-12)).mean()), "{:.4f}", "nats per document"),
        "unknown words": Measure(encoded.unknown_percent, note="percent of the words"),
    }
    if encoded.left_out:
        notes.append(f"Cut at {model.config.max_sentences} sentences: {counted(encoded.left_out, 'document')}.")
    if test_set.world:
        scores |= decisive_scores(model, len(documents), test_set.split)
    if test_set.faithfulness:
        measured = measure_faithfulness(model, _spaced(documents, test_set.faithfulness), shuffles=test_set.shuffles)
        scores |= measured.scores
        notes.append(measured.sentence)
    if test_set.rationales:
        measures, sentence = rationale_agreement(model, [each for each in documents if each.rationale])
        scores |= measures
        notes.append(sentence)
    tables = {"By class": by_class}
    if test_set.word:
        tables[f"Weight of {test_set.word!r} by class"] = _word_table(model, documents, test_set, notes)
    outputs = [
        {"label": document.label, "predicted": model.labels[int(guess)], "probability": float(row.max())}
        for document, guess, row in zip(documents, found, probabilities, strict=True)
    ]
    title = counted(len(documents), "document")
    return Report(name, title, scores, tables, outputs, notes=tuple(notes))


def read_test(model: DocumentClassifier, test_set: ClassificationTest, notes: list[str]) -> list[Document]:
    """The test documents, with the names of the classes that the model knows."""
    if test_set.world:
        from regard.systems.classify.data import world_documents

        return _named(model, world_documents(test_set.split, test_set.count or WORLD_COUNT))
    bad = BadRows(test_set.skip_bad)
    rows = read_documents(test_set.documents, format=test_set.format, columns=test_set.columns, bad=bad)
    documents = [cleaned(document, test_set.posts) for document in islice(rows, test_set.count or None)]
    if not documents:
        raise DataError(f"{test_set.documents} holds no documents.")
    if bad.count:
        notes.append(str(bad))
    return _named(model, documents)


def decisive_scores(model: DocumentClassifier, count: int, split: str = "test") -> dict[str, Measure]:
    """How often the most attended sentence and word of generated reviews are those that decide."""
    from regard.worlds.reviews import reviews

    sample = list(islice(reviews(split), count))
    results = model.classify(
        [Document(sentences=tuple(" ".join(sentence) for sentence in review.sentences)) for review in sample]
    )
    sentences = [
        _strongest(result.sentences) in review.decisive for result, review in zip(results, sample, strict=True)
    ]
    words = [
        (index, _strongest(result.sentences[index].words)) in review.words
        for result, review in zip(results, sample, strict=True)
        for index in review.decisive
    ]
    return {
        "decisive sentence": Measure(
            100 * float(np.mean(sentences)), note="percent: the most attended sentence is one that decides"
        ),
        "decisive word": Measure(
            100 * float(np.mean(words)),
            note="percent: the most attended word of a deciding sentence carries the opinion",
        ),
    }


def word_weights(
    results: Iterable[Classification], word: str, labels: Iterable[str] | None = None
) -> dict[str, list[float]]:
    """The weights of one word in its sentences, by the class of the document (Yang et al. 2016, Figure 3).

    The classes are `labels`, one per result, or else the predicted ones. Case and the punctuation around a word are
    ignored. `viewing.document.word_weight_figure` draws the result.
    """
    wanted = word.lower()
    found: dict[str, list[float]] = {}
    given = repeat(None) if labels is None else labels
    for result, label in zip(results, given, strict=False):
        weights = [
            each.weight
            for sentence in result.sentences
            for each in sentence.words
            if each.word.lower().strip(PUNCTUATION) == wanted
        ]
        if weights:
            found.setdefault(label or result.label, []).extend(weights)
    return dict(sorted(found.items()))


def _word_table(
    model: DocumentClassifier, documents: list[Document], test_set: ClassificationTest, notes: list[str]
) -> list[dict[str, Any]]:
    """A row for each class with the distribution of the word's weight; also drawn, where a figure is asked for."""
    found = word_weights(model.stream(documents), test_set.word, (document.label for document in documents))
    if not found:
        raise OptionError(f"The word {test_set.word!r} does not occur in these documents.")
    if test_set.figure:
        from regard.viewing.document import word_weight_figure
        from regard.viewing.figures import save

        notes.append(f"Wrote {save(word_weight_figure(found, test_set.word), test_set.figure)}")
    edges = np.linspace(0, max(map(max, found.values())), HISTOGRAM_BINS + 1)
    rows = []
    for label, weights in found.items():
        counts, _ = np.histogram(weights, bins=edges)
        heights = np.ceil((len(HEIGHTS) - 1) * counts / counts.max()).astype(int)
        row = {"class": label, "times": len(weights), "mean": f"{np.mean(weights):.3f}"}
        rows.append(row | {f"weight from 0 to {edges[-1]:.2f}": "".join(HEIGHTS[height] for height in heights)})
    return rows


def _spaced(documents: list[Document], count: int) -> list[Document]:
    """So many documents at equal distances: the classes of a file often stand one after the other."""
    indices = np.linspace(0, len(documents) - 1, min(count, len(documents))).round().astype(int)
    return [documents[index] for index in indices]


def _strongest(parts: Sequence[Any]) -> int:
    return int(np.argmax([part.weight for part in parts]))


def _named(model: DocumentClassifier, documents: list[Document]) -> list[Document]:
    """Documents whose labels are numbers, where the classes have names, get these names."""
    given = sorted_labels(document.label for document in documents)
    if set(given) <= set(model.labels):
        return documents
    if all(map(str.isdecimal, given)):
        # Numbers from 0 on are those of the classes; others stand for them in order, if all of them occur.
        is_whole, is_counted = len(given) == len(model.labels), "0" in given and int(given[-1]) < len(model.labels)
        if is_whole or is_counted:
            numbers = given if is_whole else map(str, range(len(model.labels)))
            names = dict(zip(numbers, model.labels, strict=True))
            return [replace(document, label=names[document.label]) for document in documents]
    if set(given) <= {"pos", "neg"} and set(model.labels) == {"positive", "negative"}:
        return [replace(each, label={"pos": "positive", "neg": "negative"}[each.label]) for each in documents]
    hint = " Numbers count the classes from 0, or name all of them in order." if given[0].isdecimal() else ""
    raise OptionError(f"The model knows the classes {list(model.labels)}; the documents have {given[:12]}.{hint}")
