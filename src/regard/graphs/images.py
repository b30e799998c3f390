"""Convolutional networks in ONNX graphs, layer by layer."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from regard.encoders.annotations import PCA, Annotations
from regard.encoders.efficientnet import InvertedBottleneck, Stem
from regard.encoders.image import ConvNet, ImageEncoder
from regard.errors import OptionError
from regard.graphs.graph import Graph, Value
from regard.graphs.source import Source


def apply(graph: Graph, layer: nn.Module, inputs: Value) -> Value:
    """The output of a layer, or of layers in a row."""
    if isinstance(layer, nn.Sequential):
        for each in layer:
            inputs = apply(graph, each, inputs)
        return inputs
    if type(layer) not in LAYERS:
        raise OptionError(f"The layer {type(layer).__name__} cannot be exported: there is no graph of it.")
    return LAYERS[type(layer)](graph, layer, inputs)


def _convolution(graph: Graph, layer: Any, inputs: Value) -> Value:
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        raise OptionError("A convolution can be exported if its padding is a number of zeros.")
    return graph.Conv(
        inputs,
        graph.kernel(layer.weight),
        *([] if layer.bias is None else [layer.bias]),
        strides=list(layer.stride),
        pads=list(layer.padding) * 2,
        dilations=list(layer.dilation),
        group=layer.groups,
    )


def _batch_norm(graph: Graph, layer: Any, inputs: Value) -> Value:
    parameters = layer.weight, layer.bias, layer.running_mean, layer.running_var
    return graph.BatchNormalization(inputs, *parameters, epsilon=layer.eps)


def _pair(size: int | Sequence[int]) -> list[int]:
    return [size, size] if isinstance(size, int) else list(size)


def _max_pool(graph: Graph, layer: Any, inputs: Value) -> Value:
    sizes = {"kernel_shape": _pair(layer.kernel_size), "strides": _pair(layer.stride)}
    return graph.MaxPool(inputs, pads=_pair(layer.padding) * 2, ceil_mode=int(layer.ceil_mode), **sizes)


def _average_pool(graph: Graph, layer: Any, inputs: Value) -> Value:
    sizes = {"kernel_shape": _pair(layer.kernel_size), "strides": _pair(layer.stride)}
    pads = _pair(layer.padding) * 2
    return graph.AveragePool(inputs, pads=pads, count_include_pad=1, ceil_mode=int(layer.ceil_mode), **sizes)


def _to_one_cell(operator: str) -> "Callable[[Graph, Any, Value], Value]":
    def pool(graph: Graph, layer: Any, inputs: Value) -> Value:
        if _pair(layer.output_size) != [1, 1]:
            raise OptionError(f"{type(layer).__name__}({layer.output_size}) cannot be exported: only one cell can.")
        return getattr(graph, operator)(inputs)  # type: ignore[no-any-return]

    return pool


def _linear(graph: Graph, layer: Any, inputs: Value) -> Value:
    return graph.linear(inputs, layer.weight, layer.bias)


def _response_norm(graph: Graph, layer: Any, inputs: Value) -> Value:
    return graph.LRN(inputs, size=layer.size, alpha=layer.alpha, beta=layer.beta, bias=layer.k)


def _bottleneck(graph: Graph, layer: Any, inputs: Value) -> Value:
    new = inputs
    for part in (layer.widen, layer.filter, layer.narrow):
        new = apply(graph, part, new)
    return inputs + new if layer.is_residual else new


def _flat(graph: Graph, layer: Any, inputs: Value) -> Value:
    if (layer.start_dim, layer.end_dim) != (1, -1):
        raise OptionError("Flatten can be exported from the first axis after the batch to the last.")
    return graph.Flatten(inputs, axis=1)


def _same(graph: Graph, layer: Any, inputs: Value) -> Value:
    return inputs


LAYERS: dict[type[nn.Module], Callable[[Graph, Any, Value], Value]] = {
    nn.AdaptiveAvgPool2d: _to_one_cell("GlobalAveragePool"),
    nn.AdaptiveMaxPool2d: _to_one_cell("GlobalMaxPool"),
    nn.AvgPool2d: _average_pool,
    nn.BatchNorm2d: _batch_norm,
    nn.Conv2d: _convolution,
    nn.Dropout: _same,
    nn.Flatten: _flat,
    nn.Identity: _same,
    nn.Linear: _linear,
    nn.LocalResponseNorm: _response_norm,
    nn.MaxPool2d: _max_pool,
    nn.ReLU: lambda graph, layer, inputs: graph.Relu(inputs),
    nn.ReLU6: lambda graph, layer, inputs: graph.Clip(inputs, 0.0, 6.0),
    nn.Tanh: lambda graph, layer, inputs: graph.Tanh(inputs),
    InvertedBottleneck: _bottleneck,
    Stem: lambda graph, layer, inputs: apply(graph, layer.layers, inputs),
}
"""The graph of each layer; dropout does nothing outside of training."""


def maps(graph: Graph, net: ConvNet, pixels: Value, strides: Sequence[int]) -> list[Value]:
    """The deepest maps of a network at each of several strides."""
    if not isinstance(getattr(net, "features", None), nn.Sequential):
        raise OptionError(f"The network {type(net).__name__} cannot be exported: its layers are not known one by one.")
    depths = [net.layers_to(stride) for stride in strides]
    found: dict[int, Value] = {}
    for number, layer in enumerate(list(net.features)[: max(depths)], 1):
        pixels = apply(graph, layer, pixels)
        found[number] = pixels
    return [found[depth] for depth in depths]


def cells(graph: Graph, encoder: ImageEncoder, pixels: Value) -> Value:
    """The features of the cells of images, (b, n, d), row by row."""
    fine, *coarse = maps(graph, encoder.net, pixels, encoder.strides)
    joined = [fine]
    for each in coarse:
        sizes = graph.Concat(graph.Shape(each, start=0, end=2), graph.Shape(fine, start=2, end=4), axis=0)
        options = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        joined.append(graph.Resize(each, None, None, sizes, **options))
    together = graph.Concat(*joined, axis=1) if coarse else fine
    return graph.Transpose(graph.Reshape(together, [0, 0, -1]), perm=[0, 2, 1])


def components(graph: Graph, reduction: PCA, features: Value) -> Value:
    """The principal components of the features of cells."""
    return (features - reduction.mean) @ graph.matrix(reduction.components)


def annotated(graph: Graph, annotations: Annotations, features: Value) -> Source:
    """The annotations of cells: an image as the source of a decoder, all of whose cells exist."""
    states, positions = features, annotations.positions
    if positions.shape[1]:
        batch = graph.Concat(graph.Shape(features, start=0, end=1), list(positions.shape), axis=0)
        states = graph.Concat(features, graph.Expand(positions, batch), axis=-1)
    states = apply(graph, annotations.layer, states)
    ones = graph.Concat(graph.Shape(states, start=0, end=1), [1], graph.Shape(states, start=1, end=2), axis=0)
    bias = graph.ConstantOfShape(ones, value=graph.tensor([0.0]))
    length = graph.Cast(graph.Shape(states, start=1, end=2), to=graph.onnx.TensorProto.FLOAT)
    summary = graph.ReduceMean(states, [1], keepdims=0)
    return Source(states, summary, bias, graph.Reshape(length, [1, 1, 1]), annotations.dim)
