"""Recurrent models of visual attention: a class from a few glimpses, each where the model chose to look."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Classify images from a few glimpses, each where the model chose to look.",
    default_model="glimpse-digits",
    example="regard glimpse --model {model} IMAGE",
    headline={"test_error": "{:.2f} % error", "on_digit": "{:.0f} % of glimpses on the digit"},
    measured_on="{test_images:,} test images",
)
