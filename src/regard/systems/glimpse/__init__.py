"""Recurrent models of visual attention: a class from a few glimpses, each where the model chose to look."""

from regard.systems.families import Family
from regard.systems.glimpse.config import GlimpsesTest

FAMILY = Family(
    system="regard.systems.glimpse.model:Glimpser",
    experiment="regard.systems.glimpse.training:GlimpsesExperiment",
    evaluate="regard.systems.glimpse.evaluation:evaluate",
    test_set=GlimpsesTest,
    evidence="regard.systems.glimpse.erasing:evidence",
    commands={"glimpse": "regard.systems.glimpse.command:glimpse"},
    example="regard glimpse --model {model} IMAGE",
    headline={"test_error": "{:.2f} % error", "on_digit": "{:.0f} % of glimpses on the digit"},
    tested="{test_images:,} test images",
)
