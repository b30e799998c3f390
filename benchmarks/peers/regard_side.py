"""regard's own side, in a process of its own: training by regard.training.run.train, decoding by Translator.translate.

    python regard_side.py '{"task": "train", ...}'

The last line printed is a JSON object: the amount, the wall and CPU seconds and, of decoding, the length of outputs.
The model is that of the other toolkits: the attention comes after the step, and its vector is fed to the next.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from material import data_config

from regard.data.pairs import Batch
from regard.data.tokenizer import Tokenizer
from regard.layers.layout import by_columns
from regard.systems.translator import Translator, TranslatorConfig
from regard.training.recipe import Recipe, TrainConfig
from regard.training.run import train
from regard.training.translation import TranslationTask


def make_model(order: dict[str, Any]) -> Translator:
    config = TranslatorConfig(
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


class Watch:
    """Counts target tokens, END among them, from one update to another, and then ends the training."""

    def __init__(self, warmup: int, updates: int) -> None:
        self._warmup, self._updates = warmup, updates
        self._done = self.tokens = 0
        self._start = self._end = (0.0, 0.0)

    def see(self, task: TranslationTask, batch: Batch) -> None:
        """Take note of an update."""
        self._done += 1
        if self._done == self._warmup:
            self._start = time.perf_counter(), time.process_time()
        elif self._done > self._warmup:
            self.tokens += int((batch.target_lengths - 1).sum())
        if self._done == self._warmup + self._updates:
            self._end = time.perf_counter(), time.process_time()
            task.trainer.should_stop = True

    def result(self) -> dict[str, Any]:
        """What was counted, and the time it took."""
        if not self._end[0]:
            raise SystemExit(f"The data gave only {self._done} updates.")
        wall, cpu = (end - start for start, end in zip(self._start, self._end, strict=True))
        return {"amount": self.tokens, "wall": wall, "cpu": cpu}


def measure_training(order: dict[str, Any]) -> dict[str, Any]:
    watch = Watch(order["warmup"], order["updates"])
    data = data_config(Path(order["data"]), test=False)
    training = TrainConfig(epochs=2, max_tokens=order["max_tokens"], validate_every=100)
    # train() takes no callbacks; this hook of Lightning is one that the task leaves free.
    TranslationTask.on_train_batch_end = lambda self, outputs, batch, index: watch.see(self, batch)  # type: ignore
    model = make_model(order)
    train(Recipe(data, model.config, training), order["folder"], start_from=model, progress=False)
    return watch.result() | {"weights": sum(weight.numel() for weight in model.parameters())}


def measure_decoding(order: dict[str, Any]) -> dict[str, Any]:
    model = by_columns(make_model(order).eval())  # as a model that was loaded
    texts = Path(order["texts"]).read_text(encoding="utf-8").splitlines()
    wall, cpu = time.perf_counter(), time.process_time()
    found = model.translate(
        texts, beam=order["beam"], batch=order["batch"], min_length=order["length"], max_length=order["length"]
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # The target of a trace is the pieces, and the end where there is one.
    pieces = sum(len(best[0].trace.target) - best[0].finished for best in found if best[0].trace is not None)
    return {"amount": len(texts), "wall": wall, "cpu": cpu, "length": pieces / len(texts)}


def main() -> None:
    order = json.loads(sys.argv[1])
    task = {"train": measure_training, "decode": measure_decoding}[order["task"]]
    print(json.dumps(task(order)))


if __name__ == "__main__":
    main()
