"""Trainings of every system that take about a second, with everything that is random in them switched on."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.systems.plan import check_recipe
from regard.training.recipes import RawRecipe, Recipe

SYSTEMS = {
    "translate": "translate",
    "hard translate": "translate",
    "caption": "caption",
    "recognize": "recognize",
    "classify": "classify",
    "read": "read",
    "tape": "tape",
    "glimpse": "glimpse",
}
"""The kinds of small runs, and the system of each."""
TRAIN = {"epochs": 2, "checkpoint_minutes": 1e-9, "learning_rate": 0.01}
"""A checkpoint after every update, so that a run may be killed anywhere."""
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def small_recipe(kind: str, folder: Path, **train: Any) -> Recipe:
    """The recipe of a small run; its data is written into the folder, or is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    data, model, own = _TABLES[kind.removeprefix("hard ")](folder)
    if kind == "hard translate":
        model, own = model | {"align": "hard"}, own | {"schedule": "plateau", "average_decay": 0.0}
    return check_recipe(RawRecipe(SYSTEMS[kind], {"data": data, "model": model, "train": TRAIN | own | train}))


def _translator(folder: Path) -> tuple[dict[str, Any], ...]:
    lines = [f"{i} {' '.join(WORDS[i % 7 : i % 7 + 3])}\t{' '.join(WORDS[i % 5 : i % 5 + 2])}\n" for i in range(40)]
    _write(folder / "pairs.tsv", "".join(lines))
    data = {"pairs": str(folder / "pairs.tsv"), "vocabulary": 60, "held_out": 4, "bpe_dropout": 0.2}
    return data, {"embedding": 8, "hidden": 8}, {"max_tokens": 60, "average_decay": 0.9, "patience": 3}


def _captioner(folder: Path) -> tuple[dict[str, Any], ...]:
    data = {"world": "scenes", "examples": 24, "held_out": 3}
    model = {"image_size": 32, "filters": (4, 6, 8), "embedding": 8, "hidden": 12, "attention_dim": 6, "align": "hard"}
    return data, model, {"max_tokens": 60, "soft_fraction": 0.2, "average_decay": 0.9, "max_output_length": 6}


def _image_classifier(folder: Path) -> tuple[dict[str, Any], ...]:
    random = np.random.default_rng(1)
    for part, count in (("train", 50), ("t10k", 10)):
        arrays = random.integers(0, 255, (count, 28, 28)), np.arange(count) % 10
        for array, name in zip(arrays, ("images-idx3", "labels-idx1"), strict=True):
            head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            content = gzip.compress(head + array.astype(np.uint8).tobytes(), 1, mtime=0)
            if not (folder / f"{part}-{name}-ubyte.gz").exists():
                (folder / f"{part}-{name}-ubyte.gz").write_bytes(content)
    model = {"architecture": "lenet5", "channels": 1, "image_size": 28, "resize": "mnist", "dropout": 0.2}
    train = {"batch_size": 12, "crop": 2, "flip": True, "cutout": 4, "optimizer": "sgd", "average_decay": 0.9}
    return {"folder": str(folder), "format": "mnist", "held_out": 5}, model, train


def _document_classifier(folder: Path) -> tuple[dict[str, Any], ...]:
    rows = [{"text": f"{WORDS[i % 10]} is {['bad', 'good'][i % 2]}. So {i}.", "label": i % 2} for i in range(40)]
    _write(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = {"folder": str(folder), "train": "rows.jsonl", "held_out": 4, "minimum_count": 1}
    return data, {"embedding": 6, "hidden": 5, "dropout": 0.3}, {"batch_size": 9, "average_decay": 0.9}


def _reader(folder: Path) -> tuple[dict[str, Any], ...]:
    _write(folder / "text", "".join(f"the {WORDS[i % 10]} sat on {WORDS[i % 7]} .\n" for i in range(40)))
    data = {"folder": str(folder), "train": "text", "held_out": 4}
    return data, {"embedding": 6, "hidden": 8, "dropout": 0.3}, {"max_tokens": 60, "patience": 2}


def _turing_machine(folder: Path) -> tuple[dict[str, Any], ...]:
    data = {"bits": 2, "max_length": 3, "valid_tapes": 6}
    return data, {"hidden": 8, "slots": 5, "width": 4}, {"batch_size": 4, "epoch_updates": 4}


def _glimpser(folder: Path) -> tuple[dict[str, Any], ...]:
    data = {"examples": 32, "held_out": 4, "test_examples": 4, "pieces": 1, "distortion": 0.2}
    model = {"image_size": 30, "num_glimpses": 2, "glimpse_size": 6, "num_scales": 1, "hidden": 8, "glimpse_dim": 6}
    return data, model, {"batch_size": 8, "average_decay": 0.9}


_TABLES = {
    "translate": _translator,
    "caption": _captioner,
    "recognize": _image_classifier,
    "classify": _document_classifier,
    "read": _reader,
    "tape": _turing_machine,
    "glimpse": _glimpser,
}


def _write(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")


def watch_losses(seen: dict[int, float], stop_at: int | None = None) -> Any:
    """A replacement of `Divergence.update` that notes the loss of every update.

    It also raises a MemoryError, as if the process had died, in the update after `stop_at` of them.
    """
    from regard.training.divergence import Divergence

    original = Divergence.__dict__["update"]

    def watched(self, loss, step):
        if step - 1 == stop_at:
            raise MemoryError("killed")
        seen[step] = float(loss)
        original(self, loss, step)

    return watched


def same_parameters(first: Any, second: Any) -> bool:
    """Whether two models, or two state dicts, are equal bit by bit."""
    states = [each.cpu().state_dict() if hasattr(each, "state_dict") else each for each in (first, second)]
    return states[0].keys() == states[1].keys() and all(
        torch.equal(value, states[1][name]) for name, value in states[0].items()
    )


def comparable(metrics: dict[str, Any]) -> dict[str, Any]:
    """The metrics without the throughput and the time spent waiting, which differ from run to run."""
    return {name: value for name, value in metrics.items() if not name.endswith("/s") and name != "waiting"}
