"""Whether the attention of a document classifier matters: what its probability loses without the attended words."""

from typing import Any

from regard.data.documents import Document
from regard.metrics.faithfulness import FRACTIONS, erasure
from regard.systems.classify.explanations import Explained
from regard.systems.classify.model import Classification, DocumentClassifier
from regard.systems.trust import Erasing, Evidence

HOW = (
    "The most attended {shares} % of the words are erased, and the text is classified again: the mean drop of the "
    "probability, beside that for as many words chosen at random (comprehensiveness; DeYoung et al. 2020)."
)


def evidence(model: DocumentClassifier, text: str | Document, options: Any, result: Classification) -> Evidence | None:
    """The attention to words, and what erasing them costs; None for a model that pools without attention."""
    if model.config.pool != "attention":
        return None
    explained = Explained(model, text)
    weights = explained.attention()
    erasing = None
    if len(explained.tokens) > 1:
        found = erasure(explained.predict, explained.tokens, weights)
        shares = ", ".join(f"{100 * share:g}" for share in FRACTIONS)
        erasing = Erasing(
            found.comprehensiveness,
            found.random_comprehensiveness,
            unit=f"probability of {result.label}",
            how=HOW.format(shares=shares),
        )
    return Evidence([weights[None]], "words", erasing)
