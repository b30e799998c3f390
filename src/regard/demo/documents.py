"""Document classification: what the shipped model makes of a review, and which sentences and words carried it."""

from pathlib import Path

from rich.console import Console

import regard

REVIEW = (
    "I had heard a lot about this film before I went. The camera work is beautiful and the music is lovely. My brother "
    "told me that he enjoyed the first hour. But the story makes no sense, the dialogue is painfully bad, and nobody "
    "in it behaves like a real person. After two hours I only wanted to leave. What a waste of a great cast!"
)


def show_documents(console: Console, folder: Path) -> list[Path]:
    """Classify a review with the pretrained reviews-en; returns the figure and the page."""
    console.rule("[bold]Classifying a document: reviews-en")
    console.print(
        "The model reads words into sentences and sentences into the document, with attention on both levels. A bar is "
        "the weight of a sentence; the words that counted most are marked. A weight has no "
        "sign: it says how much was read, and not for which class it speaks.\n"
    )
    result = regard.load("reviews-en", device="cpu").classify(REVIEW)
    view = regard.view(result)
    console.print(view, "")
    title = f"This review is {result.label} (probability {result.probability:.2f})"
    return [view.save(folder / "document.png", title=title), view.save(folder / "document.html", title=title)]
