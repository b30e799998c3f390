"""Captioner: a picture in, a sentence about it out, and which part of the picture each word looked at."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.data.images import PREPARATIONS, open_image
from regard.data.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from regard.decoders.captions import ShowAndTell, ShowAttendTell
from regard.decoders.protocol import Unrolled
from regard.encoders.annotations import Annotations, Frozen, Reduction, Strided
from regard.encoders.encoded import Encoded
from regard.encoders.image import ImageEncoder
from regard.errors import OptionError, ShapeError
from regard.layers.layout import by_columns
from regard.search.beam import beam as beam_search
from regard.search.hypothesis import Hypothesis, Rules
from regard.search.one import sample
from regard.systems.folder import read_config_and_weights, write_model
from regard.trace import Trace

SYSTEM = "captioner"
LEARNED = "strided"
TOKENIZER = "caption"

LENGTH_PENALTY = 0.6
"""Captions are short: with 1, as for translations, a beam prefers those that say too much."""


@dataclass(frozen=True)
class CaptionerConfig:
    """The parts of a captioner."""

    architecture: Literal["show_attend_tell", "show_and_tell"] = "show_attend_tell"
    """With attention before each word, or reading the picture once."""
    align: Literal["soft", "hard"] = "soft"
    """show_attend_tell: the average of all cells, or one cell a word."""
    temperature: float = 0.0
    """hard: learn by straight-through Gumbel-softmax at this temperature; 0 for REINFORCE."""
    encoder: str = LEARNED
    """strided, a small network that is learned too; or one with published weights: efficientnet_lite0, timm:NAME."""
    stride: int = 8
    """Pixels of the picture between two cells."""
    leave_out: int = 0
    """efficientnet_lite0: how many of its last layers are left out."""
    size: int = 64
    """Height and width of a picture in pixels."""
    fit: Literal["whole", "middle"] = "whole"
    """How other pictures are made square: the whole is squeezed, or the middle cut out."""
    filters: tuple[int, int, int] = (16, 48, 96)
    """strided: maps after each halving."""
    features: int = 1280
    """Published networks: how many features they give for a cell."""
    reduced: int = 0
    """Published networks: how many principal components are kept of these; 0 for the features themselves."""
    annotation: int = 0
    """Features of a cell after a learned layer; 0 for as they are."""
    coordinates: bool = False
    """Whether a cell knows its row and column."""
    embedding: int = 256
    """Features of a word."""
    hidden: int = 512
    """Units of the LSTM."""
    match: int = 256
    """Units in which state and cells are compared."""
    dropout: float = 0.0
    """Share of word features dropped in training."""
    state_dropout: float = 0.0
    """Share of annotation features dropped."""
    output_dropout: float = 0.5
    """Share of features dropped before the output layer."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.size // self.stride, self.size // self.stride

    @property
    def is_learned(self) -> bool:
        """Whether the network is learned with the decoder, and so a part of the model."""
        return self.encoder == LEARNED

    def describe_features(self) -> str:
        """What features of pictures are, in words: a model takes those that are described as its own."""
        if self.is_learned:
            raise OptionError(f"The encoder {self.encoder} is learned, so that there are no features to keep of it.")
        without = f" without the last {self.leave_out}" if self.leave_out else ""
        reduced = f", {self.reduced} components" if self.reduced else ""
        return f"{self.encoder}{without} at stride {self.stride} of {self.fit} {self.size}{reduced}"


@dataclass(frozen=True)
class Caption:
    """One caption, and how it came about."""

    text: str
    score: float
    """Mean log-probability of a word."""
    finished: bool
    """False where it was cut at the length limit."""
    trace: Trace | None
    """What each word attended to, and how far its gate was open; None for a model without attention."""


class Captioner(nn.Module):
    """Cells of a picture, a decoder that looks at them, and its words.

    What is shown to it is pixels, uint8 (b, 3, h, w), or for a network with published weights their features, (b,
    cells, d), as a FeatureStore keeps them.
    """

    def __init__(self, config: CaptionerConfig, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config, self.tokenizer = config, tokenizer
        features = config.reduced or config.features
        self.network: ImageEncoder | None = None
        self.reduction: Reduction | None = None
        if config.is_learned:
            self.network = ImageEncoder(Strided(filters=config.filters), config.stride)
            features = self.network.dim
        else:
            self._frozen = Frozen(config.encoder, config.stride, leave_out=config.leave_out)
            self.reduction = Reduction(config.features, config.reduced) if config.reduced else None
        self.annotations = Annotations(
            features,
            config.grid,
            dim=config.annotation,
            coordinates=config.coordinates,
            dropout=config.state_dropout,
        )
        self.decoder = _decoder(config, self.annotations.dim, len(tokenizer))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def encode(self, shown: Shaped[Tensor, "b ..."]) -> Encoded:
        """The annotations of pictures, from their pixels or from features that were kept."""
        encoded: Encoded = self.annotations(self.cells(shown) if shown.ndim == 4 else shown)
        return encoded

    def cells(self, pixels: Shaped[Tensor, "b 3 h w"]) -> Float[Tensor, "b n d"]:
        """What the network tells of each cell, from pixels from 0 to 255; reduced where the model has it so."""
        if self.network is not None:
            images = ((pixels.float() - 127.5) / 64).contiguous(memory_format=torch.channels_last)
            encoded: Encoded = self.network(images)
            return encoded.states
        found = self._frozen.cells(pixels)
        if found.shape[-1] != self.config.features:
            raise ShapeError(
                f"{self.config.encoder} gives {found.shape[-1]} features a cell, and the model takes "
                f"{self.config.features}. Set model.features."
            )
        return found if self.reduction is None else self.reduction(found)

    @torch.no_grad()
    def search(self, shown: Tensor, *, beam: int = 5, max_length: int = 30, **options: Any) -> list[list[Hypothesis]]:
        """The best hypotheses for each picture."""
        return self._search(self.encode(shown), beam=beam, max_length=max_length, **options)

    def caption(self, picture: Any, *, beam: int = 5, nbest: int = 1, **options: Any) -> list[Caption]:
        """The `nbest` captions of a picture (a path, a PIL image or an array), best first.

        Options of the search: max_length, min_length, length_penalty, block_ngrams.
        """
        return next(self.caption_each([picture], beam=beam, nbest=nbest, **options))

    def caption_each(
        self, pictures: Iterable[Any], *, beam: int = 5, nbest: int = 1, batch: int = 32, **options: Any
    ) -> Iterator[list[Caption]]:
        """The same for many pictures, some at a time."""
        if not 1 <= nbest <= beam:
            raise OptionError(f"A beam of {beam} gives 1 to {beam} captions; got nbest={nbest}.")
        prepare, waiting = PREPARATIONS[self.config.fit](self.config.size), iter(pictures)
        while opened := [open_image(picture) for picture in islice(waiting, batch)]:
            pixels = torch.from_numpy(np.stack([prepare(image) for image in opened])).permute(0, 3, 1, 2)
            # Overlays are drawn on what the network saw: the whole picture, or its middle.
            seen = opened if self.config.fit == "whole" else [_middle(image) for image in opened]
            yield from self._captions(pixels.to(self.device), seen, beam=beam, nbest=nbest, **options)

    @torch.no_grad()
    def _captions(
        self, pixels: Tensor, seen: Sequence[Any], *, beam: int, nbest: int, **options: Any
    ) -> list[list[Caption]]:
        was_training = self.training
        self.eval()
        try:
            encoded = self.encode(pixels)
            found = [best[:nbest] for best in self._search(encoded, beam=beam, **options)]
            rows = [row for row, best in enumerate(found) for _ in best]
            flat = [hypothesis for best in found for hypothesis in best]
            traces = iter(self._traces(encoded, rows, flat, seen))
        finally:
            self.train(was_training)
        return [
            [Caption(self.tokenizer.decode(one.tokens), one.score, one.finished, next(traces)) for one in best]
            for best in found
        ]

    def draw(self, encoded: Encoded, *, max_length: int = 30) -> list[Hypothesis]:
        """A caption drawn word by word for each picture."""
        return sample(self.decoder, encoded, _rules(max_length))

    def look(self, encoded: Encoded, captions: Sequence[Sequence[int]]) -> Unrolled:
        """What each word of a caption, and its end, attends to where the words are given; one caption a picture."""
        target = torch.full((len(captions), 1 + max(map(len, captions))), PAD, device=encoded.states.device)
        target[:, 0] = START
        for row, caption in zip(target, captions, strict=True):
            row[1 : 1 + len(caption)] = torch.as_tensor(caption, device=target.device)
        unrolled: Unrolled = self.decoder(encoded, target, weights=True)
        return unrolled

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        metrics: dict[str, Any] | None = None,
        card: str = "",
        store: Literal["float32", "float16", "int8"] = "float32",
    ) -> None:
        """Write the model as a folder; a network with published weights stays in its package."""
        tokenizers = {TOKENIZER: self.tokenizer}
        write_model(folder, SYSTEM, self.config, self, tokenizers, metrics=metrics or {}, card=card, store=store)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str | torch.device | None = None) -> "Captioner":
        """Read a model folder; on the GPU when there is one, unless told otherwise."""
        config, weights = read_config_and_weights(folder, SYSTEM, CaptionerConfig)
        model = cls(config, Tokenizer.load(Path(folder) / f"{TOKENIZER}_tokenizer.json"))
        weights.into(model)
        return by_columns(model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval())

    def _search(
        self,
        encoded: Encoded,
        *,
        beam: int,
        max_length: int = 30,
        length_penalty: float = LENGTH_PENALTY,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        rules = _rules(max_length, min_length=options.pop("min_length", 0), block_ngrams=options.pop("block_ngrams", 0))
        return beam_search(self.decoder, encoded, rules, size=beam, length_penalty=length_penalty, **options)

    def _traces(
        self, encoded: Encoded, rows: Sequence[int], found: Sequence[Hypothesis], seen: Sequence[Any]
    ) -> Iterator[Trace | None]:
        """What was attended to for each word, from one pass in which the words are given."""
        if self.config.architecture == "show_and_tell":
            yield from (None for _ in found)
            return
        chosen = torch.tensor(rows, device=encoded.states.device)
        repeated = Encoded(encoded.states[chosen], encoded.mask[chosen], encoded.summary[chosen])
        unrolled = self.look(repeated, [hypothesis.tokens for hypothesis in found])
        if unrolled.weights is None or unrolled.gates is None:
            raise TypeError("Weights that were asked for are given.")
        maps = unrolled.weights if unrolled.chances is None else unrolled.chances
        for place, (row, hypothesis) in enumerate(zip(rows, found, strict=True)):
            words = len(hypothesis.tokens)
            yield Trace.from_image(
                seen[row],
                self.tokenizer.pieces(hypothesis.tokens),
                maps[place, :words].cpu(),
                grid=self.config.grid,
                gates=unrolled.gates[place, :words].cpu(),
                choices=None if unrolled.chances is None else unrolled.weights[place, :words].argmax(-1).cpu(),
                log_probs=hypothesis.log_probs[:words],
                text=self.tokenizer.decode(hypothesis.tokens),
            )


def _decoder(config: CaptionerConfig, memory_dim: int, vocabulary: int) -> ShowAttendTell | ShowAndTell:
    embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=config.embedding**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    has_attention = config.architecture == "show_attend_tell"
    output = nn.Linear(config.embedding if has_attention else config.hidden, vocabulary)
    nn.init.normal_(output.weight, std=output.in_features**-0.5)
    nn.init.zeros_(output.bias)
    if not has_attention:
        return ShowAndTell(
            embedding,
            memory_dim=memory_dim,
            hidden=config.hidden,
            output=output,
            dropout=config.dropout,
            output_dropout=config.output_dropout,
        )
    hard = align.Hard(temperature=config.temperature or None)
    return ShowAttendTell(
        embedding,
        memory_dim=memory_dim,
        hidden=config.hidden,
        attention=Attention(
            score.Additive(config.hidden, memory_dim, config.match), hard if config.align == "hard" else align.Softmax()
        ),
        output=output,
        dropout=config.dropout,
        output_dropout=config.output_dropout,
    )


def _rules(max_length: int, *, min_length: int = 0, block_ngrams: int = 0) -> Rules:
    return Rules(
        START,
        END,
        banned=(PAD, UNKNOWN),
        max_length=max_length,
        min_length=min_length,
        block_ngrams=block_ngrams,
    )


def _middle(image: Any) -> Any:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))
