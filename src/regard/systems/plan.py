"""What a training trains: a new model of a recipe, a trained one that it starts from, or that of a run it resumes."""

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import differing, from_values
from regard.errors import DataError, OptionError
from regard.systems import registry
from regard.systems.folder import NO_CARD, read_model
from regard.systems.pretrained import load
from regard.systems.system import System
from regard.training.checkpoints import step_files
from regard.training.recipes import RawRecipe, Recipe, read_raw, with_values
from regard.training.run_folder import RunFolder

Given = Mapping[str, Mapping[str, Any]]
Named = str | os.PathLike[str] | RawRecipe | None
Start = str | os.PathLike[str] | System | None


def read_recipe(name: Named = None, overrides: Given | None = None) -> Recipe:
    """Read and check a recipe, a TOML file or a packaged recipe by its name; `overrides` replaces fields of its tables.

    overrides = {"train": {"epochs": 5}} sets the field `epochs` of the table [train].
    """
    return check_recipe(with_values(_raw(name), overrides or {}))


def _raw(name: Named) -> RawRecipe:
    return name if isinstance(name, RawRecipe) else read_raw(None if name is None else Path(name))


def check_recipe(raw: RawRecipe) -> Recipe:
    """Check what a recipe says against the tables of its system."""
    tables = registry.entry(raw.system, raw.place).tables
    checked = {
        table: from_values(config, raw.tables[table], f"{raw.place} [{table}]") for table, config in tables.items()
    }
    return Recipe(raw.system, given=frozenset(raw.tables["model"]), **checked)


@dataclass(frozen=True)
class Plan:
    """What is to be trained."""

    recipe: Recipe
    model: System | None = None
    """The model to train; None for a new one."""
    base: str = ""
    """The trained model that it started from."""


def new_plan(recipe: Recipe, start_from: Start, *, trust: bool) -> Plan:
    """What a recipe trains if it starts from a trained model, or from none."""
    if start_from is None:
        return Plan(recipe)
    loaded = start_from if isinstance(start_from, System) else load(start_from, device="cpu", trust=trust)
    base = base_name(start_from)
    adapted, model = _adapted(loaded, recipe)
    # The scores of the model to start from are not those of what it becomes.
    model.card = _card_after(loaded.card, "another model" if isinstance(start_from, System) else base)
    model.metrics = {}
    return Plan(adapted, model, base=base)


def _card_after(card: str, base: str) -> str:
    """The card of a model that was trained from one with this card: what that one learned from remains true."""
    if not card or NO_CARD in card:
        return ""
    return (
        f"# Trained from {base}\n\nThis model was trained from {base} on other data and has no card of its own yet.\n\n"
        f"What follows is the card of {base}. Its scores are not those of this model.\n\n{card}"
    )


def base_name(model: str | os.PathLike[str] | System) -> str:
    """How a run records the model that it starts from: its name or folder, or a checksum of its parameters."""
    if not isinstance(model, System):
        return str(model)
    total = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        # As bytes, since NumPy has no bfloat16.
        total.update(name.encode() + tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes())
    return f"{type(model).__name__} with SHA-256 {total.hexdigest()}"


def _adapted(base: System, recipe: Recipe) -> tuple[Recipe, System]:
    """The recipe with the config of a trained model and those [model] fields that were set, and a model of that config.

    A field that changes the parameters, such as a size, is refused; one that does not, such as a dropout, is used.
    """
    if base.kind != recipe.system:
        raise OptionError(
            f"This recipe trains a model of the system {recipe.system!r}; the model to start from is of {base.kind!r}."
        )
    values = base.config.to_dict() | {name: getattr(recipe.model, name) for name in recipe.given}
    config = from_values(type(base.config), values, "[model]")
    adapted = Recipe(recipe.system, recipe.data, config, recipe.train, recipe.given)
    changed = {name: value for name, value in values.items() if value != getattr(base.config, name)}
    if not changed:
        return adapted, base
    model = type(base)(config, **{name: getattr(base, name) for name in base.assets})
    own, state = model.state_dict(), base.state_dict()
    fits = own.keys() == state.keys() and all(own[name].shape == state[name].shape for name in own)
    if fits:
        model.load_state_dict(state)
        # Parameters that the new model ties are one tensor, which cannot hold two that differ.
        fits = all(tensor.equal(state[name].to(tensor.device)) for name, tensor in model.state_dict().items())
    if not fits:
        listed = ", ".join(f"{name} {getattr(base.config, name)!r} -> {value!r}" for name, value in changed.items())
        raise OptionError(
            f"The parameters of the model to start from do not fit the changed [model] fields: {listed}. Remove these "
            "fields, or train a new model without --from."
        )
    return adapted, model


def resumed_plan(
    folder: RunFolder,
    recipe: Named | Recipe,
    overrides: Given,
    start_from: Start,
    *,
    progress: bool,
) -> Plan:
    """The recipe of the run in a folder, with the fields that a resumed run may change, and its model.

    The model has the config and assets of the run; its parameters are those of the checkpoint, which are loaded later.
    """
    if not folder.recipe.is_file():
        raise DataError(f"{folder.path} has checkpoints, but no {folder.recipe.name}: restore it, or use --overwrite.")
    raw = read_raw(folder.recipe)
    stored = check_recipe(raw)
    changed = check_recipe(with_values(raw, _given(folder, stored, recipe, overrides, start_from)))
    _check_changes(folder, stored, changed, progress=progress)
    base = str(folder.record().get("start_from", ""))
    if start_from is not None and base_name(start_from) != base:
        before = f"from {base}" if base else "without a model to start from"
        raise OptionError(f"{folder.path} was started {before}, not from {base_name(start_from)}. Leave it out.")
    if kept := step_files(folder.checkpoints):
        system = registry.entry(stored.system).system
        saved = read_model(kept[0], system.kind, system.Config, system.assets, trust=True)
        return Plan(changed, system(saved.config, **saved.assets), base)
    # It was ended before it began: the model is built, or loaded, once more.
    return new_plan(changed, start_from if start_from is not None else base or None, trust=True)


def _given(
    folder: RunFolder,
    stored: Recipe,
    recipe: Named | Recipe,
    overrides: Given,
    start_from: Any,
) -> dict[str, dict[str, Any]]:
    """The fields that were given beside the folder."""
    if isinstance(recipe, Recipe):
        system, tables = recipe.system, {name: table for name, table in recipe.to_dict().items() if name != "system"}
        if start_from is not None:
            tables["model"] = {name: tables["model"][name] for name in recipe.given}
    else:
        given = RawRecipe(stored.system) if recipe is None else _raw(recipe)
        system, tables = given.system, with_values(given, overrides).tables
    if system != stored.system:
        raise OptionError(f"{folder.path} holds a run of the system {stored.system!r}; the recipe is of {system!r}.")
    return tables


def _check_changes(folder: RunFolder, stored: Recipe, changed: Recipe, *, progress: bool) -> None:
    """Refuse fields that would make another run of it, and report the others."""
    # Files may have been moved; their checksums are compared when they have been read.
    files = registry.entry(changed.system).experiment.file_fields
    may_change: dict[str, Iterable[str]] = {"data": files, "model": (), "train": changed.train.changeable}
    refused: list[str] = []
    reported: list[str] = []
    for table, allowed in may_change.items():
        for name, (old, new) in differing(getattr(stored, table), getattr(changed, table)).items():
            (reported if name in allowed else refused).append(f"{table}.{name} {old!r} -> {new!r}")
    if refused:
        raise OptionError(
            f"{folder.path} cannot continue with other settings: {', '.join(refused)}. Leave them out, or start "
            f"another run from its model with --from {folder.path} and another --out. A resumed run may change "
            f"{', '.join(f'train.{name}' for name in sorted(changed.train.changeable))}."
        )
    if reported and progress:
        sys.stderr.write(f"Resuming with {', '.join(reported)}.\n")
