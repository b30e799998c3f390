"""Translation: text in, text out. Summaries, or questions and answers, are trained in the same way."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Translate text, and show which words each word came from.",
    default_model="en-fr",
    inputs="texts",
    about_inputs="Sentences to translate; without them, each line of the standard input is one.",
    commands=("align", "align-corpus"),
    example="regard translate --model {model} 'A sentence.'",
    task="translation",
    headline={"test_bleu": "BLEU {:.1f}"},
    scales={"test_bleu": "BLEU: overlap with a human translation, from 0 to 100."},
    measured_on="{test_sentences:,} test sentences",
)
