"""Going on with a run: its recipe and model come from its folder, and what contradicts them is refused."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.config import differing
from regard.errors import DataError, OptionError
from regard.systems import registry
from regard.systems.folder import read_model
from regard.systems.run import Plan, base_name, check_recipe, plan_from
from regard.systems.system import System
from regard.training.checkpoint_files import step_files
from regard.training.recipes import RawRecipe, Recipe, read_raw, with_values
from regard.training.run_folder import RunFolder

Given = Mapping[str, Mapping[str, Any]]


def resumed_plan(
    folder: RunFolder,
    recipe: str | os.PathLike[str] | Recipe | None,
    overrides: Given,
    start_from: str | os.PathLike[str] | System | None,
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
    return plan_from(changed, start_from if start_from is not None else base or None, trust=True)


def _given(
    folder: RunFolder,
    stored: Recipe,
    recipe: str | os.PathLike[str] | Recipe | None,
    overrides: Given,
    start_from: Any,
) -> dict[str, dict[str, Any]]:
    """The fields that were given beside the folder."""
    if isinstance(recipe, Recipe):
        system, tables = recipe.system, {name: table for name, table in recipe.to_dict().items() if name != "system"}
        if start_from is not None:
            tables["model"] = {name: tables["model"][name] for name in recipe.given}
    else:
        given = RawRecipe(stored.system) if recipe is None else read_raw(Path(recipe))
        system, tables = given.system, with_values(given, overrides).tables
    if system != stored.system:
        raise OptionError(f"{folder.path} holds a run of the system {stored.system!r}; the recipe is of {system!r}.")
    return tables


def _check_changes(folder: RunFolder, stored: Recipe, changed: Recipe, *, progress: bool) -> None:
    """Refuse fields that would make another run of it, and report the others."""
    # Files may have been moved; their checksums are compared when they have been read.
    places = registry.entry(changed.system).experiment.file_fields
    may_change: dict[str, Iterable[str]] = {"data": places, "model": (), "train": changed.train.changeable}
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
