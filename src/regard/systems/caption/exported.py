"""An exported captioner: its encoder, the pixels it takes included, and a step of its decoder are graphs."""

from collections.abc import Sequence

import numpy as np

from regard.data.images import ImageInput
from regard.data.tokenizer import PAD, START
from regard.runtime.steps import GraphState, GraphSteps
from regard.search.decode import decode
from regard.systems.caption.captions import Caption, Captioning, Looks
from regard.systems.caption.config import CaptionOptions
from regard.systems.exported import ExportedSystem
from regard.trace import Trace


class ExportedCaptioner(Captioning, ExportedSystem[ImageInput, Caption, CaptionOptions]):
    """A captioner whose folder `regard export` wrote."""

    def predict_batch(self, inputs: Sequence[ImageInput], options: CaptionOptions) -> list[Caption]:
        """The captions of one batch of images."""
        seen = [self.seen(image) for image in inputs]
        encoded = self.graphs["encoder"]({"pixel_values": np.ascontiguousarray(self.pixels(seen))})
        steps = GraphSteps(self.graphs["decoder"])
        state = steps.begin(encoded)
        outputs = decode(steps, state, self.rules(len(seen), options), options, num_inputs=len(seen))
        found = [best[: options.nbest] for best in outputs]
        traces: list[Trace | None] = [None] * sum(map(len, found))
        if options.traces != "none" and self.has_attention:
            rows = [row for row, best in enumerate(found) for _ in best]
            flat = [hypothesis for best in found for hypothesis in best]
            looks = _looks(steps, steps.select(state, rows), [hypothesis.tokens for hypothesis in flat])
            traces = [
                self.trace_of(seen[row], hypothesis, look)
                for row, hypothesis, look in zip(rows, flat, looks, strict=True)
            ]
        captions = self.written(found, traces)
        return self.with_novelty(captions, encoded["novelty"].tolist()) if "novelty" in encoded else captions


def _looks(steps: GraphSteps, state: GraphState, captions: Sequence[Sequence[int]]) -> list[Looks]:
    """What each word of given captions attended to, step by step: the graph has no pass for a whole caption."""
    found: list[dict[str, np.ndarray]] = []
    for position in range(max(1, *map(len, captions))):
        last = [START if not position else (each[position - 1 : position] or [PAD])[0] for each in captions]
        outputs, state = steps.run(last, state)
        found.append(outputs)
    return [_look(found, row) for row in range(len(captions))]


def _look(steps: Sequence[dict[str, np.ndarray]], row: int) -> Looks:
    weights = np.array([step["attention"][row] for step in steps])
    gates = np.array([step["gate"][row] for step in steps])
    if not steps or "distribution" not in steps[0]:
        return Looks(weights, gates)
    return Looks(np.array([step["distribution"][row] for step in steps]), gates, weights.argmax(-1).tolist())
