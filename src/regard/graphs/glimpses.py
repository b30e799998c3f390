"""The glimpse network in ONNX graphs: what the retina sees at a location, and its features."""

import torch

from regard.graphs.graph import Graph, Value
from regard.graphs.images import apply
from regard.layers.glimpse import GlimpseNetwork


class RetinaGraph:
    """The retina of a glimpse network over images, pixels (b, c, h, w) from 0 to 1, which a loop looks at again."""

    def __init__(
        self, graph: Graph, network: GlimpseNetwork, pixels: Value, image: tuple[int, int], channels: int
    ) -> None:
        self.network, self.image, self.channels = network, image, channels
        size = network.size
        self.widest = size * 2 ** (network.num_scales - 1)
        # A window of the finest scale shares a pixel with the image; the widest reaches further on both sides.
        self.margin = size + (self.widest - size) // 2 + 1
        padded = graph.Pad(pixels, [0, 0, self.margin, self.margin] * 2)
        self.scene = graph.Reshape(padded, [0, channels, -1])

    def features(self, graph: Graph, location: Value) -> Value:
        """The features of a glimpse at each location (b, 2), in the graph of a step."""
        network, int64 = self.network, graph.onnx.TensorProto.INT64
        extent = torch.tensor([self.image[1], self.image[0]], dtype=torch.float32)
        first = graph.Floor((location + 1.0) * (extent / 2) - (network.size / 2 - 0.5))
        first = graph.Min(graph.Max(first, float(1 - network.size)), extent - 1)
        corner = graph.Cast(first, to=int64) - torch.tensor((self.widest - network.size) // 2 - self.margin)
        left, top = graph.nodes("Split", corner, [1, 1], outputs=2, axis=1)
        width = self.image[1] + 2 * self.margin
        steps = torch.arange(self.widest)
        within = (steps[:, None] * width + steps).flatten().unsqueeze(0)
        indices = graph.Unsqueeze(top * torch.tensor(width) + left + within, [1])
        indices = graph.Expand(indices, torch.tensor([1, self.channels, 1]))
        cut = graph.GatherElements(self.scene, indices, axis=2)
        window = graph.Reshape(cut, [0, self.channels, self.widest, self.widest])
        scales = []
        for scale in range(network.num_scales):
            side = network.size * 2**scale
            start = (self.widest - network.size) // 2 - (side - network.size) // 2
            part = graph.Slice(window, [start, start], [start + side, start + side], [2, 3])
            pool = {"kernel_shape": [2**scale] * 2, "strides": [2**scale] * 2}
            scales.append(graph.AveragePool(part, **pool) if scale else part)
        seen = graph.Concat(*scales, axis=1)
        what = apply(graph, network.what, seen)
        where = apply(graph, network.where, location)
        return graph.Relu(apply(graph, network.from_what, what) + apply(graph, network.from_where, where))
