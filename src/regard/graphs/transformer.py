"""The Transformer in ONNX graphs: the caches of the decoder are inputs and outputs of its step.

The memory has the keys and values of the source for each layer, projected once by the encoder; the state has those of
the target so far, (rows, heads, length, features), with length 0 before the first step.
"""

import math

import torch
from torch import nn

from regard.attention.align import Softmax
from regard.attention.heads import MultiHead
from regard.attention.score import ScaledDot
from regard.decoders.transformer import TransformerDecoder
from regard.encoders.transformer import TransformerEncoder
from regard.errors import OptionError
from regard.graphs.graph import Graph, Parts, Value
from regard.graphs.source import Source, Stepped, padding, stacked
from regard.layers.transformer import FeedForward, Residual


def encode_transformer(graph: Graph, encoder: TransformerEncoder, ids: Value, mask: Value) -> Source:
    """The graph of a Transformer encoder."""
    bias, length = padding(graph, mask)
    first = graph.Range(0.0, graph.Cast(_size(graph, ids, 1), to=graph.onnx.TensorProto.FLOAT), 1.0)
    states = _embedded(graph, encoder.embedding, ids, first)
    for block in encoder.layers:
        heads = Heads(graph, block.heads)  # type: ignore[arg-type]

        def attend(inputs: Value, heads: "Heads" = heads) -> Value:
            query, keys, values = heads.projected(inputs, "query", "key", "value")
            return heads.read(heads.weights(query, keys, graph.Unsqueeze(bias, [1])), values)

        states = residual(graph, block.around_heads, states, attend)  # type: ignore[arg-type]
        states = feed_forward(graph, block, states)
    states = normalised(graph, encoder.norm, states)
    exists = graph.Cast(graph.Unsqueeze(mask, [-1]), to=graph.onnx.TensorProto.FLOAT)
    summary = graph.ReduceSum(states * exists, [1], keepdims=0) / graph.Squeeze(length, [2])
    return Source(states, summary, bias, length, encoder.dim)


def _size(graph: Graph, value: Value, axis: int) -> Value:
    """The size of an axis, as a number."""
    return graph.Squeeze(graph.Shape(value, start=axis, end=axis + 1), [0])


def _embedded(graph: Graph, embedding: nn.Embedding, ids: Value, positions: Value) -> Value:
    """Embedded tokens, scaled by sqrt(d), plus the sinusoids of their positions (n,), which are float32."""
    dim = embedding.embedding_dim
    return graph.embedding(embedding.weight, ids) * math.sqrt(dim) + waves(graph, positions, dim)


def waves(graph: Graph, positions: Value, dim: int) -> Value:
    """The sinusoids of positions (n,), (n, dim)."""
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    angles = graph.Unsqueeze(positions, [-1]) * rates
    pairs = graph.Concat(graph.Unsqueeze(graph.Sin(angles), [-1]), graph.Unsqueeze(graph.Cos(angles), [-1]), axis=-1)
    return graph.Slice(graph.Reshape(pairs, [-1, 2 * len(rates)]), [0], [dim], [1])


def normalised(graph: Graph, norm: nn.Module, states: Value) -> Value:
    """Layer normalisation, or nothing where the model has none here."""
    if isinstance(norm, nn.LayerNorm):
        return graph.LayerNormalization(states, norm.weight, norm.bias, axis=-1, epsilon=norm.eps)
    return states


def residual(graph: Graph, around: Residual, states: Value, part: "nn.Module | object") -> Value:
    """A residual connection around a function of values."""
    assert callable(part)  # noqa: S101 - only functions are given
    if around.prenorm:
        return states + part(normalised(graph, around.norm, states))
    return normalised(graph, around.norm, states + part(states))


def feed_forward(graph: Graph, block: nn.Module, states: Value) -> Value:
    """The feed-forward network of a layer, with its residual connection."""
    network, around = block.feed_forward, block.around_feed_forward
    assert isinstance(network, FeedForward)  # noqa: S101 - the layers of a Transformer have one
    assert isinstance(around, Residual)  # noqa: S101 - and this around it

    def apply(inputs: Value) -> Value:
        inner = graph.Relu(graph.linear(inputs, network.first.weight, network.first.bias))
        return graph.linear(inner, network.second.weight, network.second.bias)

    return residual(graph, around, states, apply)


class Heads:
    """The graph of multi-head attention."""

    def __init__(self, graph: Graph, heads: MultiHead) -> None:
        self.graph, self.heads = graph, heads
        if type(heads.score) is not ScaledDot or type(heads.align) is not Softmax:
            raise OptionError(
                "Heads can be exported with a scaled dot product and a softmax; these have "
                f"{type(heads.score).__name__} and {type(heads.align).__name__}."
            )
        if heads.num_key_heads != heads.num_heads:
            raise OptionError("Heads of queries that share heads of keys cannot be exported.")
        self.num_heads, self.width = heads.num_heads, heads.dim // heads.num_heads

    def projected(self, states: Value, *roles: str) -> tuple[Value, ...]:
        """The queries, keys or values of each head from states (b, n, d), in one product: each (b, h, n, e)."""
        layers = [getattr(self.heads, f"{role}_layer") for role in roles]
        weight, bias = stacked(*((layer.weight, layer.bias) for layer in layers))
        graph, product = self.graph, self.graph.linear(states, weight, bias)
        split = graph.Transpose(
            graph.Reshape(product, [0, 0, len(roles) * self.num_heads, self.width]), perm=[0, 2, 1, 3]
        )
        return graph.nodes("Split", split, [self.num_heads] * len(roles), outputs=len(roles), axis=1)

    def weights(self, query: Value, keys: Value, bias: Value | None) -> Value:
        """The attention weights, (b, h, q, k)."""
        logits = self.logits(query, keys)
        return self.graph.Softmax(logits if bias is None else logits + bias, axis=-1)

    def logits(self, query: Value, keys: Value) -> Value:
        """The scaled dot products, (b, h, q, k)."""
        return (query * (1 / math.sqrt(self.width))) @ self.graph.Transpose(keys, perm=[0, 1, 3, 2])

    def read(self, weights: Value, values: Value) -> Value:
        """The contexts of all heads through the output layer, (b, q, d)."""
        graph, layer = self.graph, self.heads.output_layer
        contexts = graph.Reshape(graph.Transpose(weights @ values, perm=[0, 2, 1, 3]), [0, 0, self.heads.dim])
        return graph.linear(contexts, layer.weight, layer.bias)


class TransformerGraph:
    """The graph of a Transformer decoder."""

    def __init__(self, graph: Graph, decoder: TransformerDecoder) -> None:
        self.graph, self.decoder = graph, decoder
        self.to_self = [Heads(graph, layer.to_self) for layer in decoder.layers]
        self.to_source = [Heads(graph, layer.to_source) for layer in decoder.layers]

    def memory(self, source: Source) -> Parts:
        """The keys and values of the source, for each layer."""
        memory: Parts = {"bias": (source.bias, [1, "source"])}
        for index, heads in enumerate(self.to_source):
            for name, value in zip(("keys", "values"), heads.projected(source.states, "key", "value"), strict=True):
                memory[f"{name}.{index}"] = value, [heads.num_heads, "source", heads.width]
        return memory

    def past(self, source: Source) -> Parts:
        """Caches of length 0."""
        graph = self.graph
        past: Parts = {}
        inputs = graph.Shape(source.states, start=0, end=1)
        for index, heads in enumerate(self.to_self):
            sizes = graph.Concat(inputs, [heads.num_heads, 0, heads.width], axis=0)
            for name in ("keys", "values"):
                empty = graph.ConstantOfShape(sizes, value=graph.tensor([0.0]))
                past[f"{name}.{index}"] = empty, [heads.num_heads, TIME, heads.width]
        return past

    def step(self, ids: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step of all rows."""
        graph, decoder, present = self.graph, self.decoder, {}
        length = graph.Cast(graph.Shape(past["keys.0"], start=2, end=3), to=graph.onnx.TensorProto.FLOAT)
        # Each row looks back at its own tokens; all rows of an input look at one source, as the queries of one.
        features = graph.Unsqueeze(_embedded(graph, decoder.embedding, ids, length), [1])
        by_input = graph.Concat(graph.Shape(memory["bias"], start=0, end=1), [-1, self.to_self[0].heads.dim], axis=0)
        shown = None
        for index, layer in enumerate(decoder.layers):
            to_self, to_source = self.to_self[index], self.to_source[index]
            found: list[Value] = []

            def look_back(inputs: Value, to_self: Heads = to_self, index: int = index) -> Value:
                query, *new = to_self.projected(inputs, "query", "key", "value")
                for name, value in zip((f"keys.{index}", f"values.{index}"), new, strict=True):
                    present[name] = graph.Concat(past[name], value, axis=2)
                weights = to_self.weights(query, present[f"keys.{index}"], None)
                return to_self.read(weights, present[f"values.{index}"])

            def look_at_source(inputs: Value, to_source: Heads = to_source, index: int = index) -> Value:
                (query,) = to_source.projected(graph.Reshape(inputs, by_input), "query")
                found.append(to_source.weights(query, memory[f"keys.{index}"], graph.Unsqueeze(memory["bias"], [1])))  # noqa: B023
                return graph.Reshape(to_source.read(found[0], memory[f"values.{index}"]), graph.Shape(inputs))  # noqa: B023

            features = residual(graph, layer.around_self, features, look_back)
            features = residual(graph, layer.around_source, features, look_at_source)
            features = feed_forward(graph, layer, features)
            if index == decoder.shown_layer:
                shown = found[0]
        assert shown is not None  # noqa: S101 - the config names a layer that exists
        if decoder.shown_head is None:
            shown = graph.ReduceMean(shown, [1], keepdims=0)
        else:
            shown = graph.Gather(shown, [decoder.shown_head], axis=1)
        weights = graph.Reshape(shown, graph.Concat([-1], graph.Shape(memory["bias"], start=2, end=3), axis=0))
        return Stepped(graph.Squeeze(normalised(graph, decoder.norm, features), [1]), present, weights)


TIME = "time"
"""The number of tokens so far, in the shape of a cache."""
