"""A small system in its own folder: it picks the largest of some numbers by attention."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Pick the largest of some numbers.",
    inputs="numbers",
    about_inputs="The numbers.",
    example="regard pick --model {model} 1 2 3",
    headline={"test_error": "error {:.2f}"},
)
