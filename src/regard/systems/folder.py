"""A saved model is a folder of plain files: config.json, model.safetensors, assets, metrics.json, MODEL_CARD.md.

Nothing in it is ever unpickled. A folder is written under a temporary name and then renamed, and it replaces only a
folder that regard wrote.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard import __version__
from regard.config import Checked, custom_parts, from_values, nearest_hint
from regard.errors import DataError, ModelError, OptionError, RegardError, RegardWarning, TrainingError
from regard.files import checksum, replacing_folder, write_text
from regard.systems.pretrained import PRETRAINED

if TYPE_CHECKING:
    import torch

    from regard.systems.parameters import Store

CONFIG, PARAMETERS, METRICS, CARD = "config.json", "model.safetensors", "metrics.json", "MODEL_CARD.md"
EXPORTED = "export"
"""The table in config.json that an exported model has in place of parameters: its graphs."""
NO_CARD = "This model has no card yet."


class Labels(tuple[str, ...]):
    """The names of classes, in the order of their numbers: an asset, stored as a JSON list."""

    __slots__ = ()
    min_count: ClassVar[int] = 1
    """How many there must be."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the names."""
        write_text(path, json.dumps(list(self), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Labels":
        """Read the names."""
        names = _read_json(Path(path))
        if (
            not isinstance(names, list)
            or len(names) < cls.min_count
            or not all(isinstance(name, str) for name in names)
        ):
            raise ModelError(f"{path} must be a list of the names of classes; got {str(names)[:80]}.")
        return cls(names)


@dataclass(frozen=True)
class Saved:
    """A model folder, whose config and assets have been read; the parameters are read when a model is filled."""

    path: Path
    """The folder, or a checkpoint in the folder of its run."""
    config: Any
    assets: dict[str, Any]
    metrics: dict[str, Any]
    card: str

    @contextmanager
    def building(self) -> Iterator[None]:
        """Refuse a config in this block that asks for a model far larger than the parameters."""
        if self.path.is_file():
            yield
            return
        from regard.systems.parameters import no_larger_than, stored_shapes

        with no_larger_than(list(stored_shapes(self.path / PARAMETERS).values()), str(self.path / CONFIG)):
            yield

    def fill(self, model: "torch.nn.Module") -> None:
        """Copy the parameters into a model, in the precision that the model has."""
        from regard.systems.parameters import fill, read_parameters

        if self.path.is_dir():
            fill(model, read_parameters(self.path / PARAMETERS), str(self.path))
            return
        from regard.training.checkpoints import read_checkpoint

        try:
            state = read_checkpoint(self.path)["state_dict"]
        except TrainingError as error:
            raise ModelError(str(error)) from error
        own = {name.removeprefix("model."): tensor for name, tensor in state.items() if name.startswith("model.")}
        fill(model, own, str(self.path))


def find_model(name: str | os.PathLike[str]) -> Path:
    """Where a model is: a shipped one by its name, a saved one by its folder, a run by its folder, or a checkpoint.

    Of a run that has not been finished, the best checkpoint is taken, or else the newest.
    """
    try:
        path = Path(name)
        path.exists()
    except (TypeError, OSError) as error:  # nothing that could be a path, or a name longer than any file has
        raise ModelError(
            f"A model is named by a text or a path, such as en-fr or my-run/model; got {name!r:.80}."
        ) from error
    if path.is_file() and path.suffix == ".ckpt":
        return path
    if path.is_dir():
        return path if (path / CONFIG).is_file() else _model_of_run(path)
    if (PRETRAINED / name / CONFIG).is_file():
        return PRETRAINED / name
    names = sorted(path.parent.name for path in PRETRAINED.glob(f"*/{CONFIG}"))
    hint = nearest_hint(name, names) or f" Shipped models: {', '.join(names) or 'none'}."
    raise ModelError(f"There is no folder and no shipped model named {str(name)!r}.{hint}")


def _model_of_run(folder: Path) -> Path:
    if (folder / "model" / CONFIG).is_file():
        return folder / "model"
    from regard.training.checkpoints import BEST, step_files

    checkpoints = folder / "checkpoints"
    found = [path for path in (checkpoints / BEST, *step_files(checkpoints)) if path.is_file()]
    if not found:
        return folder
    warnings.warn(f"{folder} has no finished model; {found[0].name} is used.", RegardWarning, stacklevel=3)
    return found[0]


def exported_table(path: Path) -> dict[str, Any] | None:
    """What the config.json of a model that `regard export` wrote says of its graphs; None for any other model."""
    if not (path / CONFIG).is_file() or not isinstance(content := _read_json(path / CONFIG), dict):
        return None
    table = content.get(EXPORTED)
    if table is not None and not isinstance(table, dict):
        raise ModelError(f"{path / CONFIG} must describe its graphs in a table; got {str(table)[:80]!r}.")
    return table


def kind_of(path: Path) -> str:
    """The kind of system that a model folder or a checkpoint holds."""
    folder = _folder(path)
    if exported_table(folder) is not None:
        return str(_read_config(folder)["system"])
    if path.is_file() and not (folder / CONFIG).is_file():
        raise ModelError(f"{path} needs {folder / CONFIG} beside it, which `regard train` writes.")
    if path.is_dir() and not ((folder / CONFIG).is_file() and (folder / PARAMETERS).is_file()):
        raise ModelError(
            f"{folder} is not a model folder: it needs {CONFIG} and {PARAMETERS}, which `regard train` writes."
        )
    return str(_read_config(folder)["system"])


def read_model(
    path: Path, kind: str, config_class: type[Checked], assets: Mapping[str, type[Any]], *, trust: bool
) -> Saved:
    """Read what `write_model` or `regard export` wrote, and check that it is of the given kind, whole, and known."""
    found, folder = kind_of(path), _folder(path)
    if found != kind:
        raise ModelError(f"{path} holds {_a(found)} model, not {_a(kind)} model.")
    stored = _read_config(folder)
    with _noticing_newer(folder, stored["version"]):
        config = from_values(config_class, stored["config"], str(folder / CONFIG))
        files = _asset_files(folder, stored["assets"], assets)
        check_sums(folder, stored["sha256"])
        custom = custom_parts(config)
        for name, asset_class in assets.items():
            if hasattr(asset_class, "custom_parts"):
                custom |= asset_class.custom_parts(files[name])
        if custom and not trust:
            named = ", ".join(f"{name} = {path!r}" for name, path in custom.items())
            raise OptionError(
                f"{folder} uses {named}: loading it runs that code. Pass trust=True (--trust) if you trust it."
            )
        loaded = _read_assets(files, assets)
    metrics = _read_json(folder / METRICS) if (folder / METRICS).is_file() else {}
    if not isinstance(metrics, dict):
        raise ModelError(f"{folder / METRICS} must be a table of scores; got {str(metrics)[:80]}.")
    card = _read_text(folder / CARD) if (folder / CARD).is_file() else ""
    return Saved(path, config, loaded, metrics, card)


def write_model(
    folder: str | os.PathLike[str],
    model: "torch.nn.Module",
    *,
    kind: str,
    config: Checked,
    assets: Mapping[str, Any],
    metrics: Mapping[str, Any],
    card: str,
    store: "Store",
) -> None:
    """Write a model folder; as int8, each row of a matrix is stored as integers from -127 to 127 and one scale."""
    from regard.systems.parameters import write_parameters

    with replacing_folder(folder, refuse=refuse_to_replace) as draft:
        write_parameters(draft / PARAMETERS, model, store)
        write_config(draft, kind=kind, config=config, assets=assets)
        write_text(draft / METRICS, json.dumps(dict(metrics), indent=2) + "\n")
        write_text(draft / CARD, card or f"# {_a(kind).capitalize()} model\n\n{NO_CARD}\n")


def write_config(folder: Path, *, kind: str, config: Checked, assets: Mapping[str, Any]) -> None:
    """Write the assets of a model, and config.json with the checksums of all that it consists of."""
    files: dict[str, str] = {}
    for name, asset in assets.items():
        same = [other for other, written in assets.items() if written is asset]
        files[name] = f"{same[0] if len(same) == 1 else _shared_name(same)}.json"
        if name == same[0]:
            asset.save(folder / files[name])
    parts = sorted({*files.values(), *([PARAMETERS] if (folder / PARAMETERS).is_file() else [])})
    stored = {
        "system": kind,
        "version": __version__,
        "config": config.to_dict(),
        "assets": files,
        "sha256": {name: checksum(folder / name) for name in parts},
    }
    write_text(folder / CONFIG, json.dumps(stored, indent=2) + "\n")


def _folder(path: Path) -> Path:
    """The folder with the config of a model folder, or of a checkpoint."""
    return path.parent if path.is_file() else path


@contextmanager
def _noticing_newer(folder: Path, version: str) -> Iterator[None]:
    """Say that a model was written by a newer version of regard, most of all where it cannot be read."""
    first, second = (tuple(map(int, re.findall(r"\d+", each)[:3])) for each in (version, __version__))
    if first <= second:
        yield
        return
    newer = f"{folder} was written by regard {version}, and this is {__version__}: upgrade regard if it does not work."
    try:
        yield
    except RegardError as error:
        raise type(error)(f"{error} {newer}") from error
    warnings.warn(newer, RegardWarning, stacklevel=6)


def check_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Refuse a folder that lacks one of these files, or in which one of them has changed."""
    for name, stated in sums.items():
        if not (folder / name).is_file():
            raise ModelError(f"{folder} lacks {name}, which its {CONFIG} names.")
        if checksum(folder / name) != stated:
            raise ModelError(f"{folder / name} is damaged: it has another SHA-256 than {CONFIG} states.")


def _asset_files(folder: Path, files: Mapping[str, Any], assets: Mapping[str, type[Any]]) -> dict[str, Path]:
    for name in assets:
        if not _is_file_name(files.get(name)):
            raise ModelError(f"{folder / CONFIG} names no file for {name!r}: its assets are {files!s:.200}.")
    return {name: folder / files[name] for name in assets}


def _read_assets(files: Mapping[str, Path], assets: Mapping[str, type[Any]]) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for name, asset_class in assets.items():
        same = next((loaded[other] for other in loaded if files[other] == files[name]), None)
        try:
            loaded[name] = asset_class.load(files[name]) if same is None else same
        except DataError as error:
            raise ModelError(str(error)) from error
    return loaded


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
    wrong = f"{folder / CONFIG} is not the config of a regard model"
    try:
        parts = {name: stored[name] for name in ("system", "config")}
        parts |= {name: stored.get(name, {}) for name in ("assets", "sha256")}
        parts["version"] = stored.get("version", __version__)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{wrong}: {error!r}.") from error
    if not isinstance(parts["system"], str) or not parts["system"]:
        raise ModelError(f"{wrong}: system must be a name such as translate; got {str(parts['system'])[:80]!r}.")
    if not all(isinstance(parts[name], dict) for name in ("config", "assets", "sha256")):
        raise ModelError(f"{wrong}: config, assets and sha256 must be tables.")
    if not isinstance(parts["version"], str) or not re.fullmatch(r"\d{1,9}(\.\w{1,20})*", parts["version"]):
        raise ModelError(f"{wrong}: version must be such as {__version__}; got {str(parts['version'])[:80]!r}.")
    if not all(_is_file_name(name) for name in parts["sha256"]):
        raise ModelError(f"{wrong}: sha256 must name files of the folder; got {str(parts['sha256'])[:80]}.")
    return parts


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error


def _is_file_name(name: Any) -> bool:
    """Whether this is the name of a file directly in a folder, rather than a path or nothing."""
    return isinstance(name, str) and bool(re.fullmatch(r"\w[\w.-]{0,200}", name))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
