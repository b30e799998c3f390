"""A saved model is a folder of plain files: config.json, model.safetensors, assets, metrics.json, MODEL_CARD.md.

Nothing in it is ever unpickled. A folder is written under a temporary name and then renamed, and it replaces only a
folder that regard wrote.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard import __version__
from regard.config import Checked, from_values, nearest_hint, own_parts
from regard.errors import DataError, ModelError, OptionError
from regard.files import replacing_folder, write_text
from regard.systems.pretrained import PRETRAINED

CONFIG, PARAMETERS, METRICS, CARD = "config.json", "model.safetensors", "metrics.json", "MODEL_CARD.md"


SCALE = ":factor"
"""Ends the name of the tensor that the rows of an int8 matrix are multiplied by."""


class Labels(tuple[str, ...]):
    """The names of classes, in the order of their numbers: an asset, stored as a JSON list."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the names."""
        write_text(path, json.dumps(list(self), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Labels":
        """Read the names."""
        names = _read_json(Path(path))
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ModelError(f"{path} must be a list of the names of classes; got {str(names)[:80]}.")
        return cls(names)


@dataclass(frozen=True)
class Saved:
    """The contents of a model folder."""

    folder: Path
    config: Any
    assets: dict[str, Any]
    tensors: dict[str, Tensor]
    metrics: dict[str, Any]
    card: str

    def fill(self, model: nn.Module) -> None:
        """Copy the parameters into a model, in the precision that the model has."""
        state = model.state_dict()
        tied = _first_names(state)
        try:
            tensors = _widened(self.tensors)
        except ModelError as error:
            raise ModelError(f"{self.folder / PARAMETERS}: {error}") from error
        missing = sorted({tied[name] for name in state} - set(tensors))
        unknown = sorted(set(tensors) - set(state))
        if missing or unknown:
            raise ModelError(
                f"The parameters of {self.folder} do not fit its config: {len(missing)} missing {missing[:3]}, "
                f"{len(unknown)} unknown {unknown[:3]}."
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                if state[name].shape != tensor.shape:
                    raise ModelError(
                        f"{self.folder}: {name} is {tuple(tensor.shape)}; the config asks for "
                        f"{tuple(state[name].shape)}."
                    )
                state[name].copy_(tensor)


def find_model(name: str | os.PathLike[str]) -> Path:
    """The folder of a model: a shipped one by its name, a saved one by its folder, or the run folder that holds it."""
    folder = Path(name)
    if folder.is_dir():
        is_run = not (folder / CONFIG).is_file() and (folder / "model" / CONFIG).is_file()
        return folder / "model" if is_run else folder
    if (PRETRAINED / name / CONFIG).is_file():
        return PRETRAINED / name
    names = sorted(path.parent.name for path in PRETRAINED.glob(f"*/{CONFIG}"))
    hint = nearest_hint(name, names) or f" Shipped models: {', '.join(names) or 'none'}."
    raise ModelError(f"There is no folder and no shipped model named {str(name)!r}.{hint}")


def model_checksum(name: str | os.PathLike[str]) -> str:
    """A checksum of the files that decide what a model answers."""
    folder = find_model(name)
    kind_of(folder)
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name not in (METRICS, CARD):
            with path.open("rb") as stream:
                digest.update(path.name.encode() + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def kind_of(folder: Path) -> str:
    """The kind of system that a model folder holds."""
    if not (folder / CONFIG).is_file() or not (folder / PARAMETERS).is_file():
        raise ModelError(
            f"{folder} is not a model folder: it needs {CONFIG} and {PARAMETERS}, which `regard train` writes."
        )
    return str(_read_config(folder)["system"])


def read_model(
    folder: Path, kind: str, config_class: type[Checked], assets: Mapping[str, type[Any]], *, trust: bool
) -> Saved:
    """Read what `write_model` wrote, and check that it is of the given kind."""
    found = kind_of(folder)
    if found != kind:
        raise ModelError(f"{folder} holds {_a(found)}, not {_a(kind)}.")
    stored = _read_config(folder)
    config = from_values(config_class, stored["config"], str(folder / CONFIG))
    if (own := own_parts(config)) and not trust:
        named = ", ".join(f"{name} = {path!r}" for name, path in own.items())
        raise OptionError(f"{folder} uses {named}: loading it runs that code. Pass trust=True if you trust it.")
    try:
        tensors = load_file(folder / PARAMETERS)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{folder / PARAMETERS} is damaged: {error}.") from error
    loaded: dict[str, Any] = {}
    files = stored["assets"]
    for name, asset_class in assets.items():
        if not _is_file_name(files.get(name)):
            raise ModelError(f"{folder / CONFIG} names no file for {name!r}: its assets are {files}.")
        same = next((loaded[other] for other in loaded if files[other] == files[name]), None)
        try:
            loaded[name] = asset_class.load(folder / files[name]) if same is None else same
        except DataError as error:
            raise ModelError(str(error)) from error
    metrics = _read_json(folder / METRICS) if (folder / METRICS).is_file() else {}
    if not isinstance(metrics, dict):
        raise ModelError(f"{folder / METRICS} must be a table of scores; got {str(metrics)[:80]}.")
    card = _read_text(folder / CARD) if (folder / CARD).is_file() else ""
    return Saved(folder, config, loaded, tensors, metrics, card)


def write_model(
    folder: str | os.PathLike[str],
    model: nn.Module,
    *,
    kind: str,
    config: Checked,
    assets: Mapping[str, Any],
    metrics: Mapping[str, Any],
    card: str,
    store: Literal["float32", "float16", "int8"],
) -> None:
    """Write a model folder; as int8, each row of a matrix is stored as integers from -127 to 127 and one scale."""
    if store not in ("float32", "float16", "int8"):
        raise OptionError(f"store must be one of float32, float16, int8; got {store!r}.")
    with replacing_folder(folder, refuse=refuse_to_replace) as draft:
        files: dict[str, str] = {}
        for name, asset in assets.items():
            same = [other for other, written in assets.items() if written is asset]
            files[name] = f"{same[0] if len(same) == 1 else _shared_name(same)}.json"
            if name == same[0]:
                asset.save(draft / files[name])
        stored = {"system": kind, "version": __version__, "config": config.to_dict(), "assets": files}
        write_text(draft / CONFIG, json.dumps(stored, indent=2) + "\n")
        write_text(draft / METRICS, json.dumps(dict(metrics), indent=2) + "\n")
        write_text(draft / CARD, card or f"# {_a(kind).capitalize()}\n\nThis model has no card yet.\n")
        state = model.state_dict()
        first = set(_first_names(state).values())
        kept = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items() if name in first}
        save_file(_narrowed(kept, store), draft / PARAMETERS)


def refuse_to_replace(folder: Path) -> str:
    """Why a folder must not be replaced by a model: it is not, or not only, a model folder that regard wrote."""
    try:
        files = list(_read_config(folder)["assets"].values())
    except ModelError:
        files = [None]
    if not all(_is_file_name(file) and file.endswith(".json") for file in files):
        return f"it holds files that regard did not write (it has no {CONFIG} of a model)"
    ours = {CONFIG, PARAMETERS, METRICS, CARD, *files}
    others = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    return f"it also holds {', '.join(others[:3])}, which regard did not write" if others else ""


def _shared_name(names: list[str]) -> str:
    """The words that the names have in common: "tokenizer" for source_tokenizer and target_tokenizer."""
    words = [name.split("_") for name in names]
    common = [word for word in words[0] if all(word in other for other in words[1:])]
    return "_".join(common) or names[0]


def _read_config(folder: Path) -> dict[str, Any]:
    stored = _read_json(folder / CONFIG)
    try:
        parts = {"system": stored["system"], "config": stored["config"], "assets": stored.get("assets", {})}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{folder / CONFIG} is not the config of a regard model: {error!r}.") from error
    if not isinstance(parts["system"], str) or not parts["system"]:
        raise ModelError(
            f"{folder / CONFIG} is not the config of a regard model: system must be a name such as translator; got "
            f"{str(parts['system'])[:80]!r}."
        )
    if not all(isinstance(parts[name], dict) for name in ("config", "assets")):
        raise ModelError(f"{folder / CONFIG} is not the config of a regard model: config and assets must be tables.")
    return parts


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error


def _is_file_name(name: Any) -> bool:
    """Whether this names a file in the folder itself: not elsewhere, above, or nothing."""
    return isinstance(name, str) and bool(re.fullmatch(r"\w[\w.-]*", name))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _narrowed(tensors: Mapping[str, Tensor], store: str) -> dict[str, Tensor]:
    if store == "float32":
        return dict(tensors)
    narrow: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if store == "int8" and tensor.ndim == 2:
            scale = tensor.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
            narrow[name] = (tensor / scale).round().to(torch.int8)
            narrow[name + SCALE] = scale
        elif not tensor.is_floating_point():
            narrow[name] = tensor
        else:
            narrow[name] = tensor.half()
    return narrow


def _widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for name, tensor in tensors.items():
        scale = tensors.get(name + SCALE)
        if tensor.dtype == torch.int8 and scale is None:
            raise ModelError(f"The int8 matrix {name!r} has no scale: the parameters are damaged.")
        if scale is not None and scale.shape != (tensor.shape[0], 1):
            raise ModelError(
                f"The scale of the int8 matrix {name!r} is {tuple(scale.shape)}; it must be {(tensor.shape[0], 1)}: "
                "the parameters are damaged."
            )
    # A scale without a matrix keeps its name, so that it is reported as unknown.
    return {
        name: tensor.float() * tensors[name + SCALE] if name + SCALE in tensors else tensor.float()
        for name, tensor in tensors.items()
        if name.removesuffix(SCALE) == name or name.removesuffix(SCALE) not in tensors
    }


def _first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """For each name the first name with the same storage: tied parameters are stored once."""
    first: dict[tuple[int, torch.Size], str] = {}
    return {name: first.setdefault((tensor.data_ptr(), tensor.shape), name) for name, tensor in state.items()}
