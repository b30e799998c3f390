"""A classified document as a web page of its own: sentence bars and shaded words (Yang et al. 2016, Figure 5)."""

import numpy as np

from regard.trace import Trace
from regard.viewing.document_figures import document_heading, shaded_sentences, strongest_sentences
from regard.viewing.words import printable

MAX_PAGE_SENTENCES = 1000
"""Sentences of a page; of a longer document, those that are attended to most."""
MAX_PAGE_CLASSES = 5
"""Classes whose probabilities are listed, the most probable first."""


def document_page(trace: Trace, *, raw: bool = False, title: str | None = None) -> str:
    """The document as HTML with everything in it: no script, nothing to download, light and dark.

    Words are shaded as `document_figures.shaded_sentences` explains; a box on the page changes to `raw` and back.
    """
    from jinja2 import Environment, PackageLoader

    shown, note = strongest_sentences(shaded_sentences(trace), MAX_PAGE_SENTENCES)
    largest = max((sentence.weight for sentence in shown), default=0.0) or 1.0
    weights = np.split(
        trace.map("words").weights[0],
        np.searchsorted(trace.values("sentence") or (), np.arange(1, len(trace.axis("sentences").labels))),
    )
    highest = max((float(each.max(initial=0.0)) for each in weights), default=0.0) or 1.0
    sentences = [
        {
            "weight": sentence.weight,
            "bar": sentence.weight / largest,
            "words": [
                {"text": printable(word), "shade": shade, "raw": float(weight) / highest, "weight": float(weight)}
                for (word, shade), weight in zip(sentence.words, weights[sentence.number - 1], strict=True)
            ],
        }
        for sentence in shown
    ]
    probabilities = list((trace.extras.get("probabilities") or {}).items())[:MAX_PAGE_CLASSES]
    pages = Environment(loader=PackageLoader("regard.viewing"), autoescape=True, trim_blocks=True)
    return pages.get_template("document.html").render(
        title=title or document_heading(trace), probabilities=probabilities, note=note, sentences=sentences, raw=raw
    )
