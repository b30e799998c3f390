"""Image classification: an image in, the names of what it may show out."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Name what images show.",
    default_model="digits",
    inputs="images",
    about_inputs="Image files.",
    about="Prints the most probable classes, best first.",
    commands=("layers",),
    example="regard recognize --model {model} IMAGE",
    task="image-classification",
    headline={"test_accuracy": "{:.1f} % right"},
    measured_on="{test_images:,} test images",
)
