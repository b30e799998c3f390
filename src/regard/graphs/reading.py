"""Readers in ONNX graphs: language models word by word, and readers by self-attention or LSTM of whole sentences."""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.data.tokenizer import START
from regard.decoders.language_model import LanguageModel
from regard.encoders.lstmn_reader import LSTMNReader
from regard.encoders.readers import Bidirectional, LSTMReader, SelfAttentionReader
from regard.errors import OptionError
from regard.graphs.attention import masked_softmax
from regard.graphs.graph import Graph, Parts, Value
from regard.graphs.recurrent import read_sequences, split
from regard.graphs.source import Source, Stepped
from regard.graphs.transformer import TIME, Heads, feed_forward, normalised, residual, waves
from regard.layers.lstmn import LSTMN


class LanguageGraph:
    """A step of a language model: it reads a word, and predicts the next.

    The first step reads START, which belongs to no sentence: it changes no state.
    """

    def __init__(self, graph: Graph, decoder: LanguageModel) -> None:
        self.graph, self.decoder = graph, decoder
        self.reader: Any = decoder.reader
        if type(self.reader) not in (LSTMNReader, LSTMReader):
            raise OptionError(
                f"A language model with a {type(self.reader).__name__} cannot be exported; lstm and lstmn can."
            )

    def memory(self, source: Source) -> Parts:
        """Nothing: there is no input."""
        return {}

    def past(self, source: Source) -> Parts:
        """Empty tapes, or the first states of LSTMs."""
        graph, hidden = self.graph, int(self.reader.dim)
        past: Parts = {}
        inputs = graph.Shape(source.states, start=0, end=1)
        for index, layer in enumerate(self.reader.layers):
            sizes: dict[str, list[int | str]] = {f"hidden.{index}": [hidden], f"cell.{index}": [hidden]}
            if isinstance(layer, LSTMN):
                sizes = {
                    f"tape.{index}": [TIME, 2 * layer.hidden],
                    f"keys.{index}": [TIME, layer.attention_dim],
                    f"read.{index}": [layer.hidden],
                }
            for name, shape in sizes.items():
                empty = graph.Concat(inputs, [0 if size == TIME else size for size in shape], axis=0)
                past[name] = graph.ConstantOfShape(empty, value=graph.tensor([0.0])), shape
        return past

    def step(self, ids: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step of all rows."""
        graph, decoder = self.graph, self.decoder
        is_first = graph.Equal(ids, np.int64(START))
        words = graph.embedding(decoder.embedding.embedding.weight, ids)  # type: ignore[union-attr, arg-type]
        states, weights = words, None
        present: dict[str, Value] = {}
        for index, layer in enumerate(self.reader.layers):
            inputs = graph.Concat(states, words, axis=-1) if index and self.reader.skip else states
            step = self._tape_step if isinstance(layer, LSTMN) else self._lstm_step
            states, new, weights = step(layer, index, inputs, past)
            present |= new
        first = graph.Unsqueeze(is_first, [1])
        kept = {}
        end = graph.Slice(graph.Cast(graph.Not(is_first), to=graph.onnx.TensorProto.INT64), [0], [1], [0])
        for name, value in present.items():
            if name.startswith(("tape", "keys")):
                # All rows begin together, when the tapes are empty.
                length = graph.Shape(past[name], start=1, end=2) + end
                kept[name] = graph.Slice(value, [0], length, [1])
            else:
                kept[name] = graph.Where(first, past[name], value)
        return Stepped(graph.Where(first, decoder.first, states), kept, weights)

    def _tape_step(
        self, layer: LSTMN, index: int, inputs: Value, past: dict[str, Value]
    ) -> tuple[Value, dict[str, Value], Value]:
        """One step of a layer that attends to its tapes: its state, what the next step needs, and the weights."""
        graph, size = self.graph, layer.hidden
        tape, keys = past[f"tape.{index}"], past[f"keys.{index}"]
        bias = nn.functional.pad(layer.bias.detach(), (0, layer.attention_dim))
        for_gates, for_query = split(
            graph, graph.linear(inputs, layer.word_layer.weight, bias), [4 * size, layer.attention_dim]
        )
        recurrent = layer.recurrent.weight.detach()
        query = graph.Unsqueeze(for_query + graph.linear(past[f"read.{index}"], recurrent[4 * size :]), [1])
        logits = graph.Squeeze(graph.Tanh(query + keys) @ layer.direction.unsqueeze(-1), [2])
        if layer.span:
            length = graph.Squeeze(graph.Shape(keys, start=1, end=2), [0])
            positions = graph.Range(np.int64(0), length, np.int64(1))
            logits = graph.Where(graph.GreaterOrEqual(positions, length - np.int64(layer.span)), logits, -math.inf)
        # Over an empty tape there is nothing to sum.
        weights = graph.Softmax(logits, axis=-1)
        found = graph.ReduceSum(graph.Unsqueeze(weights, [2]) * tape, [1], keepdims=0)
        read, memory = split(graph, found, [size, size])
        gates = for_gates + graph.linear(read, recurrent[: 4 * size])
        opened, new = split(graph, gates, [3 * size, size])
        entry, forget, out = split(graph, graph.Sigmoid(opened), [size] * 3)
        memory = forget * memory + entry * graph.Tanh(new)
        hidden = out * graph.Tanh(memory)
        key = graph.linear(hidden, layer.key_layer.weight)
        grown = {
            f"tape.{index}": graph.Concat(tape, graph.Unsqueeze(graph.Concat(hidden, memory, axis=-1), [1]), axis=1),
            f"keys.{index}": graph.Concat(keys, graph.Unsqueeze(key, [1]), axis=1),
            f"read.{index}": read,
        }
        return hidden, grown, weights

    def _lstm_step(
        self, layer: nn.LSTM, index: int, inputs: Value, past: dict[str, Value]
    ) -> tuple[Value, dict[str, Value], None]:
        """One step of an LSTM layer: its state, and what the next step needs."""
        graph, size = self.graph, layer.hidden_size
        hidden, cell = past[f"hidden.{index}"], past[f"cell.{index}"]
        weight = torch.cat([layer.weight_ih_l0.detach(), layer.weight_hh_l0.detach()], dim=1)  # type: ignore[operator]
        bias = layer.bias_ih_l0.detach() + layer.bias_hh_l0.detach()  # type: ignore[operator]
        entry, forget, new, out = split(
            graph, graph.linear(graph.Concat(inputs, hidden, axis=-1), weight, bias), [size] * 4
        )
        cell = graph.Sigmoid(forget) * cell + graph.Sigmoid(entry) * graph.Tanh(new)
        hidden = graph.Sigmoid(out) * graph.Tanh(cell)
        return hidden, {f"hidden.{index}": hidden, f"cell.{index}": cell}, None


def read_whole(graph: Graph, reader: Any, words: Value, mask: Value) -> tuple[Value, list[Value], Value | None]:
    """The states (b, n, d) of whole sentences, the maps of each layer (b, h, n, n), and what the last layer read."""
    if isinstance(reader, SelfAttentionReader):
        return _by_self_attention(graph, reader, words, mask)
    lengths = graph.ReduceSum(mask, [1], keepdims=0)
    if isinstance(reader, LSTMReader):
        return _by_lstm(graph, reader, words, lengths), [], None
    readers: list[Any] = [reader]
    if isinstance(reader, Bidirectional):
        readers = [reader.forward_reader, reader.backward_reader]
    if not all(isinstance(each, LSTMReader) for each in readers):
        raise OptionError(
            f"A {type(readers[0]).__name__} that reads whole sentences cannot be exported; self-attention and lstm can."
        )
    ahead = _by_lstm(graph, readers[0], words, lengths)
    back = _by_lstm(graph, readers[1], words, lengths, reverse=True)
    return graph.Concat(ahead, back, axis=-1), [], None


def _by_lstm(graph: Graph, reader: LSTMReader, words: Value, lengths: Value, *, reverse: bool = False) -> Value:
    states = words
    for index, layer in enumerate(reader.layers):
        inputs = graph.Concat(states, words, axis=-1) if index and reader.skip else states
        states, _ = read_sequences(graph, layer, inputs, lengths, reverse=reverse)
    return states


def _by_self_attention(
    graph: Graph, reader: SelfAttentionReader, words: Value, mask: Value
) -> tuple[Value, list[Value], Value | None]:
    length = graph.Squeeze(graph.Shape(mask, start=1, end=2), [0])
    positions = graph.Range(np.int64(0), length, np.int64(1))
    distance = graph.Unsqueeze(positions, [0]) - graph.Unsqueeze(positions, [1])
    exists = graph.Unsqueeze(graph.Greater(mask, np.int64(0)), [1, 2])
    numbers = graph.Cast(positions, to=graph.onnx.TensorProto.FLOAT)
    projected = graph.linear(words, reader.enter.weight, reader.enter.bias) * math.sqrt(reader.dim)
    states = entered = projected + waves(graph, numbers, reader.dim)
    maps: list[Value] = []
    for index, block in enumerate(reader.layers):
        both = reader.bidirectional and not (reader.look_back and index == len(reader.layers) - 1)
        allowed = graph.Not(graph.Equal(distance, np.int64(0))) if both else graph.Less(distance, np.int64(0))
        if reader.span:
            allowed = graph.And(allowed, graph.LessOrEqual(graph.Abs(distance), np.int64(reader.span)))
        allowed = graph.And(allowed, exists)
        heads, around = Heads(graph, block.heads), block.around_heads
        keys, values = heads.projected(
            normalised(graph, around.norm, entered if reader.attend_to_words else states), "key", "value"
        )
        read: list[Value] = []

        def attend(inputs: Value, heads: Heads = heads, keys: Value = keys, values: Value = values) -> Value:
            (query,) = heads.projected(inputs, "query")
            maps.append(masked_softmax(graph, graph.Where(allowed, heads.logits(query, keys), -math.inf)))  # noqa: B023
            read.append(heads.read(maps[-1], values))  # noqa: B023
            return read[0]  # noqa: B023

        states = residual(graph, around, states, attend)
        states = feed_forward(graph, block, states)
    return normalised(graph, reader.norm, states), maps, read[0]
