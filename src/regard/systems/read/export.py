"""Exporting a reader: a step of a language model, or one graph that labels whole sentences."""

from pathlib import Path
from typing import Any

from regard.errors import OptionError
from regard.graphs.decoding import write_decoding
from regard.graphs.graph import Graph, Precision, Value
from regard.graphs.images import apply
from regard.graphs.reading import read_whole
from regard.graphs.source import Source
from regard.systems.export import Exported, graph_file
from regard.systems.read.assembly import SentenceClassifier, Tagger
from regard.systems.read.config import ReadingOptions
from regard.systems.read.model import Reader


def export(model: Reader, folder: Path, precision: Precision) -> Exported:
    """Write the graphs into a folder."""
    if model.config.task == "language-model":
        return _language_model(model, folder, precision)
    if model.config.task == "entail":
        raise OptionError("Readers of pairs of sentences (task entail) cannot be exported: there is no graph of them.")
    network: Any = model.network
    graph, shape = Graph(precision), ["inputs", "words"]
    ids, mask = (graph.input(name, shape, "int64") for name in ("input_ids", "attention_mask"))
    words = graph.embedding(network.words.embedding.weight, ids)
    states, maps, attended = read_whole(graph, network.reader, words, mask)
    if isinstance(network, Tagger):
        features = attended if network.labels_from == "attended" and attended is not None else states
        logits = graph.linear(features, network.output.weight, network.output.bias)
        graph.output("logits", logits, [*shape, len(model.labels)])
    elif isinstance(network, SentenceClassifier):
        graph.output(
            "logits",
            apply(graph, network.head, _pooled(graph, states, mask, network.pool)),
            ["inputs", len(model.labels)],
        )
    for number, weights in enumerate(maps, 1):
        graph.output(f"attention.{number}", weights, ["inputs", model.config.heads, "words", "words"])
    file = graph_file("model", precision)
    graph.save(folder / file)
    names = dict(enumerate(model.labels))
    return Exported(
        {"model": file}, facts={"id2label": names, "label2id": {name: each for each, name in names.items()}}
    )


def _pooled(graph: Graph, states: Value, mask: Value, pool: str) -> Value:
    """The states of a sentence in one vector: their mean, their maximum, or the last."""
    exists = graph.Unsqueeze(graph.Cast(mask, to=graph.onnx.TensorProto.FLOAT), [2])
    if pool == "max":
        closed = graph.Where(graph.Greater(exists, 0.0), states, float("-inf"))
        return graph.ReduceMax(closed, [1], keepdims=0)
    if pool == "last":
        last = graph.ReduceSum(mask, [1], keepdims=1) - 1
        return graph.GatherND(states, last, batch_dims=1)
    return graph.ReduceSum(states * exists, [1], keepdims=0) / graph.ReduceSum(exists, [1], keepdims=0)


def _language_model(model: Reader, folder: Path, precision: Precision) -> Exported:
    """The graph of the state before the first word, and that of a step."""

    def begin(graph: Graph) -> Source:
        # Of the start symbols, only how many there are matters.
        ids = graph.input("input_ids", ["inputs", "source"], "int64")
        return Source(ids, ids, ids, ids, 0)

    files = [graph_file(name, precision) for name in ("encoder_model", "decoder_model_merged")]
    write_decoding(begin, model.network, (folder / files[0], folder / files[1]), precision, source_axis="time")
    options = ReadingOptions()
    generation = {"num_beams": options.beam, "length_penalty": options.length_penalty}
    return Exported({"encoder": files[0], "decoder": files[1]}, generation, {"vocab_size": len(model.vocabulary)})
