"""Captioning: an image in, a sentence about it out, and which part of the image each word looked at."""

from regard.systems.registry import Declaration

SYSTEM = Declaration(
    summary="Describe images, and show which part of the image each word looked at.",
    default_model="photo-en",
    inputs="images",
    about_inputs="Image files.",
    commands=("gallery",),
    example="regard caption --model {model} IMAGE",
    task="image-to-text",
    headline={"valid_beam_bleu4": "BLEU-4 {:.1f}"},
    scales={"valid_beam_bleu4": "BLEU-4: overlap with correct captions in runs of up to four words, from 0 to 100."},
    measured_on="held-out images",
)
