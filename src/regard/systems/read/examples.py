"""Sentences to read."""

from regard.systems.config import ExampleText


def examples() -> tuple[ExampleText, ...]:
    """Sentences whose words refer to earlier ones, or surprise."""
    stories, reader = "stories-both", "reader-en"
    return (
        ExampleText("It was too tired", "The animal didn't cross the street because it was too tired.", model=stories),
        ExampleText("It was too wide", "The animal didn't cross the street because it was too wide.", model=stories),
        ExampleText("Cars near a bridge", "The cars that the old man saw near the bridge are rusty.", model=stories),
        ExampleText("A garden path", "The old man the boats while the young sleep.", model=reader),
        ExampleText("A surprise at the end", "She opened the door and found a small elephant.", model=reader),
    )
