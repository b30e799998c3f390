"""Attention in ONNX graphs: the scores and alignments of regard.attention, for several queries of each memory.

Queries are (b, q, d), the rows of each memory one after the other; keys are (b, k, p), projected already.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention import align as aligns
from regard.attention import score as scores
from regard.attention.attend import Attention
from regard.attention.coverage import Coverage
from regard.errors import OptionError
from regard.graphs.graph import Graph, Value

ACTIVATIONS = {torch.tanh: "Tanh", torch.relu: "Relu", torch.sigmoid: "Sigmoid"}
"""The activations of an MLP score that have an operator."""


@dataclass
class Looked:
    """What one step of attention gives."""

    weights: Value
    """(b, q, k), 0 for padding."""
    logits: Value
    """(b, q, k), minus infinity at padding."""
    state: dict[str, Value] = field(default_factory=dict)
    """What the next step needs, by name, each (b q, ...)."""


@dataclass(frozen=True)
class Asked:
    """What one step of attention is given."""

    query: Value
    """(b, q, d), before the projection of the score."""
    projected: Value
    """(b, q, p)."""
    keys: Value | None
    """(b, k, p), projected; None where the score does not depend on them."""
    bias: Value
    """(b, 1, k): 0, and minus infinity at padding."""
    length: Value | None = None
    """(b, 1, 1): one past the last key, for an alignment that needs it."""
    position: Value | None = None
    """(b, q, 1): how many steps there were, for an alignment that counts them."""
    covered: Value | None = None
    """(b, q, k): the sum of the weights so far, for coverage."""


def refuse(part: Any, role: str, known: Any) -> OptionError:
    """The error for a part that has no graph."""
    names = ", ".join(each.__name__ for each in known)
    return OptionError(
        f"{type(part).__name__} cannot be exported: there is no graph of this {role}. These have one: {names}."
    )


class AttentionGraph:
    """The graph of an `Attention`: what it remembers of the states, the state it begins with, and a step."""

    def __init__(self, graph: Graph, attention: Attention) -> None:
        self.graph, self.attention = graph, attention
        self.score, self.align = attention.score, attention.align
        if type(attention) not in (Attention, Coverage):
            raise refuse(attention, "attention", (Attention, Coverage))
        if type(self.align) not in WEIGHS:
            raise refuse(self.align, "alignment", WEIGHS)
        if type(self.score) not in COMPARES and self.align.uses_scores:
            raise refuse(self.score, "score", COMPARES)

    @property
    def query_weight(self) -> Tensor | None:
        """The matrix that multiplies each query; None where the score takes it as it is."""
        return query_weight(self.score) if self.align.uses_scores else None

    def keys(self, states: Value, width: int) -> tuple[Value, int] | None:
        """The projected keys of states of this width, with their own; None where the score does not depend on them."""
        if not self.align.uses_scores or isinstance(self.score, scores.Location):
            return None
        weight, bias = key_layer(self.score)
        if weight is None:
            return states, width
        return self.graph.linear(states, weight, bias), len(weight)

    @property
    def coverage(self) -> Tensor:
        """What the weights so far add to the keys."""
        assert isinstance(self.attention, Coverage)  # noqa: S101 - only its graph has a sum of weights
        return self.attention.direction

    @property
    def needs_length(self) -> bool:
        """Whether a step depends on the number of keys."""
        return isinstance(self.align, aligns.LocalPredictive)

    def start(self, bias: Value) -> dict[str, tuple[Value, list[int | str]]]:
        """The state before the first step, with the shape of each part after its rows; `bias` is that of the memory."""
        graph = self.graph
        state: dict[str, tuple[Value, list[int | str]]] = {}
        zeros = graph.Squeeze(graph.Exp(bias) * 0.0, [1])
        if isinstance(self.align, aligns.LocalMonotonic):
            state["position"] = graph.ReduceSum(zeros, [1], keepdims=1), [1]
        if isinstance(self.attention, Coverage):
            state["coverage"] = zeros, ["source"]
        return state

    def look(self, query: Value, projected: Value, memory: dict[str, Value], past: dict[str, Value]) -> Looked:
        """Compute the weights of one step; `query` and `projected` are (b, q, d), before and after the projection.

        The memory has the keys, the bias (b, 1, k), minus infinity at padding, and the length (b, 1, 1).
        """
        graph = self.graph
        grouped = graph.Concat(graph.Shape(projected, start=0, end=2), [-1], axis=0)
        state = {name: graph.Reshape(past[name], grouped) for name in ("position", "coverage") if name in past}
        asked = Asked(
            query,
            projected,
            memory.get("keys"),
            memory["bias"],
            memory.get("length"),
            state.get("position"),
            state.get("coverage"),
        )
        if self.align.uses_scores:
            logits = self.compared(asked) + asked.bias
        else:
            logits = graph.ReduceSum(projected * 0.0, [2], keepdims=1) + asked.bias
        weights = WEIGHS[type(self.align)](graph, self.align, logits, asked)
        after = {}
        if "position" in state:
            after["position"] = past["position"] + 1.0
        if "coverage" in state:
            after["coverage"] = past["coverage"] + graph.Reshape(weights, graph.Shape(past["coverage"]))
        return Looked(weights, logits, after)

    def compared(self, asked: Asked) -> Value:
        """The scores, (b, q, k)."""
        return COMPARES[type(self.score)](self, asked)


def query_weight(score: scores.Score) -> Tensor | None:
    """The matrix that multiplies each query of a score; None where it takes queries as they are."""
    match score:
        case scores.Additive() | scores.Projected():
            return score.query_layer.weight
        case scores.Concat():
            return score.layer.weight[:, : score.query_dim]
        case scores.MLP():
            return score.first.weight[:, : score.query_dim]
        case scores.Location():
            return score.layer.weight
    return None


def key_layer(score: scores.Score) -> tuple[Tensor | None, Tensor | None]:
    """The matrix that multiplies each key of a score, and what is added; None where it takes keys as they are."""
    match score:
        case scores.Additive() | scores.Projected():
            return score.key_layer.weight, None
        case scores.Concat():
            return score.layer.weight[:, score.query_dim :], None
        case scores.MLP():
            return score.first.weight[:, score.query_dim :], score.first.bias
        case scores.General():
            return score.layer.weight, None
    return None, None


# Scores: the logits (b, q, k)


def _tanh_sum(of: AttentionGraph, asked: Asked) -> Value:
    graph, score = of.graph, of.score
    assert isinstance(score, scores.TanhSum)  # noqa: S101 - it is listed for these classes
    return graph.Squeeze(graph.Tanh(_pairs(of, asked)) @ score.direction.unsqueeze(-1), [-1])


def _pairs(of: AttentionGraph, asked: Asked) -> Value:
    """The sum of each query and each key, (b, q, k, p), and what coverage adds."""
    graph = of.graph
    pairs: Value = graph.Unsqueeze(asked.projected, [2]) + graph.Unsqueeze(asked.keys, [1])
    if asked.covered is None:
        return pairs
    return pairs + graph.Unsqueeze(asked.covered, [-1]) * of.coverage


def _product(of: AttentionGraph, asked: Asked) -> Value:
    graph, query = of.graph, asked.projected
    if isinstance(of.score, scores.ScaledDot):
        size = graph.Cast(graph.Shape(query, start=2, end=3), to=graph.onnx.TensorProto.FLOAT)
        query = query / graph.Sqrt(size)
    logits: Value = query @ graph.Transpose(asked.keys, perm=[0, 2, 1])
    if asked.covered is None:
        return logits
    return logits + asked.covered * (query @ of.coverage.unsqueeze(-1))


def _location(of: AttentionGraph, asked: Asked) -> Value:
    """The logits of the positions that exist, and minus infinity for those beyond the last that the score knows."""
    graph, keys = of.graph, of.graph.Shape(asked.bias, start=2, end=3)
    rows = graph.Concat(graph.Shape(asked.projected, start=0, end=2), keys, axis=0)
    beyond = graph.ConstantOfShape(rows, value=graph.tensor([-math.inf]))
    return graph.Slice(graph.Concat(asked.projected, beyond, axis=-1), [0], keys, [2])


def _network(of: AttentionGraph, asked: Asked) -> Value:
    graph, score = of.graph, of.score
    assert isinstance(score, scores.MLP)  # noqa: S101 - it is listed for this class
    if score.activation not in ACTIVATIONS:
        raise OptionError(f"The activation {score.activation} of an MLP score cannot be exported.")
    features = _pairs(of, asked)
    for layer in score.layers:
        assert isinstance(layer, nn.Linear)  # noqa: S101 - MLP creates these
        activated = getattr(graph, ACTIVATIONS[score.activation])(features)
        features = graph.linear(activated, layer.weight, layer.bias)
    return graph.Squeeze(features, [-1])


COMPARES: dict[type[scores.Score], Callable[[AttentionGraph, Asked], Value]] = {
    scores.Additive: _tanh_sum,
    scores.Concat: _tanh_sum,
    scores.Dot: _product,
    scores.General: _product,
    scores.Location: _location,
    scores.MLP: _network,
    scores.Projected: _product,
    scores.ScaledDot: _product,
}


# Alignments: from the logits (b, q, k), minus infinity at padding, to weights


def _softmax(graph: Graph, align: Any, logits: Value, asked: Asked) -> Value:
    return graph.Softmax(logits, axis=-1)


def _hard(graph: Graph, align: Any, logits: Value, asked: Asked) -> Value:
    chosen = graph.ArgMax(logits, axis=-1, keepdims=1)
    return graph.Cast(graph.Equal(chosen, _positions(graph, logits)), to=graph.onnx.TensorProto.FLOAT)


def _positions(graph: Graph, logits: Value) -> Value:
    """The numbers of the keys, from 0."""
    return graph.Range(np.int64(0), graph.Squeeze(graph.Shape(logits, start=2, end=3), [0]), np.int64(1))


def _sparsemax(graph: Graph, align: Any, logits: Value, asked: Asked) -> Value:
    # A key 2 below the best gets exactly 0, as does padding.
    below = graph.Max(logits - graph.ReduceMax(logits, [-1], keepdims=1), -2.0)
    ordered, _ = graph.nodes("TopK", below, graph.Shape(logits, start=2, end=3), outputs=2, axis=-1)
    excess = graph.CumSum(ordered, np.int64(2)) - 1.0
    ranks = graph.Cast(_positions(graph, logits), to=graph.onnx.TensorProto.FLOAT) + 1.0
    counted = graph.Cast(graph.Greater(ranks * ordered, excess), to=graph.onnx.TensorProto.FLOAT)
    support = graph.ReduceSum(counted, [-1], keepdims=1)
    last = graph.Cast(support - 1.0, to=graph.onnx.TensorProto.INT64)
    return graph.Relu(below - graph.GatherElements(excess, last, axis=-1) / support)


def masked_softmax(graph: Graph, logits: Value) -> Value:
    """The softmax of logits of which some are minus infinity; 0 in a row where all are."""
    best = graph.ReduceMax(logits, [-1], keepdims=1)
    is_empty = graph.IsInf(best)
    exponents = graph.Exp(logits - graph.Where(is_empty, 0.0, best))
    return exponents / graph.Where(is_empty, 1.0, graph.ReduceSum(exponents, [-1], keepdims=1))


def _windowed(graph: Graph, logits: Value, centre: Value, window: int) -> tuple[Value, Value]:
    """The softmax among the keys of a window, 0 in a row without any; and the distance of each key from the centre."""
    offset = graph.Cast(_positions(graph, logits), to=graph.onnx.TensorProto.FLOAT) - centre
    closed = graph.Where(graph.LessOrEqual(graph.Abs(offset), float(window)), logits, -math.inf)
    return masked_softmax(graph, closed), offset


def _local_monotonic(graph: Graph, align: Any, logits: Value, asked: Asked) -> Value:
    assert asked.position is not None  # noqa: S101 - `start` has it
    return _windowed(graph, logits, asked.position, align.window)[0]


def _local_predictive(graph: Graph, align: Any, logits: Value, asked: Asked) -> Value:
    assert asked.length is not None  # noqa: S101 - `needs_length` says so
    seen = graph.Tanh(graph.linear(asked.query, align.layer.weight))
    share = graph.Sigmoid(graph.linear(seen, align.direction.weight))
    weights, offset = _windowed(graph, logits, asked.length * share - 1.0, align.window)
    return weights * graph.Exp(offset * offset * (-1 / (2 * align.sigma**2)))


WEIGHS: dict[type[aligns.Align], Callable[[Graph, Any, Value, Asked], Value]] = {
    aligns.Softmax: _softmax,
    aligns.Uniform: _softmax,
    aligns.Hard: _hard,
    aligns.Sparsemax: _sparsemax,
    aligns.LocalMonotonic: _local_monotonic,
    aligns.LocalPredictive: _local_predictive,
}
