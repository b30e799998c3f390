"""Questions to a captioner: a part of the image hidden, a caption given, hard attention drawn again, gold regions.

Regions are boxes (left, top, right, bottom) in fractions of the image that the model sees, which is the image of a
trace.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from PIL import Image, ImageDraw
from torch import Tensor

from regard.attention.align import Hard
from regard.config import PositiveInt, Probability
from regard.data.images import ImageInput
from regard.data.regions import Box
from regard.data.tokenizer import END, INNER_UNKNOWN, PAD, START, UNKNOWN, split_words
from regard.decoders.captions import ShowAttendTell
from regard.encoders.encoded import Encoded
from regard.encoders.feature_maps import NetworkMaps, feature_maps
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Ranking
from regard.search.options import Seed, Size
from regard.systems.caption.captions import Caption
from regard.systems.caption.config import CaptionOptions
from regard.systems.caption.examples import examples
from regard.systems.caption.model import Captioner
from regard.systems.endpoint import endpoint
from regard.systems.word_edits import WordEdit, compare_words
from regard.trace import Trace
from regard.trace.elements import Box as TraceBox
from regard.work import proceed

Gold = Sequence[Sequence[Box] | None]
"""For each word of a reference caption the boxes of what it names; None for a word that names nothing."""


@dataclass(frozen=True)
class WordChange:
    """A token of a caption, and how probable it is with the whole image and with the rest of it."""

    word: str
    before: float
    """Log-probability of the token with the whole image, after the tokens before it."""
    after: float
    """The same with the regions hidden."""


@dataclass(frozen=True)
class Occlusion:
    """The caption of an image before and after regions of it were hidden."""

    before: Caption
    after: Caption
    words: tuple[WordChange, ...]
    """The tokens of the caption before, and its end: how probable they are with and without the regions."""
    edits: tuple[WordEdit, ...]
    """From the caption before to the one after, word by word."""
    change: float
    """How much the log-probability of the caption before changes when the regions are hidden."""


@dataclass(frozen=True)
class CaptionInspection:
    """A caption with what each word attended to."""

    caption: Caption
    unknown: tuple[str, ...] = ()
    """Words of a given caption that the model does not know."""


def hide(image: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    """Return a copy of an image with these boxes painted over in its mean colour."""
    for box in boxes:
        _check_box(box)
    hidden = image.convert("RGB")
    mean = tuple(int(level) for level in np.asarray(hidden, dtype=np.float64).mean((0, 1)).round())
    pen = ImageDraw.Draw(hidden)
    for left, top, right, bottom in boxes:
        start = math.floor(left * image.width), math.floor(top * image.height)
        end = math.ceil(right * image.width) - 1, math.ceil(bottom * image.height) - 1
        pen.rectangle((start, (max(start[0], end[0]), max(start[1], end[1]))), fill=mean)
    return hidden


@torch.inference_mode()
def caption_without(model: Captioner, image: ImageInput, boxes: Sequence[Box], **options: Any) -> Occlusion:
    """Caption an image, hide boxes of it, and caption it again; options are the fields of `CaptionOptions`."""
    checked = _options(model, options)
    whole = model.seen(image)
    seen = [whole, hide(whole, boxes)]
    encoded = model.encode(model.prepare(seen).to(model.device))
    found = model.search_encoded(encoded, checked)
    before, after = (model.with_attention_quality(caption) for caption in model.report(encoded, found, seen, checked))
    tokens = found[0][0].tokens
    finished = found[0][0].finished
    pieces = [*model.tokenizer.pieces(tokens), *(["the end"] if finished else [])]
    first, second = (row[: len(pieces)].tolist() for row in _log_probs(model, encoded, tokens))
    words = tuple(WordChange(*each) for each in zip(pieces, first, second, strict=True))
    edits = compare_words(before.text.split(), after.text.split())
    return Occlusion(before, after, words, edits, sum(word.after - word.before for word in words))


@endpoint("hide", input="image", example={"boxes": [[0.25, 0.25, 0.5, 0.75]]})
def hide_boxes(
    model: Captioner,
    image: ImageInput,
    boxes: Annotated[tuple[tuple[Probability, Probability, Probability, Probability], ...], Meta(min_length=1)],
    *,
    beam: Size = 5,
    example: str = "",
) -> Occlusion:
    """Caption an image with and without some parts of it, and compare.

    Parameters
    ----------
    boxes
        The parts to hide: left, top, right and bottom, in fractions of the image.
    beam
        Number of hypotheses of the search; 1 is greedy search.
    example
        Name of the example that the image is, whose gold boxes are added; none for other images.
    """
    found = caption_without(model, image, boxes, beam=beam)
    before, after = (with_example(caption, example) for caption in (found.before, found.after))
    return replace(found, before=before, after=after)


@endpoint("inspect", input="image")
def inspect_image(
    model: Captioner, image: ImageInput, *, text: str = "", seed: Seed | None = None, beam: Size = 5, example: str = ""
) -> CaptionInspection:
    """Caption an image, read a given caption, or draw the cells of hard attention by a seed.

    Parameters
    ----------
    text
        A caption to read instead of the model's own.
    seed
        Seed of the cells that hard attention draws; none for the most probable cells.
    beam
        Number of hypotheses of the search; 1 is greedy search.
    example
        Name of the example that the image is, whose gold boxes are added; none for other images.
    """
    if text and seed is not None:
        raise OptionError("Give a text to read, or a seed to draw with, not both.")
    if seed is not None:
        caption = resample(model, image, seed=seed)
    else:
        caption = caption_given(model, image, text) if text else model.caption(image, beam=beam)
    return CaptionInspection(with_example(caption, example), unknown_words(model, text))


def unknown_words(model: Captioner, text: str) -> tuple[str, ...]:
    """The words and marks of a text that the vocabulary of a captioner does not have, each once."""
    has_words = model.tokenizer.kind == "word"
    unknown = (UNKNOWN, INNER_UNKNOWN) if has_words else (UNKNOWN,)
    found: dict[str, None] = {}
    for word in text.split():
        tokens = model.tokenizer.encode(word)
        parts = split_words(word) if has_words else [word] * len(tokens)
        found |= {part: None for part, token in zip(parts, tokens, strict=True) if token in unknown}
    return tuple(found)


@torch.inference_mode()
def caption_given(model: Captioner, image: ImageInput, text: str) -> Caption:
    """A given caption of an image as the model reads it: how probable each word is, and what it attends to."""
    options = _options(model, {})
    tokens = model.tokenizer.encode(text)
    if not tokens:
        raise OptionError("A caption needs a word; got none.")
    seen = model.seen(image)
    encoded = model.encode(model.prepare([seen]).to(model.device))
    log_probs = _log_probs(model, encoded, tokens)[0].tolist()
    score = Ranking(options.length_penalty).score(log_probs, None, None)
    given = Hypothesis(list(tokens), log_probs, score, finished=True, weights=None)
    (caption,) = model.report(encoded, [[given]], [seen], options)
    measured: Caption = model.with_attention_quality(replace(caption, text=text))
    return measured


@torch.inference_mode()
def resample(model: Captioner, image: ImageInput, *, seed: int, max_length: int = 30) -> Caption:
    """Caption an image by hard attention that draws the cell of each word, instead of taking the most probable one.

    The words themselves are the most probable ones (greedy search). The map of a word in the trace is the distribution
    that its cell was drawn from, and the series "choice" is that cell.
    """
    decoder = model.decoder
    if not (isinstance(decoder, ShowAttendTell) and decoder.attention and isinstance(decoder.attention.align, Hard)):
        raise OptionError(
            f"Only hard attention draws its cells; this model has architecture {model.config.architecture!r} and align "
            f"{model.config.align!r}. Take one with align 'hard', such as scenes-hard."
        )
    options = _options(model, {"max_length": max_length})
    seen = model.seen(image)
    encoded = model.encode(model.prepare([seen]).to(model.device))
    tokens, log_probs, steps = _draw(decoder, encoded, torch.Generator().manual_seed(seed), max_length)
    score = Ranking(options.length_penalty).score(log_probs, None, None)
    text = model.tokenizer.decode(tokens)
    trace = Trace.from_image(
        seen,
        model.tokenizer.pieces(tokens),
        np.array([each.numpy() for each, _, _ in steps]).reshape(len(tokens), math.prod(model.config.grid)),
        grid=model.config.grid,
        gates=[gate for _, _, gate in steps],
        choices=[choice for _, choice, _ in steps],
        log_probs=log_probs[: len(tokens)],
        text=text,
    )
    measured: Caption = model.with_attention_quality(Caption(text, score, len(log_probs) > len(tokens), trace=trace))
    return measured


@endpoint("maps", input="image")
def layer_maps(
    model: Captioner, image: ImageInput, *, max_maps: PositiveInt = 16, max_side: PositiveInt = 32
) -> NetworkMaps:
    """The pixels that the encoder sees of an image, and the maps after each of its layers (see `feature_maps`)."""
    _options(model, {})
    pixels = model.prepare([model.seen(image)])
    encoder, prepared = model.encoder(pixels.to(model.device))
    sequence = getattr(getattr(encoder, "net", None), "features", None)
    if sequence is None:
        raise OptionError(f"The encoder {model.config.encoder} is no sequence of layers whose maps can be shown.")
    layers = [(f"features.{name}", layer) for name, layer in sequence.named_children()]
    maps = feature_maps(layers, prepared[0], max_maps=max_maps, max_side=max_side)
    return NetworkMaps(pixels[0], tuple(pixels[0].shape), maps)


def with_example(caption: Caption, example: str) -> Caption:
    """A caption whose trace has the gold boxes of an example; the caption itself where there is none of this name."""
    found = next((each for each in examples() if each.name == example), None) if example else None
    if found is None or caption.trace is None:
        return caption
    return replace(caption, trace=with_gold(caption.trace, found.caption.split(), found.gold))


def with_gold(trace: Trace, words: Sequence[str], gold: Gold) -> Trace:
    """Add the boxes of a reference caption to the trace of another one, for the words that both have in common order.

    The trace then shows what each word should have looked at. Words of the trace that the reference does not have, or
    has elsewhere, get no boxes.
    """
    if len(words) != len(gold):
        raise OptionError(f"Each word of a reference has boxes or None; got {len(words)} words and {len(gold)} boxes.")
    matcher = SequenceMatcher(None, list(words), list(trace.target), autojunk=False)
    boxes = [
        TraceBox("target", there + index, *box)
        for here, there, length in matcher.get_matching_blocks()
        for index in range(length)
        for box in gold[here + index] or ()
    ]
    return replace(trace, boxes=(*trace.boxes, *boxes))


def _options(model: Captioner, options: dict[str, Any]) -> CaptionOptions:
    model.check_mode()
    checked: CaptionOptions = model.options(options)
    return checked


def _log_probs(model: Captioner, encoded: Encoded, tokens: Sequence[int]) -> Tensor:
    """The log-probability of each token of a caption, and of its end, for each image (images, tokens + 1)."""
    rows = len(encoded.states)
    features = model.unroll(encoded, [list(tokens)] * rows).features
    predicted = model.decoder.output(features).float().log_softmax(-1)
    targets = torch.tensor([*tokens, END], device=predicted.device).expand(rows, -1).unsqueeze(-1)
    return predicted.gather(-1, targets).squeeze(-1).cpu()


def _draw(
    decoder: ShowAttendTell, encoded: Encoded, generator: torch.Generator, max_length: int
) -> tuple[list[int], list[float], list[tuple[Tensor, int, float]]]:
    """The tokens, their log-probabilities, and for each its distribution over the cells, drawn cell and gate."""
    state, device = decoder.start(encoded), encoded.states.device
    token = torch.tensor([START], device=device)
    tokens: list[int] = []
    log_probs: list[float] = []
    steps = []
    while len(tokens) < max_length:
        proceed()
        distribution = decoder.distribution(state)[0].float().cpu()
        choice = int(torch.multinomial(distribution, 1, generator=generator))
        override = torch.zeros(1, 1, len(distribution), device=device, dtype=encoded.states.dtype)
        override[0, 0, choice] = 1
        step = decoder.step(token, state, override=override)
        state = step.state
        predicted = step.logits[0].float().log_softmax(-1)
        predicted[[PAD, START, UNKNOWN]] = -math.inf
        token = predicted.argmax(-1, keepdim=True)
        log_probs.append(float(predicted[token]))
        if int(token) == END:
            break
        tokens.append(int(token))
        gate = 1.0 if step.attended is None else float(step.attended.extras["gate"])
        steps.append((distribution, choice, gate))
    return tokens, log_probs, steps


def _check_box(box: Box) -> None:
    left, top, right, bottom = box
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise OptionError(
            "A box is left, top, right, bottom in fractions of the image, with 0 <= left < right <= 1 and "
            f"0 <= top < bottom <= 1; got {tuple(box)}."
        )
