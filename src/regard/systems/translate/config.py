"""The options of `translate`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Literal

from regard.config import PositiveInt
from regard.errors import OptionError
from regard.search.options import Search

Symmetrize = Literal["mutual", "intersection", "union", "grow-diag", "grow-diag-final-and"]
"""How the maps of two directions become links: by their mean, or by combining the links of each (see metrics)."""
MAX_TOKENS = 1000
"""Sentences with more tokens are not aligned: attention takes memory that grows with the square of the length."""
AS_READ = {"split": False, "copy_unknown": False, "recase": False}
"""Options of `translate` by which the model reads each text as it is: for measuring the model itself."""


@dataclass(frozen=True)
class TranslationOptions(Search):
    """Options of `translate`: those of the search, and what to report."""

    traces: Literal["main", "all", "none"] = "main"
    """Attention to report: one map; all layers and heads of a Transformer, self-attention included; or nothing."""
    replace_unknown: bool = False
    """Write the source word that was attended to most in place of an unknown word (Luong et al. 2015); for models of
    whole words."""
    split: bool | None = None
    """Translate a text sentence by sentence and join the translations; length limits then apply to each sentence. None
    uses the setting of the model."""
    copy_unknown: bool = True
    """Copy addresses, text that the subwords cannot represent, such as emoji, and names and numbers that would be
    mistranslated."""
    recase: bool = True
    """Read a sentence in capitals, or its rare first word, in lower case if the model knows that better; the
    translation is capitalised again."""


@dataclass(frozen=True)
class TranslationTest(Search):
    """What a translator is evaluated on."""

    source: str = ""
    """File with the test sentences, one per line."""
    reference: str = ""
    """File with their translations, line by line."""
    world: str = ""
    """Instead of files, sentences of the generated world: babel:SOURCE-TARGET, such as babel:en-fr."""
    count: PositiveInt = 500
    """Number of sentences of the world."""
    gold: str = ""
    """File with word links, as JSON lines (src, tgt, sure, possible): adds the alignment error rate."""
    lowercase: bool = False
    """Compare in lower case."""
    prepare: bool = False
    """Prepare texts as `translate` does (split, copy, recase), rather than measure what the model does by itself."""

    def check(self) -> None:
        """Rules between the fields."""
        super().check()
        if bool(self.source) != bool(self.reference):
            raise OptionError("source and reference are two files with as many lines; give both.")
        if self.source and self.world:
            raise OptionError("Give files (source and reference) or a world, not both.")
        if not (self.source or self.world or self.gold):
            raise OptionError("Give the files of a test set (source and reference), or a world such as babel:en-fr.")
