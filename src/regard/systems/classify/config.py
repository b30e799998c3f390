"""The options of `classify`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Literal

from regard.config import Checked, Count, PositiveInt
from regard.errors import OptionError


@dataclass(frozen=True)
class ClassificationOptions(Checked):
    """Options of `classify`."""

    weights: bool = True
    """Report the sentences and words with their weights; without them, only the label and the probabilities."""


@dataclass(frozen=True)
class ClassificationTest(Checked):
    """What a document classifier is evaluated on."""

    documents: str = ""
    """File (CSV, TSV or JSON lines, also compressed), or folder or tar archive with one folder per class."""
    format: Literal["auto", "csv", "tsv", "jsonl", "folders"] = "auto"
    """Format of the documents; auto decides by the name."""
    columns: tuple[str, str] = ("text", "label")
    """Columns or JSON fields with the text and the label; numbers, counted from 0, in a file without a header line."""
    posts: Literal["", "whole", "body"] = ""
    """News posts: whole restores their lines; body also removes headers, quotations and signatures."""
    skip_bad: bool = False
    """Skip rows that cannot be read, and report them, instead of stopping at the first."""
    world: str = ""
    """Instead of files, documents of the generated world: reviews."""
    split: Literal["test", "valid"] = "test"
    """Split of the world: test, or valid to compare settings."""
    count: Count = 0
    """Number of documents; 0 for all of a file, and for 500 of the world."""
    faithfulness: Count = 0
    """Number of documents, evenly spaced in the test set, on which to measure whether the attention explains the
    predictions; 0 for none."""
    rationales: bool = False
    """Compare the attention with the words that people marked (JSON lines with rationale_token_spans)."""
    shuffles: PositiveInt = 100
    """Shuffles of the permutation test."""
    word: str = ""
    """Show how the weight of this word is distributed in the documents of each class (Yang et al. 2016, Figure 3)."""
    figure: str = ""
    """Save the distributions of `word` as a figure here (.png, .svg, .pdf)."""

    def check(self) -> None:
        """Rules between the fields."""
        if bool(self.documents) == bool(self.world):
            raise OptionError("Give the test documents (documents), or the world: reviews.")
        if self.world not in ("", "reviews"):
            raise OptionError(f"world must be reviews; got {self.world!r}.")
        if self.figure and not self.word:
            raise OptionError("--figure shows the weights of a word: give it as --word WORD.")
