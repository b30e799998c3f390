"""Sentences to translate."""

from regard.systems.config import ExampleText

SENTENCES = {
    "en": (
        "The agreement on the European Economic Area was signed in August 1992.",
        "He is happy because his sister is coming tomorrow.",
        "I don't know where you bought that book.",
    ),
    "fa": ("من این کتاب را دیروز خریدم.", "او امروز به مدرسه نرفت.", "هوا سرد است."),
}
"""Sentences by language; the first is figure 3 of Bahdanau et al. 2015."""
BABEL = (
    "a happy policeman will show the Spanish man this black flower .",
    "the old farmer does not see the red houses .",
)
"""Sentences of the generated world babel, for the model of this name."""


def examples() -> tuple[ExampleText, ...]:
    """Sentences to try, in the languages that shipped models read."""
    known = (ExampleText(text, text, language) for language, texts in SENTENCES.items() for text in texts)
    return (*known, *(ExampleText(text, text, model="babel") for text in BABEL))
