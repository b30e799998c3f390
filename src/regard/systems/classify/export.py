"""Exporting a document classifier: one graph, from ids of words to the classes and the weights of both attentions."""

from pathlib import Path

from torch import nn

from regard.attention.align import Softmax
from regard.attention.score import Context
from regard.errors import OptionError
from regard.graphs.attention import WEIGHS, Asked, refuse
from regard.graphs.graph import Graph, Precision, Value
from regard.graphs.recurrent import read_sequences
from regard.systems.classify.model import DocumentClassifier
from regard.systems.classify.networks import AttentionPooling, Pooling
from regard.systems.export import Exported, graph_file


def export(model: DocumentClassifier, folder: Path, precision: Precision) -> Exported:
    """Write the graph into a folder; documents are padded to (documents, sentences, words)."""
    networks = model.word_network, model.sentence_network
    if not all(isinstance(network, nn.GRU) for network in networks):
        raise OptionError(f"The encoder {type(model.word_network).__name__} cannot be exported; a GRU can.")
    graph, shape = Graph(precision), ["documents", "sentences", "words"]
    ids, mask = (graph.input(name, shape, "int64") for name in ("input_ids", "attention_mask"))
    shared = graph.Shape(ids, start=0, end=2)
    exists = graph.ReduceMax(mask, [2], keepdims=0)

    words = graph.Reshape(mask, graph.Concat([-1], graph.Shape(ids, start=2, end=3), axis=0))
    vectors = graph.embedding(model.embedding.weight, graph.Reshape(ids, graph.Shape(words)))
    sentences, word_weights = _pooled(graph, networks[0], model.word_pooling, vectors, words)
    sentences = graph.Reshape(sentences, graph.Concat(shared, [2 * model.config.hidden], axis=0))
    is_read = None if model.config.read == "states" else sentences
    documents, sentence_weights = _pooled(graph, networks[1], model.sentence_pooling, sentences, exists, is_read)

    logits = graph.linear(documents, model.output.weight, model.output.bias)
    graph.output("logits", logits, ["documents", len(model.labels)])
    graph.output("word_weights", graph.Reshape(word_weights, graph.Shape(ids)), shape)
    graph.output("sentence_weights", sentence_weights, shape[:2])
    file = graph_file("model", precision)
    graph.save(folder / file)
    names = dict(enumerate(model.labels))
    return Exported(
        {"model": file}, facts={"id2label": names, "label2id": {name: each for each, name in names.items()}}
    )


def _pooled(
    graph: Graph, network: nn.Module, pooling: Pooling, inputs: Value, mask: Value, values: Value | None = None
) -> tuple[Value, Value]:
    """One vector for each sequence (b, v), and the weight of each of its states (b, n), 0 at padding.

    A sequence without states, which pads a document, is read as one of padding alone; its weights are 0.
    """
    assert isinstance(network, nn.GRU)  # noqa: S101 - `export` refuses others
    lengths = graph.Max(graph.ReduceSum(mask, [1], keepdims=0), graph.constant(1))
    states, _ = read_sequences(graph, network, inputs, lengths)
    values = states if values is None else values
    exists = graph.Cast(mask, to=graph.onnx.TensorProto.FLOAT)
    open_ = graph.Max(exists, 1.0 - graph.ReduceMax(exists, [1], keepdims=1))
    if pooling.pool == "max":
        closed = graph.Where(graph.Greater(graph.Unsqueeze(open_, [2]), 0.0), values, float("-inf"))
        largest = graph.ReduceMax(closed, [1], keepdims=1)
        taken = graph.Cast(graph.Equal(closed, largest), to=graph.onnx.TensorProto.FLOAT)
        counts = graph.ReduceSum(taken, [2], keepdims=0)
        return graph.Squeeze(largest, [1]), exists * counts / graph.ReduceSum(counts, [1], keepdims=1)
    if pooling.pool == "average":
        weights = open_ / graph.ReduceSum(open_, [1], keepdims=1)
    else:
        weights = _weights(graph, pooling, states, open_)
    pooled = graph.Squeeze(graph.Unsqueeze(weights, [1]) @ values, [1])
    return pooled, weights * exists


def _weights(graph: Graph, pooling: Pooling, states: Value, open_: Value) -> Value:
    """The attention weights of states (b, n, d), (b, n)."""
    score, align = pooling.score, Softmax()
    if isinstance(pooling, AttentionPooling):
        score, align = pooling.attention.score, pooling.attention.align  # type: ignore[assignment]
    if type(score) is not Context:
        raise refuse(score, "score", (Context,))
    if type(align) not in WEIGHS:
        raise refuse(align, "alignment", WEIGHS)
    keys = states if score.layer is None else graph.Tanh(graph.linear(states, score.layer.weight, score.layer.bias))
    query = graph.Unsqueeze(graph.constant(score.query.detach()[0]), [1])
    logits = graph.Transpose(keys @ query, perm=[0, 2, 1])
    bias = graph.Unsqueeze(graph.Where(graph.Greater(open_, 0.0), 0.0, float("-inf")), [1])
    asked = Asked(states, states, keys, bias)
    return graph.Squeeze(WEIGHS[type(align)](graph, align, logits + bias, asked), [1])
