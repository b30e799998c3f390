"""Small versions of the packaged recipes: their architectures and settings, with small sizes and generated data."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from helpers.runs import WORDS, small_recipe
from regard.systems.plan import read_recipe
from regard.training.recipes import Recipe

TRAIN: dict[str, Any] = {"epochs": 2, "minutes": 0.0, "validate_every": 1, "patience": 0}


def small_version(name: str, folder: Path, **train: Any) -> Recipe:
    """The packaged recipe, so small that it trains in a second or two; its data is written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = read_recipe(name)
    data, model, own = _SMALLER[recipe.system](recipe, folder)
    return read_recipe(name, {"data": data, "model": model, "train": TRAIN | own | train})


def _translator(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    # With a piece for each of the 256 bytes, where rare characters are spelled in bytes.
    vocabulary = 80 + 256 * recipe.data.byte_fallback
    data: dict[str, Any] = {"examples": 40, "held_out": 3, "held_out_test": 3, "vocabulary": vocabulary}
    if not recipe.data.world:
        _write_lines(folder / "source", (f"{' '.join(WORDS[i % 7 : i % 7 + 3])} {i}" for i in range(40)))
        _write_lines(folder / "target", (" ".join(WORDS[i % 5 : i % 5 + 3]) for i in range(40)))
        files = {"source": "source", "target": "target", "pairs": "", "folder": str(folder)}
        data |= files | {f"{split}_{side}": "" for split in ("valid", "test") for side in ("source", "target")}
    if recipe.data.alignments:
        _write_lines(folder / "links", ("0-0 1-1 2-2" for _ in range(40)))
        data["alignments"] = "links"
    model = {"embedding": 16, "hidden": 16}
    if recipe.model.architecture == "transformer":
        model = {"embedding": 2 * recipe.model.heads, "feedforward_dim": 16}
    return data, model, {"max_tokens": 120, "max_output_length": 6}


def _captioner(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    """Photographs are replaced by scenes: features of photographs need a network that has to be downloaded."""
    given = {"captions": "", "regions": "", "images": (), "views": 0, "store": ""}
    data = {"world": "scenes", "examples": 24, "held_out": 3} | given
    model = {"image_size": 32, "filters": (4, 6, 8), "embedding": 8, "hidden": 12, "attention_dim": 6}
    learned = {"encoder": "strided", "stride": 8, "coarse_stride": 0, "drop_last_layers": 0, "pca_dim": 0, "domain": ""}
    return data, model | learned | {"annotation_dim": 0}, {"max_tokens": 60, "valid_beam": 1, "max_output_length": 6}


def _image_classifier(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    if recipe.data.format == "mnist":
        small_recipe("recognize", folder)
    else:
        random = np.random.default_rng(1)
        for file in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
            rows = random.integers(0, 256, (10, 3073), dtype=np.uint8)
            rows[:, 0] = np.arange(10)
            (folder / file).write_bytes(rows.tobytes())
    return {"folder": str(folder), "held_out": 5}, {}, {"batch_size": 12}


def _document_classifier(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    data: dict[str, Any] = {"examples": 40, "held_out": 4, "minimum_count": 1}
    if not recipe.data.world:
        labels = list(recipe.data.label_names) or ["bad", "good"]
        rows = [{"text": f"{WORDS[i % 10]} is {labels[i % 2]}. So {i}.", "label": i % 2} for i in range(40)]
        _write_lines(folder / "rows.jsonl", map(json.dumps, rows))
        data |= {"folder": str(folder), "train": "rows.jsonl", "columns": ("text", "label")}
        data |= {"valid": "", "test": "", "vectors": "", "posts": ""}
    return data, {"embedding": 6, "hidden": 5}, {"batch_size": 9}


def _reader(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    data: dict[str, Any] = {"examples": 40, "held_out": 4, "minimum_count": 1}
    if not recipe.data.world:
        line = {
            "inference": lambda i: f"{['entailment', 'neutral'][i % 2]}\t{WORDS[i % 10]} is here\t{WORDS[i % 7]} too",
            "trees": lambda i: f"({i % 5} (2 {WORDS[i % 10]}) ({i % 3} works))",
        }.get(recipe.data.format, lambda i: f"the {WORDS[i % 10]} sat on {WORDS[i % 7]} .")
        _write_lines(folder / "train", map(line, range(40)))
        data |= {"folder": str(folder), "train": "train", "valid": "", "test": "", "vectors": ""}
    return data, {"embedding": 8, "hidden": 8}, {"max_tokens": 60}


def _turing_machine(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    return {"valid_tapes": 4}, {"hidden": 8}, {"batch_size": 4, "epoch_updates": 3}


def _glimpser(recipe: Recipe, folder: Path) -> tuple[dict[str, Any], ...]:
    data = {"examples": 24, "held_out": 4, "test_examples": 4}
    return data, {"hidden": 8, "glimpse_dim": 6}, {"batch_size": 8}


_SMALLER = {
    "translate": _translator,
    "caption": _captioner,
    "recognize": _image_classifier,
    "classify": _document_classifier,
    "read": _reader,
    "tape": _turing_machine,
    "glimpse": _glimpser,
}


def _write_lines(path: Path, lines: Any) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
