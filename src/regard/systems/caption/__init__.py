"""Captioning: an image in, a sentence about it out, and which part of the image each word looked at."""

from regard.systems.caption.config import CaptionTest
from regard.systems.families import Family

FAMILY = Family(
    system="regard.systems.caption.model:Captioner",
    experiment="regard.systems.caption.training:CaptionExperiment",
    evaluate="regard.systems.caption.evaluation:evaluate",
    test_set=CaptionTest,
    evidence="regard.systems.caption.erasing:evidence",
    commands={
        "caption": "regard.systems.caption.command:caption",
        "gallery": "regard.systems.caption.command:gallery",
    },
    example="regard caption --model {model} IMAGE",
    headline={"valid_beam_bleu4": "BLEU-4 {:.1f}"},
    scales={"valid_beam_bleu4": "BLEU-4: overlap with correct captions in runs of up to four words, from 0 to 100."},
    tested="held-out images",
)
