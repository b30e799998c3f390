"""The decoders of captions in ONNX graphs."""

import torch
from torch import Tensor

from regard.attention.align import Hard
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.graphs.attention import Asked, key_layer
from regard.graphs.graph import Graph, Parts, Value
from regard.graphs.recurrent import CellGraph, RecurrentGraph, split
from regard.graphs.source import Source, Stepped


class _CaptionGraph(RecurrentGraph):
    """What the decoders with one LSTM share."""

    def __init__(self, graph: Graph, decoder: ShowAttendTell | Adaptive) -> None:
        super().__init__(graph, decoder)
        self.cell = CellGraph(graph, decoder.cell)

    def cells(self, hidden: Value) -> Parts:
        """h_0 and c_0, both from the mean annotation."""
        size = self.decoder.hidden
        return {
            name: (value, [size])
            for name, value in zip(self.cell.names, split(self.graph, hidden, [size] * 2), strict=True)
        }

    def stepped(self, inputs: Value, product: Value, past: dict[str, Value]) -> list[Value]:
        """The next state of the LSTM."""
        return self.cell.step(inputs, product, [past[name] for name in self.cell.names])


class ShowAttendTellGraph(_CaptionGraph):
    """Show, Attend and Tell: gated attention before each step."""

    decoder: ShowAttendTell

    def readers(self) -> list[Tensor]:
        """The layer of the gates, and that of the deep output."""
        return [self.cell.arranged(self.decoder.context_layer.weight), self.decoder.deep_context.weight]

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """Attend, multiply the context with the gate, then step."""
        graph, decoder, cell = self.graph, self.decoder, self.cell
        last = past[cell.names[0]]
        gate_layer = decoder.gate_layer.weight, decoder.gate_layer.bias
        query, (product, gate) = self.with_query(last, (cell.weight, cell.bias), gate_layer)
        read = self.look(last, query, memory, past)
        gate = graph.Sigmoid(gate)
        for_gates, deep_context = split(graph, gate * read.contexts, list(map(len, self.readers())))
        words = graph.linear(embedded, cell.arranged(decoder.word_layer.weight), cell.arranged(decoder.word_layer.bias))
        state = self.stepped(words + for_gates, product, past)
        deep = graph.linear(state[0], decoder.deep_state.weight, decoder.deep_state.bias)
        extras: Parts = {"gate": (graph.Squeeze(gate, [1]), [])}
        if isinstance(decoder.attention.align, Hard):  # type: ignore[union-attr]
            distribution = graph.Reshape(graph.Softmax(read.logits, axis=-1), graph.Shape(read.weights))
            extras["distribution"] = distribution, ["source"]
        present = dict(zip(cell.names, state, strict=True)) | read.state
        return Stepped(embedded + deep + deep_context, present, read.weights, extras)


class AdaptiveGraph(_CaptionGraph):
    """Adaptive attention with a visual sentinel, after each step."""

    decoder: Adaptive

    def readers(self) -> list[Tensor]:
        """The layer of the deep output."""
        return [self.decoder.deep_context.weight]

    def arranged(self, gates: Tensor) -> Tensor:
        """The gates of the LSTM in their order, then that of the sentinel."""
        return self.cell.arranged(gates)

    def memory(self, source: Source) -> Parts:
        """What every step reads, with what the image as a whole adds to the gates."""
        layer = self.decoder.image_layer
        image = self.graph.linear(source.summary, self.arranged(layer.weight))
        return super().memory(source) | {"image": (self.graph.Unsqueeze(image, [1]), [1, layer.out_features])}

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """Step, then attend."""
        graph, decoder, cell, size = self.graph, self.decoder, self.cell, self.decoder.hidden
        layer = decoder.word_layer
        words = graph.linear(embedded, self.arranged(layer.weight), self.arranged(layer.bias))
        inputs = graph.Shape(memory["image"], start=0, end=1)
        by_input = graph.Reshape(words, graph.Concat(inputs, [-1, layer.out_features], axis=0))
        words = graph.Reshape(by_input + memory["image"], [-1, layer.out_features])
        for_gates, for_sentinel = split(graph, words, [4 * size, size])
        product, opened = self.joined(
            past[cell.names[0]], (cell.weight, cell.bias), (decoder.sentinel_gate.weight, None)
        )
        state = self.stepped(for_gates, product, past)
        sentinel = graph.Sigmoid(for_sentinel + opened) * graph.Tanh(state[1])
        query, (deep,) = self.with_query(state[0], (decoder.deep_state.weight, decoder.deep_state.bias))
        read = self.look(state[0], query, memory, past)

        # The sentinel competes with the cells, by the same score of its own query.
        own = graph.linear(sentinel, decoder.sentinel_layer.weight, decoder.sentinel_layer.bias)
        own_logit = self._own_logit(state[0] if query is None else query, own)
        best = graph.Reshape(graph.ReduceLogSumExp(read.logits, [2], keepdims=1), [-1, 1])
        gate = graph.Sigmoid(best - own_logit)
        own_deep = graph.linear(own, decoder.deep_context.weight)
        features = embedded + deep + gate * read.contexts + (1.0 - gate) * own_deep
        extras: Parts = {"gate": (graph.Squeeze(gate, [1]), [])}
        return Stepped(features, dict(zip(cell.names, state, strict=True)) | read.state, read.weights, extras)

    def _own_logit(self, query: Value, own: Value) -> Value:
        """The score of each sentinel (r, d) for its own query (r, p): (r, 1)."""
        graph, attention = self.graph, self.attention
        assert attention is not None  # noqa: S101 - adaptive attention has one
        weight, bias = key_layer(attention.score)
        key = own if weight is None else graph.linear(own, weight, bias)
        query, key = graph.Unsqueeze(query, [1]), graph.Unsqueeze(key, [1])
        bias_of_one = graph.constant(torch.zeros(1, 1, 1))
        return graph.Squeeze(attention.compared(Asked(query, query, key, bias_of_one)), [2])


class ShowAndTellGraph(RecurrentGraph):
    """Show and Tell: an LSTM reads the image once, then the words."""

    decoder: ShowAndTell

    def __init__(self, graph: Graph, decoder: ShowAndTell) -> None:
        super().__init__(graph, decoder)
        self.cell = CellGraph(graph, decoder.cell)

    def past(self, source: Source) -> Parts:
        """The state after the image has been read, from an empty state."""
        graph, bridge, cell = self.graph, self.decoder.bridge, self.cell
        inputs = graph.linear(source.summary, cell.arranged(bridge.weight), cell.arranged(bridge.bias) + cell.bias)
        zeros = graph.nodes("Split", inputs * 0.0, outputs=4, axis=-1, num_outputs=4)
        state = cell.step(inputs, inputs * 0.0, list(zeros[:2]))
        return {name: (value, [self.decoder.hidden]) for name, value in zip(cell.names, state, strict=True)}

    def advance(self, embedded: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step of the LSTM."""
        decoder, cell = self.decoder, self.cell
        state = [past[name] for name in cell.names]
        (product,) = self.joined(state[0], (cell.weight, cell.bias))
        words = self.graph.linear(
            embedded, cell.arranged(decoder.word_layer.weight), cell.arranged(decoder.word_layer.bias)
        )
        state = cell.step(words, product, state)
        return Stepped(state[0], dict(zip(cell.names, state, strict=True)))
