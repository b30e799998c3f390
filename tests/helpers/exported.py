"""Exported models run by onnxruntime, step by step, beside the decoder that they came from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from regard.decoders.protocol import Decoder, select
from regard.encoders.encoded import Encoded


class Exported:
    """The graphs of an exported folder, by their names in config.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.sessions = {
            name: onnxruntime.InferenceSession(folder / file, options)
            for name, file in self.config["export"]["graphs"].items()
        }

    def run(self, graph: str, **inputs: Any) -> dict[str, np.ndarray]:
        """The outputs of a graph by their names; "__" stands for "." in the names of inputs."""
        given = {name.replace("__", "."): np.asarray(value) for name, value in inputs.items()}
        names = [each.name for each in self.sessions[graph].get_outputs()]
        return dict(zip(names, self.sessions[graph].run(None, given), strict=True))


@torch.no_grad()
def steps_of_both(
    exported: Exported, decoder: Decoder, encoded: Encoded, inputs: dict[str, Any], *, rows: int = 2, steps: int = 5
) -> list[tuple[dict[str, np.ndarray], Any]]:
    """The same steps of an exported model and of its decoder; tokens are arbitrary, the rows of an input swap places.

    Each is (outputs of the graph, Step of the decoder).
    """
    first = exported.run("encoder", **inputs)
    memory = {name: value for name, value in first.items() if name.startswith("memory.")}
    past = {name: np.repeat(value, rows, 0) for name, value in first.items() if name.startswith("past.")}
    count = len(encoded.states)
    state = select(decoder.start(encoded), torch.arange(count).repeat_interleave(rows))
    order = np.arange(count * rows).reshape(count, rows)[:, ::-1].ravel().copy()
    vocabulary = exported.config["vocab_size"]
    tokens, found = np.full(count * rows, 1), []
    for step in range(steps):
        outputs = exported.run("decoder", input_ids=tokens, **memory, **past)
        stepped = decoder.step(torch.from_numpy(tokens), state)
        found.append((outputs, stepped))
        past = {"past" + name[7:]: value[order] for name, value in outputs.items() if name.startswith("present.")}
        state = select(stepped.state, torch.from_numpy(order))
        tokens = (np.arange(count * rows) * 7 + step) % (vocabulary - 4) + 4
    return found
