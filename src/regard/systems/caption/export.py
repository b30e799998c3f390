"""Exporting a captioner: the graph of its encoder, from pixels on, and that of one step of its decoder."""

from pathlib import Path

import torch

from regard.encoders.image import ImageEncoder
from regard.errors import OptionError
from regard.graphs.decoding import write_decoding
from regard.graphs.graph import Graph, Precision
from regard.graphs.images import annotated, cells, components
from regard.graphs.source import Source
from regard.systems.caption.config import CaptionOptions
from regard.systems.caption.model import DEVIATION, MEAN, Captioner
from regard.systems.export import Exported, graph_file


def export(model: Captioner, folder: Path, precision: Precision) -> Exported:
    """Write both graphs into a folder; the encoder takes pixels from 0 to 255, and has a frozen network in it."""
    network, mean, deviation = model.network, torch.full((3, 1, 1), MEAN), torch.full((3, 1, 1), DEVIATION)
    if model.frozen is not None:
        network, mean, deviation = model.frozen.loaded(torch.device("cpu"))
    if not isinstance(network, ImageEncoder):
        raise OptionError(f"The encoder {type(network).__name__} cannot be exported.")
    side = model.config.image_size

    def encode(graph: Graph) -> Source:
        pixels = graph.input("pixel_values", ["inputs", 3, side, side], "uint8")
        images = (graph.Cast(pixels, to=graph.onnx.TensorProto.FLOAT) - mean) / deviation
        features = cells(graph, network, images)
        if model.novelty is not None:
            seen = graph.ReduceMean(features, [1], keepdims=0) - model.novelty.mean
            basis = graph.constant(model.novelty.components)
            left_out = seen - (seen @ basis) @ graph.Transpose(basis, perm=[1, 0])
            distance = graph.ReduceL2(left_out, [1], keepdims=0) / model.novelty.threshold
            graph.output("novelty", distance, ["inputs"])
        if model.reduction is not None:
            features = components(graph, model.reduction, features)
        return annotated(graph, model.annotations, features)

    files = [graph_file(name, precision) for name in ("encoder_model", "decoder_model_merged")]
    write_decoding(encode, model.decoder, (folder / files[0], folder / files[1]), precision)
    options = CaptionOptions()
    generation = {"num_beams": options.beam, "length_penalty": options.length_penalty, "max_length": options.max_length}
    facts = {"is_encoder_decoder": True, "vocab_size": len(model.tokenizer)}
    return Exported({"encoder": files[0], "decoder": files[1]}, generation, facts)
