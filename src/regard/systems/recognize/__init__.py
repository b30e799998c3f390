"""Image classification: an image in, the names of what it may show out."""

from regard.systems.families import Family
from regard.systems.recognize.config import RecognitionTest

FAMILY = Family(
    system="regard.systems.recognize.model:ImageClassifier",
    experiment="regard.systems.recognize.training:RecognitionExperiment",
    evaluate="regard.systems.recognize.evaluation:evaluate",
    test_set=RecognitionTest,
    commands={"recognize": "regard.systems.recognize.command:recognize"},
    example="regard recognize --model {model} IMAGE",
    headline={"test_accuracy": "{:.1f} % right"},
    tested="{test_images:,} test images",
)
