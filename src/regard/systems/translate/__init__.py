"""Translation: text in, text out. Summaries, or questions and answers, are trained in the same way."""

from regard.systems.families import Family
from regard.systems.translate.config import TranslationTest

FAMILY = Family(
    system="regard.systems.translate.model:Translator",
    experiment="regard.systems.translate.training:TranslationExperiment",
    evaluate="regard.systems.translate.evaluation:evaluate",
    test_set=TranslationTest,
    compare="regard.systems.translate.evaluation:significance",
    evidence="regard.systems.translate.erasing:evidence",
    commands={
        "translate": "regard.systems.translate.command:translate",
        "align": "regard.systems.translate.command:align",
        "align-corpus": "regard.systems.translate.command:align_corpus",
    },
    example="regard translate --model {model} 'A sentence.'",
    headline={"test_bleu": "BLEU {:.1f}"},
    scales={"test_bleu": "BLEU: overlap with a human translation, from 0 to 100."},
    tested="{test_sentences:,} test sentences",
)
