"""A saved model is a folder of plain files: config.json, model.safetensors, tokenizers, metrics.json, MODEL_CARD.md.

Nothing in it is ever unpickled. The folder is written under a temporary name and then renamed.
"""

import dataclasses
import difflib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard import __version__
from regard.data.tokenizer import Tokenizer
from regard.errors import ModelError, OptionError

Config = TypeVar("Config")
FACTOR = ":factor"
"""Ends the name of what the rows of an int8 matrix are multiplied with."""


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a folder, as stored."""

    tensors: dict[str, Tensor]
    place: Path

    def into(self, model: nn.Module) -> None:
        """Fill a model with them, in the precision that the model has."""
        state = model.state_dict()
        tied = _first_names(state)
        tensors = _widened(self.tensors)
        missing = sorted({tied[name] for name in state} - set(tensors))
        unknown = sorted(set(tensors) - set(state))
        if missing or unknown:
            raise ModelError(
                f"The weights of {self.place} do not fit its config: {len(missing)} missing {missing[:3]}, "
                f"{len(unknown)} unknown {unknown[:3]}."
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                if state[name].shape != tensor.shape:
                    raise ModelError(
                        f"{self.place}: {name} is {tuple(tensor.shape)}; the config wants {tuple(state[name].shape)}."
                    )
                state[name].copy_(tensor)


def write_model(
    folder: str | os.PathLike[str],
    system: str,
    config: Any,
    model: nn.Module,
    tokenizers: Mapping[str, Tokenizer],
    *,
    metrics: Mapping[str, Any],
    card: str,
    store: Literal["float32", "float16", "int8"] = "float32",
    labels: Sequence[str] = (),
) -> None:
    """Write the folder. `store` is the precision on disk: float16 halves the size, int8 quarters it.

    As int8, each row of a matrix is stored as whole numbers from -127 to 127 and one factor. `labels` are the names of
    classes, for labels.json.
    """
    folder = Path(folder)
    draft = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    fields = {"system": system, "version": __version__, "config": dataclasses.asdict(config)}
    (draft / "config.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    (draft / "metrics.json").write_text(json.dumps(dict(metrics), indent=2) + "\n", encoding="utf-8")
    (draft / "MODEL_CARD.md").write_text(
        card or f"# {_a(system).capitalize()}\n\nNo card was written.\n", encoding="utf-8"
    )
    state = model.state_dict()
    first = set(_first_names(state).values())
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items() if name in first}
    save_file(_narrowed(kept, store), draft / "model.safetensors")
    if labels:
        (draft / "labels.json").write_text(json.dumps(list(labels), ensure_ascii=False) + "\n", encoding="utf-8")
    for side, tokenizer in tokenizers.items():
        same = [other for other, written in tokenizers.items() if written is tokenizer]
        if side == same[0]:
            tokenizer.save(draft / ("tokenizer.json" if len(same) > 1 else f"{side}_tokenizer.json"))
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    draft.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def read_model(
    folder: str | os.PathLike[str], system: str, config_class: type[Config]
) -> tuple[Config, dict[str, Tokenizer], Weights]:
    """Read what `write_model` wrote, with its tokenizers."""
    config, weights = read_config_and_weights(folder, system, config_class)
    joint = weights.place / "tokenizer.json"
    if joint.is_file():
        tokenizer = Tokenizer.load(joint)
        return config, {"source": tokenizer, "target": tokenizer}, weights
    sides = {side: Tokenizer.load(weights.place / f"{side}_tokenizer.json") for side in ("source", "target")}
    return config, sides, weights


def read_labels(folder: str | os.PathLike[str]) -> list[str]:
    """The names of classes that `write_model` wrote."""
    path = Path(folder) / "labels.json"
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ModelError(f"{path} is a list of names; got {str(labels)[:80]}.")
    return labels


def system_of(folder: str | os.PathLike[str]) -> str:
    """Which system a model folder holds."""
    folder = Path(folder)
    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise ModelError(
            f"{folder} is not a model folder: it needs config.json and model.safetensors, which `regard train` writes."
        )
    return str(_fields(folder)["system"])


def read_config_and_weights(
    folder: str | os.PathLike[str], system: str, config_class: type[Config]
) -> tuple[Config, Weights]:
    """Read what `write_model` wrote, of a system without tokenizers."""
    folder = Path(folder)
    found = system_of(folder)
    if found != system:
        raise ModelError(f"{folder} holds {_a(found)}, not {_a(system)}.")
    try:
        tensors = load_file(folder / "model.safetensors")
    except SafetensorError as error:
        raise ModelError(f"{folder / 'model.safetensors'} is damaged: {error}.") from error
    config = from_fields(config_class, _fields(folder)["config"], str(folder / "config.json"))
    return config, Weights(tensors, folder)


def _fields(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return {"system": fields["system"], "config": fields["config"]}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be read: {error!r}.") from error


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def from_fields(config_class: type[Config], values: Mapping[str, Any], place: str) -> Config:
    """A config dataclass from plain values; an unknown key fails and suggests the nearest."""
    known = [part.name for part in dataclasses.fields(config_class)]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It takes: {', '.join(known)}."
            raise OptionError(f"{place}: {config_class.__name__} has no field {key!r}.{hint}")
    # JSON and TOML know lists only.
    tuples = {name for name, kind in get_type_hints(config_class).items() if get_origin(kind) is tuple}
    return config_class(**{key: tuple(value) if key in tuples else value for key, value in values.items()})


def _narrowed(tensors: Mapping[str, Tensor], store: str) -> dict[str, Tensor]:
    if store == "float32":
        return dict(tensors)
    narrow: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if store == "int8" and tensor.ndim == 2:
            factor = tensor.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
            narrow[name] = (tensor / factor).round().to(torch.int8)
            narrow[name + FACTOR] = factor
        elif not tensor.is_floating_point():
            narrow[name] = tensor
        else:
            narrow[name] = tensor.half()
    return narrow


def _widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: tensor.float() * tensors[name + FACTOR] if name + FACTOR in tensors else tensor.float()
        for name, tensor in tensors.items()
        if not name.endswith(FACTOR)
    }


def _first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """For each name the first name of the same storage: tied weights are stored once."""
    first: dict[tuple[int, torch.Size], str] = {}
    return {name: first.setdefault((tensor.data_ptr(), tensor.shape), name) for name, tensor in state.items()}
