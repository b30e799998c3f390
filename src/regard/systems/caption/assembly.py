"""The parts of a captioner: its config, and the decoder that is built from it."""

from typing import Any

import torch
from torch import nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.data.tokenizer import PAD
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.encoders.annotations import Frozen
from regard.parts import build_part
from regard.systems.caption.config import CaptionConfig

CaptionDecoder = ShowAttendTell | Adaptive | ShowAndTell


def frozen_encoder(config: CaptionConfig) -> Frozen:
    """The pretrained network that computes the features of cells."""
    return Frozen(
        config.encoder, config.stride, coarse_stride=config.coarse_stride, drop_last_layers=config.drop_last_layers
    )


def build_decoder(config: CaptionConfig, memory_dim: int, vocabulary: int) -> CaptionDecoder:
    """Build the decoder of a config for cells of `memory_dim` features and a vocabulary of `vocabulary` words."""
    embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=config.embedding**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
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
    matched: Any
    if config.score == "additive":
        matched = score.Additive(config.hidden, memory_dim, config.attention_dim)
    else:
        matched = build_part(config.score, sizes)
    aligned: Any
    match config.align:
        case "soft":
            aligned = align.Softmax()
        case "hard":
            aligned = align.Hard(temperature=config.temperature or None)
        case own:
            aligned = build_part(own, sizes)
    return Attention(matched, aligned)
