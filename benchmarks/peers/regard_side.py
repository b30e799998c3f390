"""Measure regard in a process of its own: training with regard.train, decoding with Translator.translate.

    python regard_side.py '{"task": "train", ...}'

The last line printed is a JSON object with the amount, the wall and CPU seconds and, for decoding, the mean length of
the outputs. The model is like those of the other toolkits: attention follows the recurrent step, and its vector is an
input of the next step.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from prepared_data import data_config

import regard
from regard.data.pairs import Batch
from regard.data.tokenizer import Tokenizer
from regard.layers.layout import by_columns
from regard.systems.translate.config import TranslationConfig, TranslationTrain
from regard.systems.translate.model import Translator
from regard.training.fit import Training
from regard.training.recipes import Recipe


def make_model(order: dict[str, Any]) -> Translator:
    config = TranslationConfig(
        architecture="luong",
        cell="gru",
        score="additive",
        embedding=order["embedding"],
        hidden=512,
        encoder_hidden=order["encoder"],
        share_embeddings="none",
    )
    torch.manual_seed(1)
    tokenizer = Tokenizer.load(order["tokenizer"])
    return Translator(config, tokenizer, tokenizer)


class Stopwatch:
    """Counts target tokens, END included, over a number of updates after a warm-up, and then stops the training."""

    def __init__(self, warmup: int, updates: int) -> None:
        self._warmup, self._updates = warmup, updates
        self._done = self.tokens = 0
        self._start = self._end = (0.0, 0.0)

    def note(self, batch: Batch) -> None:
        """Note that an update is done."""
        self._done += 1
        if self._done == self._warmup:
            self._start = time.perf_counter(), time.process_time()
        elif self._done > self._warmup:
            self.tokens += int((batch.target_lengths - 1).sum())
        if self._done == self._warmup + self._updates:
            self._end = time.perf_counter(), time.process_time()
            signal.raise_signal(signal.SIGTERM)  # the training ends after this batch

    def result(self) -> dict[str, Any]:
        """The number of tokens, and the wall and CPU seconds."""
        if not self._end[0]:
            raise SystemExit(f"The data has only {self._done} updates.")
        wall, cpu = (end - start for start, end in zip(self._start, self._end, strict=True))
        return {"amount": self.tokens, "wall": wall, "cpu": cpu}


def measure_training(order: dict[str, Any]) -> dict[str, Any]:
    stopwatch = Stopwatch(order["warmup"], order["updates"])
    data = data_config(Path(order["data"]), test=False)
    settings = TranslationTrain(epochs=2, max_tokens=order["max_tokens"], validate_every=100)
    update = Training.update

    def watched(self: Training, batch: Batch) -> torch.Tensor:
        loss = update(self, batch)
        stopwatch.note(batch)
        return loss

    Training.update = watched  # type: ignore[method-assign] - regard.train takes no callbacks
    model = make_model(order)
    recipe = Recipe(model.kind, data, model.config, settings)
    regard.train(recipe, out=order["folder"], start_from=model, progress=False)
    return stopwatch.result() | {"parameters": sum(parameter.numel() for parameter in model.parameters())}


def measure_decoding(order: dict[str, Any]) -> dict[str, Any]:
    model = by_columns(make_model(order).eval())  # the memory layout of a loaded model
    model.max_batch = order["batch"]  # type: ignore[misc]
    texts = Path(order["texts"]).read_text(encoding="utf-8").splitlines()
    wall, cpu = time.perf_counter(), time.process_time()
    results = model.translate(texts, beam=order["beam"], min_length=order["length"], max_length=order["length"])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # The target of a trace has the end of the sentence too, where there is one.
    subwords = sum(len(result.trace.target) - result.finished for result in results if result.trace is not None)
    return {"amount": len(texts), "wall": wall, "cpu": cpu, "length": subwords / len(texts)}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__)
    order = json.loads(sys.argv[1])
    measure = {"train": measure_training, "decode": measure_decoding}[order["task"]]
    print(json.dumps(measure(order)))


if __name__ == "__main__":
    main()
