"""Exporting a glimpse model: one graph, from pixels to where it looked and what it believed after each glimpse."""

from pathlib import Path

from torch import nn

from regard.errors import OptionError
from regard.graphs.glimpses import RetinaGraph
from regard.graphs.graph import Graph, Precision, Value
from regard.graphs.images import apply
from regard.graphs.recurrent import split
from regard.systems.export import Exported, graph_file
from regard.systems.glimpse.model import Glimpser


def export(model: Glimpser, folder: Path, precision: Precision) -> Exported:
    """Write the graph into a folder; it takes pixels from 0 to 255.

    The input `noise` (images, glimpses, 2) says how many glimpses there are, and is added to where the policy looks,
    first the centre. `learned`, 0 or 1, is multiplied with the latter: with 0, `noise` are the locations themselves.
    """
    config, core, hidden = model.config, model.core, model.config.hidden
    is_lstm = isinstance(core, nn.LSTMCell)
    if not is_lstm and not (isinstance(core, nn.RNNCell) and core.nonlinearity == "relu"):
        raise OptionError(f"The core {type(core).__name__} cannot be exported; lstm and rnn can.")
    graph, side = Graph(), config.image_size  # float32, since a rounded location may fall on another pixel
    given = graph.input("pixel_values", ["inputs", config.channels, side, side], "uint8")
    noise = graph.input("noise", ["inputs", "glimpses", 2])
    learned = graph.input("learned", [1])
    pixels = graph.Cast(given, to=graph.onnx.TensorProto.FLOAT) / 255.0
    retina = RetinaGraph(graph, model.glimpse_network, pixels, (side, side), config.channels)
    batch = graph.Shape(given, start=0, end=1)
    zeros, centre = (
        graph.ConstantOfShape(graph.Concat(batch, [size], axis=0), value=graph.tensor([0.0])) for size in (hidden, 2)
    )

    def step(body: Graph, state: list[Value], entries: list[Value]) -> tuple[list[Value], list[Value]]:
        mean, last, *cells = state
        location = body.Clip(mean * learned + entries[0], -1.0, 1.0)
        seen = retina.features(body, location)
        gates = body.linear(seen, core.weight_ih, core.bias_ih) + body.linear(last, core.weight_hh, core.bias_hh)  # type: ignore[arg-type]
        if is_lstm:
            entry, forget, new, out = split(body, gates, [hidden] * 4)
            cells = [body.Sigmoid(forget) * cells[0] + body.Sigmoid(entry) * body.Tanh(new)]
            features = body.Sigmoid(out) * body.Tanh(cells[0])
        else:
            features = body.Relu(gates)
        logits = apply(body, model.classifier, features)
        return [apply(body, model.locator, features), features, *cells], [location, logits]

    _, (locations, logits) = graph.scan(step, [centre, zeros, *([zeros] if is_lstm else [])], [noise])
    graph.output("locations", locations, ["inputs", "glimpses", 2])
    graph.output("logits", logits, ["inputs", "glimpses", len(model.labels)])
    file = graph_file("model", precision)
    graph.save(folder / file)
    names = dict(enumerate(model.labels))
    return Exported(
        {"model": file}, facts={"id2label": names, "label2id": {name: each for each, name in names.items()}}
    )
