"""Captions whatever computes them: from images to pixels, from hypotheses to captions and their traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, UInt8

from regard.data.images import PREPARATIONS, ImageInput, open_image
from regard.data.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.options import Search
from regard.systems.caption.config import CaptionConfig, CaptionOptions
from regard.systems.predictor import Predictor, Result
from regard.trace import Trace

MAX_WORDS = 30
"""Maximum number of tokens of a caption where the options name none."""


@dataclass(frozen=True)
class Caption(Result):
    """One caption."""

    text: str
    score: float
    """Log-probability divided by a power of the length, as the search ranked it."""
    finished: bool
    """False where the caption was cut at the length limit."""
    novelty: float | None = None
    """How unlike the training images the image is; above 1 it is foreign, as 5 % of held-out images are. None for a
    model that does not say."""
    caution: str = ""
    """What to know before believing the caption: that the image is foreign, and what the model knows."""
    alternatives: tuple["Caption", ...] = field(default=(), repr=False)
    """The next best captions, where `nbest` asked for them."""


@dataclass(frozen=True)
class Looks:
    """What each word of a caption, and its end, attended to, with the caption given; padding may follow."""

    maps: Float[np.ndarray, "m n"]
    gates: Float[np.ndarray, "m"]
    """The share of the image in the context of each word."""
    choices: Sequence[int] | None = None
    """Hard attention: the cell that each word chose; `maps` are then what it chose from."""


class Captioning(Predictor[ImageInput, Caption, CaptionOptions]):
    """What captions images; subclasses define `predict_batch`. An input is a path, a PIL image or an array."""

    kind = "caption"
    Config = CaptionConfig
    takes_images = True
    parameter_uses = 100
    assets: ClassVar[Mapping[str, Any]] = {"tokenizer": Tokenizer}
    max_batch = 32
    config: CaptionConfig
    tokenizer: Tokenizer

    caption = Predictor.predict

    @property
    def has_attention(self) -> bool:
        """Whether captions come with a trace."""
        return self.config.architecture != "show_and_tell"

    def seen(self, image: ImageInput) -> Any:
        """The part of an image that the network sees, and that overlays are drawn on: all of it, or its centre."""
        opened = open_image(image)
        if self.config.resize == "stretch":
            return opened
        side = min(opened.size)
        left, top = (opened.width - side) // 2, (opened.height - side) // 2
        return opened.crop((left, top, left + side, top + side))

    def pixels(self, images: Sequence[Any]) -> UInt8[np.ndarray, "b 3 h w"]:
        """Opened images as the pixels that the network takes, from 0 to 255."""
        resize = PREPARATIONS[self.config.resize](self.config.image_size)
        return np.stack([resize(image) for image in images]).transpose(0, 3, 1, 2)

    def rules(self, rows: int, options: Search) -> Rules:
        """The rules of a search for so many images."""
        prefixes = [self.tokenizer.encode(options.prefix)] * rows if options.prefix else None
        return options.rules(start=START, end=END, banned=(PAD, UNKNOWN), max_length=MAX_WORDS, prefixes=prefixes)

    def written(self, found: Sequence[Sequence[Hypothesis]], traces: Sequence[Trace | None]) -> list[Caption]:
        """The captions of the hypotheses of each image, with a trace for each hypothesis in order."""
        each, results = iter(traces), []
        for best in found:
            first, *others = [
                Caption(self.tokenizer.decode(one.tokens), one.score, one.finished, trace=next(each)) for one in best
            ]
            results.append(replace(first, alternatives=tuple(others)))
        return results

    def with_novelty(self, captions: Sequence[Caption], novelty: Sequence[float]) -> list[Caption]:
        """The captions with the novelty of each image, and a caution where it is foreign."""
        return [
            replace(caption, novelty=distance, caution=self.caution(distance))
            for caption, distance in zip(captions, novelty, strict=True)
        ]

    def caution(self, novelty: float) -> str:
        """What to say about an image of this novelty: nothing, unless it is foreign."""
        if novelty <= 1:
            return ""
        return f"This image is unlike those that the model knows ({self.config.domain}): expect a wrong caption."

    def trace_of(self, seen: Any, hypothesis: Hypothesis, looks: Looks) -> Trace:
        """The trace of a caption over the image as it was `seen`."""
        words = len(hypothesis.tokens)
        return Trace.from_image(
            seen,
            self.tokenizer.pieces(hypothesis.tokens),
            looks.maps[:words],
            grid=self.config.grid,
            gates=looks.gates[:words],
            choices=None if looks.choices is None else looks.choices[:words],
            log_probs=hypothesis.log_probs[:words],
            text=self.tokenizer.decode(hypothesis.tokens),
        )
