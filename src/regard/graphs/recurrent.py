"""Recurrent encoders and decoders in ONNX graphs: few, large products in each step.

What depends on the source alone is computed once, by the encoder: the projected keys, and the values multiplied with
the layers that read the context, so that a step adds up rows of that product instead of multiplying the context.
Layers that multiply the same vector are one product.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.decoders.bahdanau import Bahdanau
from regard.decoders.luong import Luong
from regard.encoders.recurrent import RecurrentEncoder
from regard.errors import OptionError
from regard.graphs.attention import AttentionGraph
from regard.graphs.graph import Graph, Parts, Value
from regard.graphs.source import Source, Stepped, padding, stacked
from regard.layers.cells import GRU, LSTM

INFINITE = 2**62
"""The end of a slice that goes to the end."""


def encode_recurrent(graph: Graph, encoder: RecurrentEncoder, ids: Value, mask: Value) -> Source:
    """The graph of a recurrent encoder."""
    lengths = graph.ReduceSum(mask, [1], keepdims=0)
    words = graph.embedding(encoder.embedding.weight, ids)
    return Source(*read_sequences(graph, encoder.network, words, lengths), *padding(graph, mask), encoder.dim)


def read_sequences(
    graph: Graph, network: nn.RNNBase, inputs: Value, lengths: Value, *, reverse: bool = False
) -> tuple[Value, Value]:
    """The states (b, n, d) of padded sequences (b, n, e), and the last ones of each direction (b, d).

    With `reverse`, a network of one direction reads the sequences from their ends.
    """
    counted = graph.Cast(lengths, to=graph.onnx.TensorProto.INT32)
    states = last = graph.Transpose(inputs, perm=[1, 0, 2])
    for layer in range(network.num_layers):
        parts = [_gates(network, layer, end) for end in ("", "_reverse")[: 1 + network.bidirectional]]
        weights, recurrent = (_by_direction(graph, [part[index] for part in parts]) for index in (0, 1))
        biases = graph.constant(torch.stack([torch.cat(part[2:]) for part in parts]))
        direction = "bidirectional" if network.bidirectional else "reverse" if reverse else "forward"
        options: dict[str, Any] = {"hidden_size": network.hidden_size, "direction": direction}
        if network.mode == "GRU":
            options["linear_before_reset"] = 1
        found = graph.nodes(network.mode, states, weights, recurrent, biases, counted, outputs=2, **options)
        # (n, directions, b, h) and (directions, b, h)
        states = graph.Reshape(graph.Transpose(found[0], perm=[0, 2, 1, 3]), [0, 0, -1])
        last = graph.Reshape(graph.Transpose(found[1], perm=[1, 0, 2]), [0, -1])
    return graph.Transpose(states, perm=[1, 0, 2]), last


def _gates(network: nn.RNNBase, layer: int, end: str) -> list[Tensor]:
    """The parameters of one direction, gates in the order of ONNX: z r h instead of r z h, i o f c of i f c o."""
    order = (1, 0, 2) if network.mode == "GRU" else (0, 3, 1, 2)
    found = []
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        blocks = getattr(network, f"{name}_l{layer}{end}").detach().chunk(len(order))
        found.append(torch.cat([blocks[index] for index in order]))
    return found


def _by_direction(graph: Graph, matrices: list[Tensor]) -> Value:
    """The matrices of the directions, (directions, out, in)."""
    wide = graph.matrix(torch.cat(matrices))
    return graph.Reshape(wide, [len(matrices), *matrices[0].shape])


class CellGraph:
    """The graph of a GRU or LSTM cell.

    `arranged` puts the gates of a matrix in the order of the graph, in which those with a sigmoid are neighbours.
    """

    def __init__(self, graph: Graph, cell: Any) -> None:
        self.graph, self.cell, self.size = graph, cell, cell.gates.in_features
        if type(cell) not in (GRU, LSTM):
            raise OptionError(f"{type(cell).__name__} cannot be exported: GRU and LSTM cells can.")
        self.is_lstm = isinstance(cell, LSTM)
        self.names = ("hidden", "cell") if self.is_lstm else ("hidden",)

    def arranged(self, gates: Tensor) -> Tensor:
        """The rows of a matrix or bias of all gates: of an LSTM input, forget, output, candidate."""
        blocks = gates.detach().split(self.size)
        if not self.is_lstm or len(blocks) < LSTM.num_gates:
            return gates.detach()
        entry, forget, new, out, *rest = blocks
        return torch.cat([entry, forget, out, new, *rest])

    @property
    def weight(self) -> Tensor:
        """The matrix that multiplies the hidden vector."""
        return self.arranged(self.cell.gates.weight)

    @property
    def bias(self) -> Tensor:
        """What is added to the product with that matrix: 1 in the forget gate of an LSTM."""
        bias = torch.zeros(len(self.weight))
        if self.is_lstm:
            bias[self.size : 2 * self.size] = 1
        return bias

    def step(self, inputs: Value, product: Value, state: list[Value], extra: Tensor | None = None) -> list[Value]:
        """The next state from what is added to the gates and the product; `extra` belongs to the GRU's candidate."""
        graph, size = self.graph, self.size
        if self.is_lstm:
            opened, new = split(graph, inputs + product, [3 * size, size])
            entry, forget, out = split(graph, graph.Sigmoid(opened), [size] * 3)
            cell = forget * state[1] + entry * graph.Tanh(new)
            return [out * graph.Tanh(cell), cell]
        (hidden,) = state
        for_gates, for_candidate = split(graph, inputs, [2 * size, size])
        update, reset = split(graph, graph.Sigmoid(for_gates + product), [size] * 2)
        candidate = graph.Tanh(for_candidate + graph.linear(reset * hidden, self.cell.candidate.weight, extra))
        return [hidden + update * (candidate - hidden)]


def split(graph: Graph, value: Value, sizes: list[int]) -> tuple[Value, ...]:
    """Divide the last axis."""
    if len(sizes) == 1:
        return (value,)
    return graph.nodes("Split", value, sizes, outputs=len(sizes), axis=-1)


@dataclass
class Read:
    """What a step has read."""

    contexts: Value
    """The contexts, multiplied with all readers, (r, ...)."""
    weights: Value
    """(r, n)."""
    state: dict[str, Value]
    """What the attention needs at the next step."""
    logits: Value
    """(b, q, n)."""


class RecurrentGraph:
    """The graph of a recurrent decoder: what its encoder computes once, and a step; subclasses define `advance`."""

    def __init__(self, graph: Graph, decoder: Any) -> None:
        self.graph, self.decoder = graph, decoder
        self.attention = None if decoder.attention is None else AttentionGraph(graph, decoder.attention)
        self.query_weight = None if self.attention is None else self.attention.query_weight

    def readers(self) -> list[Tensor]:
        """The matrices that multiply the context."""
        raise TypeError(f"{type(self).__name__} must define readers().")

    def cells(self, hidden: Value) -> Parts:
        """The state before the first step; `hidden` has the vectors of all layers."""
        raise TypeError(f"{type(self).__name__} must define cells(hidden).")

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step, from the embedded words (r, e)."""
        raise TypeError(f"{type(self).__name__} must define advance(embedded, memory, past).")

    def memory(self, source: Source) -> Parts:
        """What every step reads, and depends on the source alone."""
        if self.attention is None:
            return {}
        readers = torch.cat([each.detach() for each in self.readers()])
        values = self.graph.linear(source.states, readers)
        memory: Parts = {"bias": (source.bias, [1, "source"]), "values": (values, ["source", len(readers)])}
        if (keys := self.attention.keys(source.states, source.width)) is not None:
            memory["keys"] = keys[0], ["source", keys[1]]
        if self.attention.needs_length:
            memory["length"] = source.length, [1, 1]
        return memory

    def past(self, source: Source) -> Parts:
        """The state before the first step."""
        bridge = self.decoder.bridge
        last = self.graph.Slice(source.summary, [-bridge.in_features], [INFINITE], [1])
        cells = self.cells(self.graph.Tanh(self.graph.linear(last, bridge.weight, bridge.bias)))
        return cells if self.attention is None else cells | self.attention.start(source.bias)

    def step(self, ids: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step of all rows, from the last words (r,)."""
        return self.advance(self.graph.embedding(self.decoder.embedding.weight, ids), memory, past)

    def look(self, query: Value, projected: Value | None, memory: dict[str, Value], past: dict[str, Value]) -> "Read":
        """Attend with the hidden vectors (r, h), which `projected` has after the projection of the score, if any."""
        assert self.attention is not None  # noqa: S101 - only decoders with attention look
        graph, size = self.graph, self.decoder.hidden
        inputs = graph.Shape(memory["values"], start=0, end=1)
        query = graph.Reshape(query, graph.Concat(inputs, [-1, size], axis=0))
        if projected is not None:
            width = len(self.query_weight)  # type: ignore[arg-type]
            projected = graph.Reshape(projected, graph.Concat(inputs, [-1, width], axis=0))
        looked = self.attention.look(query, query if projected is None else projected, memory, past)
        flat = graph.Concat([-1], graph.Shape(memory["bias"], start=2, end=3), axis=0)
        contexts = graph.Reshape(looked.weights @ memory["values"], [-1, sum(map(len, self.readers()))])
        return Read(contexts, graph.Reshape(looked.weights, flat), looked.state, looked.logits)

    def with_query(self, value: Value, *layers: tuple[Tensor, Tensor | None]) -> tuple[Value | None, tuple[Value, ...]]:
        """Multiply a vector with the query's matrix of the score and with further layers, in one product."""
        joined = [*layers] if self.query_weight is None else [(self.query_weight, None), *layers]
        products = self.joined(value, *joined)
        return (None, products) if self.query_weight is None else (products[0], products[1:])

    def joined(self, value: Value, *layers: tuple[Tensor, Tensor | None]) -> tuple[Value, ...]:
        """Multiply a vector with several layers (matrix, bias) in one product."""
        if not layers:
            return ()
        weight, bias = stacked(*layers)
        product = self.graph.linear(value, weight, bias)
        sizes = [len(each) for each, _ in layers]
        return split(self.graph, product, sizes)


class BahdanauGraph(RecurrentGraph):
    """RNNsearch, also with a conditional GRU."""

    decoder: Bahdanau

    def __init__(self, graph: Graph, decoder: Bahdanau) -> None:
        super().__init__(graph, decoder)
        self.first = CellGraph(graph, decoder.cell)
        self.second = None if decoder.second_cell is None else CellGraph(graph, decoder.second_cell)

    def paired(self, deep: Tensor) -> Tensor:
        """The rows of a layer of the deep output: first those of one unit of each pair, then those of the other."""
        return torch.cat([deep.detach()[0::2], deep.detach()[1::2]])

    def readers(self) -> list[Tensor]:
        """The layer of the gates, and that of the deep output."""
        cell = self.second or self.first
        return [cell.arranged(self.decoder.context_layer.weight), self.paired(self.decoder.deep_context.weight)]

    def cells(self, hidden: Value) -> Parts:
        """The state of the one layer."""
        parts: Parts = {"hidden": (hidden, [self.decoder.hidden])}
        return parts | ({"cell": (hidden * 0.0, [self.decoder.hidden])} if self.first.is_lstm else {})

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """Attend, then step; if conditional, step, attend, step."""
        graph, decoder, first = self.graph, self.decoder, self.first
        state = [past[name] for name in first.names]
        deep = self.paired(decoder.deep_state.weight), self.paired(decoder.deep_state.bias)
        words, deep_word = self.joined(
            embedded,
            (first.arranged(decoder.word_layer.weight), first.arranged(decoder.word_layer.bias)),
            (self.paired(decoder.deep_word.weight), None),
        )
        if self.second is None:
            query, (product, deep_state) = self.with_query(state[0], (first.weight, first.bias), deep)
            read = self.look(state[0], query, memory, past)
            for_gates, deep_context = split(graph, read.contexts, list(map(len, self.readers())))
            state = first.step(words + for_gates, product, state)
            if decoder.output_after:
                (deep_state,) = self.joined(state[0], deep)
        else:
            (product,) = self.joined(state[0], (first.weight, first.bias))
            state = first.step(words, product, state)
            # What is added to the context belongs to the gates, and of a GRU also to its candidate.
            added = self.second.arranged(decoder.context_layer.bias)
            size = len(self.second.weight)
            query, (product,) = self.with_query(state[0], (self.second.weight, self.second.bias + added[:size]))
            read = self.look(state[0], query, memory, past)
            for_gates, deep_context = split(graph, read.contexts, list(map(len, self.readers())))
            state = self.second.step(for_gates, product, state, added[size:] if len(added) > size else None)
            (deep_state,) = self.joined(state[0], deep)
        units = split(graph, deep_state + deep_word + deep_context, [len(deep[1]) // 2] * 2)
        return Stepped(graph.Max(*units), dict(zip(first.names, state, strict=True)) | read.state, read.weights)


class LuongGraph(RecurrentGraph):
    """Luong's decoder, with attention or without."""

    decoder: Luong

    def __init__(self, graph: Graph, decoder: Luong) -> None:
        super().__init__(graph, decoder)
        self.layers = [CellGraph(graph, cell) for cell in decoder.cells]

    def readers(self) -> list[Tensor]:
        """The columns of W_c for the context."""
        return [self.decoder.combine_context.weight]

    def cells(self, hidden: Value) -> Parts:
        """The states of all layers, and the vector that is fed."""
        size = self.decoder.hidden
        parts: Parts = {}
        for index, part in enumerate(split(self.graph, hidden, [size] * len(self.layers))):
            for name, value in zip(self.layers[index].names, (part, part * 0.0), strict=False):
                parts[f"{name}.{index}"] = value, [size]
        if self.decoder.feeding is not None:
            width = self.decoder.output_dim
            zeros = self.graph.linear(hidden, torch.zeros(width, size * len(self.layers)))
            parts["fed"] = zeros, [width]
        return parts

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """Step through the layers, attend, then combine."""
        graph, decoder = self.graph, self.decoder
        after: dict[str, Value] = {}
        value, weight, bias = embedded, decoder.word_layer.weight, decoder.word_layer.bias
        if decoder.feeding is not None:
            value = graph.Concat(embedded, past["fed"], axis=-1)
            weight = torch.cat([weight.detach(), decoder.feeding.weight.detach()], dim=1)
        for index, cell in enumerate(self.layers):
            names = [f"{name}.{index}" for name in cell.names]
            state = [past[name] for name in names]
            (product,) = self.joined(state[0], (cell.weight, cell.bias))
            (inputs,) = self.joined(value, (cell.arranged(weight), cell.arranged(bias)))
            state = cell.step(inputs, product, state)
            after |= dict(zip(names, state, strict=True))
            if index < len(decoder.upper_layers):
                value, upper = state[0], decoder.upper_layers[index]
                weight, bias = upper.weight, upper.bias  # type: ignore[assignment]
        hidden, of_hidden = state[0], decoder.combine_hidden
        if self.attention is None:
            (combined,) = self.joined(hidden, (decoder.combine.weight, decoder.combine.bias))
            return Stepped(graph.Tanh(combined), after)
        query, (combined,) = self.with_query(hidden, (of_hidden.weight, of_hidden.bias))
        read = self.look(hidden, query, memory, past)
        features = graph.Tanh(combined + read.contexts)
        fed = {} if decoder.feeding is None else {"fed": features}
        return Stepped(features, after | read.state | fed, read.weights)
