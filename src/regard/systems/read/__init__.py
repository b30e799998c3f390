"""Reading: a sentence in, word by word; what each word attended to, how surprising it was, or a label, out."""

from regard.systems.families import Family
from regard.systems.read.config import ReadingTest

FAMILY = Family(
    system="regard.systems.read.model:Reader",
    experiment="regard.systems.read.training:ReadingExperiment",
    evaluate="regard.systems.read.evaluation:evaluate",
    test_set=ReadingTest,
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
