"""The two graphs of a model that decodes: the encoder, and one step of the decoder for all hypotheses.

    encoder:  inputs -> memory.NAME (inputs, ...), past.NAME (inputs, ...)
    decoder:  input_ids (rows,), memory.NAME (inputs, ...), past.NAME (rows, ...)
              -> log_probs (rows, vocabulary), attention (rows, source), present.NAME (rows, ...)

The memory depends on the input alone, and all its rows share it: each input has equally many, one after the other.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from regard.decoders.bahdanau import Bahdanau
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.decoders.language_model import LanguageModel
from regard.decoders.luong import Luong
from regard.decoders.transformer import TransformerDecoder
from regard.errors import OptionError
from regard.graphs.captions import AdaptiveGraph, ShowAndTellGraph, ShowAttendTellGraph
from regard.graphs.graph import Graph, Parts, Precision, Value
from regard.graphs.reading import LanguageGraph
from regard.graphs.recurrent import BahdanauGraph, LuongGraph
from regard.graphs.source import Source, Stepped
from regard.graphs.transformer import TIME, TransformerGraph

MEMORY, PAST, PRESENT = "memory", "past", "present"


@runtime_checkable
class DecoderGraph(Protocol):
    """What the graph of a decoder defines."""

    def memory(self, source: Source) -> Parts:
        """What every step reads, and depends on the source alone."""
        ...

    def past(self, source: Source) -> Parts:
        """The state before the first step."""
        ...

    def step(self, ids: Value, memory: dict[str, Value], past: dict[str, Value]) -> Stepped:
        """One step of all rows."""
        ...


DECODERS: dict[type[nn.Module], Callable[[Graph, Any], DecoderGraph]] = {
    Bahdanau: BahdanauGraph,
    Luong: LuongGraph,
    TransformerDecoder: TransformerGraph,
    ShowAttendTell: ShowAttendTellGraph,
    Adaptive: AdaptiveGraph,
    ShowAndTell: ShowAndTellGraph,
    LanguageModel: LanguageGraph,
}
"""The graphs of decoders."""


def decoder_graph(graph: Graph, decoder: nn.Module) -> DecoderGraph:
    """The graph of a decoder."""
    if type(decoder) not in DECODERS:
        names = ", ".join(each.__name__ for each in DECODERS)
        raise OptionError(f"The decoder {type(decoder).__name__} cannot be exported; these can: {names}.")
    return DECODERS[type(decoder)](graph, decoder)


def write_decoding(
    encode: Callable[[Graph], Source],
    decoder: Any,
    paths: tuple[Path, Path],
    precision: Precision,
    *,
    source_axis: str = "source",
) -> None:
    """Write the graphs of an encoder, which `encode` adds to a graph, and of a step of the decoder.

    `source_axis` names what is attended to in the shape of the attention.
    """
    encoder = Graph(precision)
    source = encode(encoder)
    built = decoder_graph(encoder, decoder)
    memory, past = built.memory(source), built.past(source)
    for kind, parts in ((MEMORY, memory), (PAST, past)):
        for name, (value, shape) in parts.items():
            encoder.output(f"{kind}.{name}", value, ["inputs", *shape])
    encoder.save(paths[0])

    graph = Graph(precision)
    ids = graph.input("input_ids", ["rows"], "int64")
    given = {
        kind: {name: graph.input(f"{kind}.{name}", [rows, *shape]) for name, (_, shape) in parts.items()}
        for kind, rows, parts in ((MEMORY, "inputs", memory), (PAST, "rows", past))
    }
    stepped = decoder_graph(graph, decoder).step(ids, given[MEMORY], given[PAST])
    layers: list[Any] = list(decoder.output) if isinstance(decoder.output, nn.Sequential) else [decoder.output]
    if not all(type(layer) is nn.Linear for layer in layers):
        raise OptionError("An output that is not made of linear layers cannot be exported.")
    *before, output = layers
    features = stepped.features
    for layer in before:
        features = graph.linear(features, layer.weight, layer.bias)
    logits = graph.rounded_linear(features, output.weight, output.bias)
    graph.output("log_probs", graph.LogSoftmax(logits, axis=-1), ["rows", output.out_features])
    if stepped.weights is not None:
        graph.output("attention", stepped.weights, ["rows", source_axis])
    for name, (value, shape) in stepped.extras.items():
        graph.output(name, value, ["rows", *shape])
    for name, (_, shape) in past.items():
        after = [f"{TIME}_after" if size == TIME else size for size in shape]
        graph.output(f"{PRESENT}.{name}", stepped.past[name], ["rows", *after])
    graph.save(paths[1])
