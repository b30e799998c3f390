"""Sentences to read."""

from regard.systems.config import ExampleText


def examples() -> tuple[ExampleText, ...]:
    """Sentences whose words surprise, or refer to earlier ones."""
    return (
        ExampleText("The tired animal", "The animal did not cross the street because it was too tired."),
        ExampleText("A garden path", "The old man the boats while the young sleep."),
        ExampleText("A surprise at the end", "She opened the door and found a small elephant."),
    )
