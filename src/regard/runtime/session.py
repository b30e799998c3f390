"""A graph of an exported model, ready to run: arrays in, arrays out, by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ModelError
from regard.extras import require


class Session:
    """An ONNX graph in ONNX Runtime, on one CPU thread unless OMP_NUM_THREADS says otherwise.

    The models are small: in their operations threads mostly wait for each other, and where another process uses one of
    the cores, each of them waits for the operating system. Many Python threads may run one session at the same time.
    """

    def __init__(self, path: Path) -> None:
        runtime = require("An exported model", "onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = max(1, _number(os.environ.get("OMP_NUM_THREADS", "1")))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Sizes change from call to call: a plan of the memory for each of them would be made again and again.
        options.enable_mem_pattern = False
        try:
            self._session: Any = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library raises plain exceptions of its own
            raise ModelError(f"{path} is not a graph that ONNX Runtime can run: {error!s:.300}") from error
        self.inputs = tuple(each.name for each in self._session.get_inputs())
        self.outputs = tuple(each.name for each in self._session.get_outputs())

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name; of what is given, the inputs that the graph has are read."""
        given = {name: feeds[name] for name in self.inputs}
        return dict(zip(self.outputs, self._session.run(None, given), strict=True))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 1
