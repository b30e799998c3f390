"""Exporting a memory machine: one graph, from tapes to the answers and to where the heads were."""

from pathlib import Path

from regard.errors import OptionError
from regard.graphs.graph import Graph, Precision, Value
from regard.graphs.recurrent import read_sequences
from regard.graphs.tapes import access, controlled, first_memory
from regard.layers.controllers import FeedForwardController, LSTMController
from regard.systems.export import Exported, graph_file
from regard.systems.tape.model import TuringMachine
from regard.systems.tape.networks import LSTMNetwork, TuringNetwork


def export(model: TuringMachine, folder: Path, precision: Precision) -> Exported:
    """Write the graph into a folder; its numbers stay float32, since heads move by hundreds of steps that add up."""
    network, graph = model.network, Graph()
    inputs = graph.input("inputs", ["tapes", "steps", model.task.input_size])
    shape: list[str | int] = ["tapes", "steps", model.task.output_size]
    if isinstance(network, LSTMNetwork):
        lengths = graph.Expand(graph.Shape(inputs, start=1, end=2), graph.Shape(inputs, start=0, end=1))
        states, _ = read_sequences(graph, network.lstm, inputs, lengths)
        graph.output("logits", graph.linear(states, network.output.weight, network.output.bias), shape)
    elif isinstance(network, TuringNetwork):
        _turing(graph, network, inputs, shape)
    else:
        raise OptionError(f"{type(network).__name__} cannot be exported; the architectures ntm and lstm can.")
    file = graph_file("model", precision)
    graph.save(folder / file)
    return Exported({"model": file})


def _turing(graph: Graph, network: TuringNetwork, inputs: Value, shape: list[str | int]) -> None:
    """The loop over the steps; its memory has as many slots as the input `slots` says."""
    controller, memory, sizes = network.controller, network.memory, network.memory.sizes
    if type(controller) not in (FeedForwardController, LSTMController):
        raise OptionError(f"The controller {type(controller).__name__} cannot be exported; feedforward and lstm can.")
    slots = graph.input("slots", [1], "int64")
    content, weights = first_memory(graph, memory, inputs, slots)
    batch = graph.Shape(inputs, start=0, end=1)
    read = graph.Expand(network.first_read.unsqueeze(0), graph.Concat(batch, [memory.read_size], axis=0))
    zeros = graph.ConstantOfShape(graph.Concat(batch, [controller.hidden], axis=0), value=graph.tensor([0.0]))
    own = [zeros, zeros] if isinstance(controller, LSTMController) else []

    def step(body: Graph, state: list[Value], entries: list[Value]) -> tuple[list[Value], list[Value]]:
        content, weights, read, *own = state
        hidden, own = controlled(body, controller, entries[0], read, own)
        vectors, weights, content, reasons = access(body, memory, hidden, content, weights)
        read = body.Reshape(vectors, [0, memory.read_size])
        answer = body.linear(body.Concat(hidden, read, axis=-1), network.output.weight, network.output.bias)
        slot_sizes = body.Sqrt(body.ReduceMean(content * content, [1], keepdims=0))
        return [content, weights, read, *own], [answer, weights, vectors, *reasons, slot_sizes]

    projected = graph.linear(inputs, controller.input.weight, controller.input.bias)
    (content, *_), found = graph.scan(step, [content, weights, read, *own], [projected])
    steps: list[str | int] = shape[:2]
    graph.output("logits", found[0], shape)
    graph.output("weights", found[1], [*steps, sizes.heads, "slots"])
    graph.output("reads", found[2], [*steps, sizes.reads, sizes.width])
    graph.output("adds", found[3], [*steps, sizes.writes, sizes.width])
    graph.output("controls", found[4], [*steps, sizes.heads, 4])
    graph.output("slot_sizes", found[5], [*steps, "slots"])
    graph.output("memory", graph.Transpose(content, perm=[0, 2, 1]), ["tapes", "slots", sizes.width])
