"""What the graphs of encoders and decoders share: an encoded input, the result of a step, and joined layers."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.graphs.graph import Graph, Parts, Value


@dataclass
class Source:
    """An encoded input in a graph."""

    states: Value
    """(b, n, d)."""
    summary: Value
    """(b, s)."""
    bias: Value
    """(b, 1, n): 0, and minus infinity at padding."""
    length: Value
    """(b, 1, 1): the number of states."""
    width: int
    """Features of a state."""


@dataclass
class Stepped:
    """The result of one step in a graph."""

    features: Value
    """(r, f): the inputs of the output layer."""
    past: dict[str, Value]
    """What the next step needs, by name, each (r, ...)."""
    weights: Value | None = None
    """(r, n)."""
    extras: Parts = field(default_factory=dict)
    """Further results, each (r, ...)."""


def padding(graph: Graph, mask: Value) -> tuple[Value, Value]:
    """The bias of a mask (b, n), (b, 1, n), and its lengths, (b, 1, 1)."""
    exists = graph.Cast(graph.Unsqueeze(mask, [1]), to=graph.onnx.TensorProto.FLOAT)
    return graph.Where(graph.Greater(exists, 0.0), 0.0, float("-inf")), graph.ReduceSum(exists, [2], keepdims=1)


def stacked(*layers: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """Layers that multiply the same vector as one layer."""
    weight = torch.cat([each.detach() for each, _ in layers])
    if all(bias is None for _, bias in layers):
        return weight, None
    return weight, torch.cat([weight.new_zeros(len(each)) if bias is None else bias.detach() for each, bias in layers])
