"""Recurrent models of visual attention: a class from a few glimpses, each where the model chose to look."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Classify images from a few glimpses, each where the model chose to look.",
    default_model="glimpse-digits",
    inputs="images",
    about_inputs="Image files.",
    about="Prints the class and where the model looked; --show draws the path, and what each glimpse saw.",
    example="regard glimpse --model {model} IMAGE",
    task="image-classification",
    headline={"test_error": "{:.2f} % error", "on_digit": "{:.0f} % of glimpses on the digit"},
    measured_on="{test_images:,} test images",
)
