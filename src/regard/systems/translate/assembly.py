"""The parts of a translator, built as its config says."""

from typing import TYPE_CHECKING, Any

from torch import nn

from regard.attention.attend import Attention
from regard.attention.coverage import Coverage
from regard.decoders.bahdanau import Bahdanau
from regard.decoders.luong import Luong
from regard.decoders.protocol import Decoder
from regard.decoders.transformer import TransformerDecoder
from regard.encoders.recurrent import RecurrentEncoder
from regard.encoders.transformer import TransformerEncoder
from regard.parts import build_part
from regard.systems.assembly import build_align, build_score

if TYPE_CHECKING:
    from regard.systems.translate.config import TranslationConfig


def build_encoder(config: "TranslationConfig", embedding: nn.Embedding) -> Any:
    """The encoder: of the architecture, or a custom one."""
    if config.encoder != "auto":
        sizes = {
            "embedding": embedding,
            "hidden": config.encoder_hidden or config.hidden,
            "num_layers": config.layers,
            "num_heads": config.heads,
            "dropout": config.dropout,
            "state_dropout": config.state_dropout,
        }
        return build_part(config.encoder, sizes)
    if config.architecture == "transformer":
        return TransformerEncoder(
            embedding,
            num_layers=config.layers,
            num_heads=config.heads,
            inner=config.feedforward_dim,
            dropout=config.dropout,
            prenorm=config.prenorm,
        )
    return RecurrentEncoder(
        embedding,
        config.encoder_hidden or config.hidden,
        cell=config.cell,
        num_layers=config.layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout,
        state_dropout=config.state_dropout,
    )


def build_decoder(config: "TranslationConfig", memory_dim: int, embedding: nn.Embedding, output: nn.Module) -> Decoder:
    """The decoder: of the architecture, or a custom one."""
    if config.architecture == "transformer" and config.decoder == "auto":
        return TransformerDecoder(
            embedding,
            memory_dim=memory_dim,
            num_layers=config.decoder_layers or config.layers,
            num_heads=config.heads,
            inner=config.feedforward_dim,
            output=output,
            dropout=config.dropout,
            prenorm=config.prenorm,
            shown_layer=config.alignment_layer - 1 if config.alignment_layer else None,
            shown_head=config.alignment_head - 1 if config.alignment_head else None,
        )
    has_attention = config.architecture in ("rnnsearch", "luong")
    sizes: dict[str, Any] = {
        "memory_dim": memory_dim,
        "summary_dim": memory_dim,
        "hidden": config.hidden,
        "attention": build_attention(config, config.hidden, memory_dim) if has_attention else None,
        "output": output,
        "output_dim": config.embedding,
        "cell": config.cell,
        "dropout": config.dropout,
        "output_dropout": config.output_dropout,
    }
    if config.decoder != "auto":
        more = {"embedding": embedding, "num_layers": config.layers, "num_heads": config.heads}
        built: Decoder = build_part(config.decoder, sizes | more)
        return built
    if config.architecture == "rnnsearch":
        sizes["summary_dim"] = config.encoder_hidden or config.hidden
        after = config.output_state == "after"
        return Bahdanau(embedding, conditional=config.conditional, output_after=after, **sizes)
    return Luong(embedding, num_layers=config.layers, input_feeding=config.input_feeding, **sizes)


def build_attention(config: "TranslationConfig", query_dim: int, key_dim: int) -> Attention:
    """The attention of a recurrent decoder: the score and the alignment that the config names."""
    sizes = {
        "query_dim": query_dim,
        "key_dim": key_dim,
        "dim": config.hidden,
        "window": config.window,
        "max_positions": config.max_positions,
    }
    score, align = build_score(config.score, sizes), build_align(config.align, sizes)
    return Coverage(score, align, key_dim=key_dim) if config.coverage else Attention(score, align)
