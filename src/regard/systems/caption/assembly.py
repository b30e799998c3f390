"""The parts of a captioner, built as its config says."""

from typing import Any

from torch import nn

from regard.attention import align
from regard.attention.attend import Attention
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.encoders.annotations import Frozen, Strided
from regard.encoders.image import ImageEncoder
from regard.parts import build_part
from regard.systems.assembly import build_align, build_embedding, build_score
from regard.systems.caption.config import LEARNED, CaptionConfig

CaptionDecoder = ShowAttendTell | Adaptive | ShowAndTell


def frozen_encoder(config: CaptionConfig) -> Frozen:
    """The pretrained network that computes the features of cells."""
    return Frozen(
        config.encoder, config.stride, coarse_stride=config.coarse_stride, drop_last_layers=config.drop_last_layers
    )


def build_encoder(config: CaptionConfig) -> nn.Module:
    """The encoder that is trained with the decoder, from images to `Encoded`: strided, or a custom one."""
    if config.encoder == LEARNED:
        return ImageEncoder(Strided(filters=config.filters), config.stride)
    sizes = {"image_size": config.image_size, "stride": config.stride, "grid": config.grid, "filters": config.filters}
    built: nn.Module = build_part(config.encoder, sizes)
    return built


def build_decoder(config: CaptionConfig, memory_dim: int, vocabulary: int) -> CaptionDecoder:
    """Build the decoder of a config for cells of `memory_dim` features and a vocabulary of `vocabulary` words."""
    embedding = build_embedding(vocabulary, config.embedding)
    has_attention = config.architecture != "show_and_tell"
    output = nn.Linear(config.embedding if has_attention else config.hidden, vocabulary)
    nn.init.normal_(output.weight, std=output.in_features**-0.5)
    nn.init.zeros_(output.bias)
    shared: dict[str, Any] = {
        "memory_dim": memory_dim,
        "hidden": config.hidden,
        "output": output,
        "dropout": config.dropout,
        "output_dropout": config.output_dropout,
    }
    if not has_attention:
        return ShowAndTell(embedding, **shared)
    decoder = ShowAttendTell if config.architecture == "show_attend_tell" else Adaptive
    return decoder(embedding, attention=_build_attention(config, memory_dim), **shared)


def _build_attention(config: CaptionConfig, memory_dim: int) -> Attention:
    sizes = {"query_dim": config.hidden, "key_dim": memory_dim, "dim": config.attention_dim}
    score = build_score(config.score, sizes)
    if config.align == "hard":
        return Attention(score, align.Hard(temperature=config.temperature or None))
    return Attention(score, build_align("softmax" if config.align == "soft" else config.align, sizes))
