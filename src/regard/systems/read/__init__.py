"""Reading: a sentence in, word by word; what each word attended to, how surprising it was, or a label, out."""

from dataclasses import dataclass
from typing import Literal

from regard.config import Checked, PositiveInt
from regard.errors import OptionError
from regard.search.options import Search
from regard.systems.families import Family


@dataclass(frozen=True)
class ReadingOptions(Search):
    """Options of `read`: what to report, and how a language model continues a text."""

    generate: bool = False
    """Language models: continue the text, by the search that the other options describe, and read the result."""
    max_length: PositiveInt | None = 60
    """Generated text: maximum number of words after the given ones; none lets the model choose a limit."""
    traces: Literal["main", "all", "none"] = "main"
    """Attention to report: one map; all layers and heads; or nothing."""

    def check(self) -> None:
        """Rules between the fields."""
        super().check()
        if self.prefix is not None:
            raise OptionError("prefix is the text itself here: read(text, generate=True) continues it.")


@dataclass(frozen=True)
class EvaluationSet(Checked):
    """What a reader is evaluated on."""

    file: str = ""
    """Test sentences, in the format of the data that the reader is trained on."""
    format: Literal["auto", "lines", "labelled", "trees", "inference", "tagged"] = "auto"
    """Columns are separated by tabs. lines: plain text; labelled: label and text; trees: Stanford Sentiment Treebank;
    inference: label, premise and hypothesis, or SNLI's JSON lines; tagged: word and tag in each line; auto: as the task
    has."""
    world: Literal["", "stories"] = ""
    """Instead of a file, sentences of the generated world stories, where it is known what each word goes back to."""
    count: PositiveInt = 1000
    """Number of sentences of the world."""

    def check(self) -> None:
        """Rules between the fields."""
        if bool(self.file) == bool(self.world):
            raise OptionError("Give a test set: a file, or the world stories.")


FAMILY = Family(
    system="regard.systems.read.model:Reader",
    experiment="regard.systems.read.training:ReadingExperiment",
    evaluate="regard.systems.read.evaluation:evaluate",
    test_set=EvaluationSet,
    evidence="regard.systems.read.erasing:evidence",
    commands={"read": "regard.systems.read.command:read"},
    example="regard read --model {model} --show - 'A sentence.'",
    headline={
        "test_perplexity": "perplexity {:.1f}",
        "test_antecedent": "antecedent {:.1f} %",
        "test_accuracy": "{:.1f} % right",
        "valid_accuracy": "{:.1f} % right in validation",
    },
    scales={"test_perplexity": "Perplexity: how many words the model hesitates between on average; 1 is certainty."},
    tested="{test_sentences:,} test sentences",
)
