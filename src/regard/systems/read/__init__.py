"""Reading: a sentence in, word by word; what each word attended to, how surprising it was, or a label, out."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Read sentences word by word, and show what each word attended to.",
    default_model="reader-en",
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
