"""Exporting a translator: the graph of its encoder, and that of one step of its decoder."""

from pathlib import Path

from regard.encoders.recurrent import RecurrentEncoder
from regard.encoders.transformer import TransformerEncoder
from regard.errors import OptionError
from regard.graphs.decoding import write_decoding
from regard.graphs.graph import Graph, Precision
from regard.graphs.recurrent import encode_recurrent
from regard.graphs.source import Source
from regard.graphs.transformer import encode_transformer
from regard.systems.export import Exported, graph_file
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.model import Translator


def export(model: Translator, folder: Path, precision: Precision) -> Exported:
    """Write both graphs into a folder."""

    def encode(graph: Graph) -> Source:
        ids, mask = (graph.input(name, ["inputs", "source"], "int64") for name in ("input_ids", "attention_mask"))
        if isinstance(model.encoder, RecurrentEncoder):
            return encode_recurrent(graph, model.encoder, ids, mask)
        if isinstance(model.encoder, TransformerEncoder):
            return encode_transformer(graph, model.encoder, ids, mask)
        raise OptionError(f"The encoder {type(model.encoder).__name__} cannot be exported.")

    files = [graph_file(name, precision) for name in ("encoder_model", "decoder_model_merged")]
    write_decoding(encode, model.decoder, (folder / files[0], folder / files[1]), precision)
    options = TranslationOptions()
    return Exported(
        {"encoder": files[0], "decoder": files[1]},
        generation={"num_beams": options.beam, "length_penalty": options.length_penalty},
        facts={"is_encoder_decoder": True, "vocab_size": len(model.target_tokenizer)},
    )
