"""Reading: a sentence in, word by word; what each word attended to, how surprising it was, or a label, out."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Read sentences word by word, and show what each word attended to.",
    default_model="stories-both",
    inputs="texts",
    about_inputs="Sentences to read; for inference, a premise and a hypothesis.",
    about=(
        "A tagger such as stories-both prints word/label. A language model such as reader-en prints the perplexity and "
        "how surprising each word is, in bits, or continues the text with --generate. A classifier prints the label, "
        "its probability and the sentence, separated by tabs; a reader for inference takes PREMISE HYPOTHESIS, or "
        "lines with a premise, a tab and a hypothesis."
    ),
    example="regard read --model {model} --show - 'A sentence.'",
    headline={
        "test_perplexity": "perplexity {:.1f}",
        "test_antecedent": "antecedent {:.1f} %",
        "test_accuracy": "{:.1f} % right",
        "valid_accuracy": "{:.1f} % right in validation",
    },
    scales={"test_perplexity": "Perplexity: how many words the model hesitates between on average; 1 is certainty."},
    measured_on="{test_sentences:,} test sentences",
)
