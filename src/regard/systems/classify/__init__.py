"""Document classification: a text in, its class and the sentences and words that carried it out."""

from regard.systems.classify.config import ClassificationTest
from regard.systems.families import Family

FAMILY = Family(
    system="regard.systems.classify.model:DocumentClassifier",
    experiment="regard.systems.classify.training:ClassificationExperiment",
    evaluate="regard.systems.classify.evaluation:evaluate",
    test_set=ClassificationTest,
    evidence="regard.systems.classify.erasing:evidence",
    commands={"classify": "regard.systems.classify.command:classify"},
    example="regard classify --model {model} 'A text.'",
    headline={"test_accuracy": "{:.1f} % right"},
    tested="{test_documents:,} test texts",
)
