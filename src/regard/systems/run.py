"""Training and evaluating by name: what `regard.train`, `regard.evaluate` and their commands do."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import from_values
from regard.errors import DataError, OptionError
from regard.systems.families import family, resolve
from regard.systems.folder import refuse_to_replace
from regard.systems.pretrained import load
from regard.systems.report import Report
from regard.systems.system import System
from regard.training.recipes import RawRecipe, Recipe, read_raw, recipe_usage, with_values

if TYPE_CHECKING:
    from regard.training.experiment import Trained


def read_recipe(
    name: str | os.PathLike[str] | None = None, overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> Recipe:
    """Read and check a recipe, a TOML file or a packaged recipe by its name; `overrides` replaces fields of its tables.

    overrides = {"train": {"epochs": 5}} sets the field `epochs` of the table [train].
    """
    raw = read_raw(None if name is None else Path(name))
    return check_recipe(with_values(raw, overrides or {}))


def check_recipe(raw: RawRecipe) -> Recipe:
    """Check what a recipe says against the tables of its system."""
    found = family(raw.system, raw.place)
    experiment = found.load_experiment()
    tables = {"data": experiment.Data, "model": found.load_system().Config, "train": experiment.Train}
    checked = {
        table: from_values(config, raw.tables[table], f"{raw.place} [{table}]") for table, config in tables.items()
    }
    return Recipe(raw.system, given=frozenset(raw.tables["model"]), **checked)


def train(
    recipe: str | os.PathLike[str] | Recipe | None = None,
    *,
    out: str | os.PathLike[str] = "regard-run",
    data: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    start_from: str | os.PathLike[str] | System | None = None,
    resume: bool = False,
    progress: bool = True,
) -> "Trained[Any]":
    """Train what a recipe says into the folder `out`: the model, logs/, checkpoints/ and recipe.toml.

    `recipe` is a TOML file, the name of a packaged recipe, or a Recipe; without one, a translator is trained. `data`,
    `model` and `train` replace fields of its tables: train("babel-en-fr", train={"epochs": 5}). `start_from` continues
    from a trained model, given by name, folder or object, with its tokenizers or classes. `resume` continues from the
    last checkpoint in `out`. Ctrl-C ends the training early and saves the model. A run that was interrupted and resumed
    gives, on a CPU, the same parameters as one without the interruption; not so with BPE dropout, whose draws cannot be
    repeated, or with a time limit.
    """
    from regard.training.run import run  # Lightning takes seconds to import, and evaluating needs none of it

    overrides = {
        name: values for name, values in (("data", data), ("model", model), ("train", train)) if values is not None
    }
    if isinstance(recipe, Recipe):
        if overrides:
            raise OptionError("A Recipe is complete; replace its fields with dataclasses.replace instead of keywords.")
        checked = recipe
    else:
        checked = read_recipe(recipe, overrides)
    base = None
    if start_from is not None:
        loaded = start_from if isinstance(start_from, System) else load(start_from, device="cpu")
        checked, base = _adapted(loaded, checked)
    experiment = family(checked.system).load_experiment()(checked, Path(out), progress=progress)
    try:
        return run(experiment, start_from=base, resume=resume, refuse=refuse_to_replace)
    except (DataError, OptionError) as error:
        usage = "" if data or recipe is None or isinstance(recipe, Recipe) else recipe_usage(recipe)
        if not usage:
            raise
        raise type(error)(f"{error} The recipe is used like this: {usage}") from error


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


def evaluate(model: str | os.PathLike[str] | System, *, trust: bool = False, **options: Any) -> Report:
    """Score a model, given by name, folder or object, on a test set.

    The options depend on the system: source and reference for a translator, captions and images for a captioner, folder
    for an image classifier. `regard evaluate --help` lists them.
    """
    loaded: System = model if isinstance(model, System) else load(model, trust=trust)
    found = family(loaded.kind)
    name = type(loaded).__name__ if isinstance(model, System) else str(model)
    checked = from_values(found.test_set, options, f"evaluate {name}")
    report: Report = resolve(found.evaluate)(loaded, checked, name=name)
    return report
