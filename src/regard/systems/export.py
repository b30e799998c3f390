"""Exporting a model: a folder of ONNX graphs, with its config and assets, that runs without torch."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard import __version__
from regard.arguments import checked
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.errors import OptionError
from regard.extras import require
from regard.files import checksum, replacing_folder, write_text
from regard.graphs.graph import Precision
from regard.systems import registry
from regard.systems.folder import CARD, CONFIG, METRICS, refuse_to_replace, write_config
from regard.systems.pretrained import load
from regard.systems.system import System

FORMAT = 1
"""The version of the folder's format."""
GRAPHS = "onnx"
"""The folder of the graphs, as transformers.js expects it."""
GENERATION = "generation_config.json"


@dataclass(frozen=True)
class Exported:
    """What the `export.py` of a system tells of its model."""

    graphs: Mapping[str, str]
    """The file of each graph, by what it computes."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """The fields of generation_config.json, for a model that decodes."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of config.json that hubs know."""


@checked
def export(
    model: "str | os.PathLike[str] | System",
    out: str | os.PathLike[str],
    *,
    precision: Precision = "int8",
    trust: bool = False,
) -> Path:
    """Write a model as a folder of ONNX graphs with its config, tokenizers or labels, scores and card.

    `model` is a shipped model, a model folder, or a loaded model. With the precision int8, matrices are stored in 8
    bits, as the shipped models store theirs, and only the output layer computes in 8 bits; float32 keeps all numbers.
    Needs the extra onnx. What has no graph, such as custom parts, is refused with the reason. An existing folder is
    replaced only if it holds an exported model. For `trust`, see `load`.
    """
    require("Exporting", "onnx", "onnxruntime")
    system = model if isinstance(model, System) else load(model, device="cpu", trust=trust)
    system.check_mode()
    write = registry.entry(system.kind).export
    if write is None:
        raise OptionError(f"The system {system.kind!r} cannot be exported: it has no export.py.")
    if system.custom_parts:
        named = ", ".join(f"{name} = {path!r}" for name, path in system.custom_parts.items())
        raise OptionError(f"Custom code cannot be exported, since it has no ONNX graph: {named}.")
    with replacing_folder(out, refuse=_refuse) as draft:
        (draft / GRAPHS).mkdir()
        exported = write(system, draft / GRAPHS, precision)
        _write_config(draft, system, exported, precision)
        write_text(draft / METRICS, json.dumps(dict(system.metrics), indent=2) + "\n")
        write_text(draft / CARD, system.card)
    return Path(out)


def graph_file(name: str, precision: Precision) -> str:
    """The name of a graph's file; that of int8 ends as transformers.js names this precision."""
    return f"{name}.onnx" if precision == "float32" else f"{name}_{precision}.onnx"


def _write_config(folder: Path, system: System, exported: Exported, precision: Precision) -> None:
    """Write the assets and config.json: that of a model folder, what hubs know, and the graphs with their checksums."""
    assets = {name: getattr(system, name) for name in system.assets}
    written: dict[int, LibraryTokenizer] = {}
    for name, asset in assets.items():
        if isinstance(asset, Tokenizer):
            assets[name] = written.setdefault(id(asset), LibraryTokenizer(asset))
    write_config(folder, kind=system.kind, config=system.config, assets=assets)
    stored = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    files = {name: f"{GRAPHS}/{file}" for name, file in exported.graphs.items()}
    export = {
        "format": FORMAT,
        "precision": precision,
        "graphs": files,
        "sha256": {file: checksum(folder / file) for file in files.values()},
    }
    config = {"model_type": f"regard_{system.kind}", **exported.facts, **stored, "export": export}
    write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    if exported.generation:
        tokens = {"decoder_start_token_id": START, "bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD}
        generation = tokens | dict(exported.generation) | {"_from_regard": __version__}
        write_text(folder / GENERATION, json.dumps(generation, indent=2) + "\n")


@dataclass(frozen=True)
class LibraryTokenizer:
    """A tokenizer as an asset of an exported model: the file that the library tokenizers reads."""

    tokenizer: Tokenizer

    def save(self, path: Path) -> None:
        """Write tokenizer.json."""
        write_text(path, self.tokenizer.as_library_json())


def _refuse(folder: Path) -> str:
    """Why a folder must not be replaced: it is not, or not only, an exported model."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        export, assets = config["export"], config["assets"]
        ours = {CONFIG, METRICS, CARD, GENERATION, GRAPHS, *assets.values()}
        graphs = {f"{GRAPHS}/{path.name}" for path in (folder / GRAPHS).iterdir()}
        others = sorted({path.name for path in folder.iterdir()} - ours | graphs - set(export["graphs"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return refuse_to_replace(folder) or "it is a model folder, and exporting would lose its parameters"
    return f"it also holds {', '.join(others[:3])}, which regard did not write" if others else ""
