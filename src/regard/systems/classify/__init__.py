"""Document classification: the class of a text, and the sentences and words that it was decided by."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Classify documents, and show the sentences and words that decided.",
    default_model="reviews-en",
    inputs="texts",
    about_inputs="Texts to classify; without texts and files, the standard input is one document.",
    about="Prints the label and its probability; of a single text also the most attended sentences.",
    example="regard classify --model {model} 'A text.'",
    task="text-classification",
    headline={"test_accuracy": "{:.1f} % right"},
    measured_on="{test_documents:,} test texts",
)
