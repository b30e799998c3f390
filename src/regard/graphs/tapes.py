"""Memory machines in ONNX graphs: the neural Turing machine as a loop over the steps of a tape."""

from typing import Any

import torch

from regard.graphs.graph import Graph, Value
from regard.graphs.recurrent import split
from regard.kernels.turing_heads import EPSILON, LIMIT, SMALLEST, HeadSizes
from regard.layers.controllers import FeedForwardController, LSTMController
from regard.layers.memory import INITIAL_CONTENT, ExternalMemory

INFINITE = 2**62


def first_memory(graph: Graph, memory: ExternalMemory, inputs: Value, slots: Value) -> tuple[Value, Value]:
    """An empty memory (b, d, n) of so many slots, (1,), and all heads at its first slot, (b, h, n)."""
    batch, sizes = graph.Shape(inputs, start=0, end=1), memory.sizes
    content = graph.ConstantOfShape(
        graph.Concat(batch, [sizes.width], slots, axis=0), value=graph.tensor([INITIAL_CONTENT])
    )
    one = graph.ConstantOfShape(graph.Concat(batch, [sizes.heads, 1], axis=0), value=graph.tensor([1.0]))
    others = graph.ConstantOfShape(graph.Concat(batch, [sizes.heads], slots - 1, axis=0), value=graph.tensor([0.0]))
    return content, graph.Concat(one, others, axis=2)


def controlled(
    graph: Graph, controller: Any, projected: Value, read: Value, state: list[Value]
) -> tuple[Value, list[Value]]:
    """One step of a controller: its features, and its next state."""
    if isinstance(controller, FeedForwardController):
        return graph.Tanh(projected + graph.linear(read, controller.inside.weight)), []
    assert isinstance(controller, LSTMController)  # noqa: S101 - `export` refuses others
    hidden, cell = state
    gates = projected + graph.linear(graph.Concat(hidden, read, axis=-1), controller.inside.weight)
    entry, forget, new, out = split(graph, gates, [controller.hidden] * 4)
    cell = graph.Sigmoid(forget + 1.0) * cell + graph.Sigmoid(entry) * graph.Tanh(new)
    hidden = graph.Sigmoid(out) * graph.Tanh(cell)
    return hidden, [hidden, cell]


def access(
    graph: Graph, memory: ExternalMemory, features: Value, content: Value, last: Value
) -> tuple[Value, Value, Value, list[Value]]:
    """One step of all heads: what was read (b, r, d), the weights (b, h, n), the content (b, d, n), and their reasons.

    These are what was added (b, w, d), and the gate, strength, sharpening and mean shift of each head, (b, h, 4).
    """
    sizes = memory.sizes
    emitted = graph.linear(features, memory.heads.weight, memory.heads.bias)
    bounded, opened, positive, shift = split(graph, emitted, list(sizes.groups))
    vectors = graph.Reshape(graph.Tanh(bounded), [0, sizes.heads + sizes.writes, sizes.width])
    key, add = graph.nodes("Split", vectors, [sizes.heads, sizes.writes], outputs=2, axis=1)
    gate, erase = split(graph, graph.Sigmoid(opened), [sizes.heads, sizes.writes * sizes.width])
    gate, erase = graph.Unsqueeze(gate, [2]), graph.Reshape(erase, [0, sizes.writes, sizes.width])
    strength, sharpen = split(graph, graph.Min(graph.Softplus(positive), LIMIT - 1), [sizes.heads] * 2)
    strength, sharpen = graph.Unsqueeze(strength, [2]), graph.Unsqueeze(sharpen, [2]) + 1.0
    shift = graph.Softmax(graph.Reshape(shift, [0, sizes.heads, 2 * sizes.max_shift + 1]), axis=-1)

    lengths = [
        graph.Sqrt(graph.ReduceSum(each * each, [axis], keepdims=1) + EPSILON)
        for each, axis in ((key, 2), (content, 1))
    ]
    cosine = (key / lengths[0]) @ content / lengths[1]
    gated = last + gate * (graph.Softmax(cosine * strength, axis=-1) - last)
    rotated = graph.Max(_rotated(graph, gated, shift, sizes), SMALLEST)
    weights = graph.Softmax(graph.Log(rotated) * sharpen, axis=-1)
    reading, writing = graph.nodes("Split", weights, [sizes.reads, sizes.writes], outputs=2, axis=1)
    read = reading @ graph.Transpose(content, perm=[0, 2, 1])
    for head in range(sizes.writes):
        erased, written = (graph.Gather(part, [head], axis=1) for part in (erase, writing))
        content = content * (1.0 - graph.Transpose(erased, perm=[0, 2, 1]) * written)
    content = content + graph.Transpose(add, perm=[0, 2, 1]) @ writing
    steps = torch.arange(-sizes.max_shift, sizes.max_shift + 1, dtype=torch.float32)
    controls = graph.Concat(gate, strength, sharpen, graph.ReduceSum(shift * steps, [2], keepdims=1), axis=2)
    return read, weights, content, [add, controls]


def _rotated(graph: Graph, weights: Value, shift: Value, sizes: HeadSizes) -> Value:
    """The weights, moved in a circle by each step of the shift."""
    reach, count = sizes.max_shift, 2 * sizes.max_shift + 1
    if not reach:
        return weights * shift
    parts = graph.Slice(weights, [-reach], [INFINITE], [2]), weights, graph.Slice(weights, [0], [reach], [2])
    around, total = graph.Concat(*parts, axis=2), None
    for offset in range(count):
        end = offset + 1 - count or INFINITE
        moved = graph.Slice(around, [offset], [end], [2]) * graph.Slice(
            shift, [count - 1 - offset], [count - offset], [2]
        )
        total = moved if total is None else total + moved
    assert total is not None  # noqa: S101 - there is at least one step
    return total
