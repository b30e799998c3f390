"""Exporting an image classifier: one graph, from pixels to a logit for each class."""

from pathlib import Path

from torch import nn

from regard.encoders.image import ConvNet
from regard.errors import OptionError
from regard.graphs.graph import Graph, Precision
from regard.graphs.images import apply
from regard.systems.export import Exported, graph_file
from regard.systems.recognize.model import ImageClassifier


def export(model: ImageClassifier, folder: Path, precision: Precision) -> Exported:
    """Write the graph into a folder; it takes pixels from 0 to 255."""
    net, config = model.net, model.config
    if type(net).forward is not ConvNet.forward or not isinstance(net.features, nn.Sequential):
        raise OptionError(f"The network {type(net).__name__} cannot be exported: it is not only layers in a row.")
    graph = Graph(precision)
    shape = ["inputs", config.channels, config.image_size, config.image_size]
    pixels = graph.Cast(graph.input("pixel_values", shape, "uint8"), to=graph.onnx.TensorProto.FLOAT)
    maps = apply(graph, net.features, (pixels - model.mean) / model.deviation)
    graph.output("logits", apply(graph, net.classifier, maps), ["inputs", len(model.labels)])
    file = graph_file("model", precision)
    graph.save(folder / file)
    names = dict(enumerate(model.labels))
    return Exported(
        {"model": file}, facts={"id2label": names, "label2id": {name: each for each, name in names.items()}}
    )
