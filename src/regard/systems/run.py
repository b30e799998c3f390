"""Training and evaluating by name: what `regard.train`, `regard.evaluate` and their commands do."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.config import from_values
from regard.errors import DataError, OptionError
from regard.systems import registry
from regard.systems.folder import NO_CARD, refuse_to_replace
from regard.systems.pretrained import load
from regard.systems.report import Report
from regard.systems.system import System
from regard.training.recipes import RawRecipe, Recipe, read_raw, recipe_usage, with_values
from regard.training.settings import Devices

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
    tables = registry.entry(raw.system, raw.place).tables
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
    overwrite: bool = False,
    progress: bool = True,
    devices: Devices | int = 1,
    trust: bool = False,
) -> "Trained[Any]":
    """Train what a recipe says into the folder `out`: the model, logs/, checkpoints/, recipe.toml and run.json.

    `recipe` is a TOML file, the name of a packaged recipe, or a Recipe; without one, a translator is trained. `data`,
    `model` and `train` replace fields of its tables: train("babel-en-fr", train={"epochs": 5}). `start_from` continues
    from a trained model, given by name, folder or object, with its tokenizers or classes; `trust` allows one that runs
    code of its own (`package.module:Name`).

    `resume` goes on with the run in `out`, for which nothing else is needed; or starts one where there is none. Fields
    that are given must be those of the run, except for some of [train], such as `epochs`. A folder that holds a run is
    replaced only with `overwrite`. Ctrl-C or SIGTERM ends the training early and saves the model. A run that was
    interrupted or killed, and resumed, gives, on a CPU, the same parameters as one without the interruption; not so
    with a time limit.

    `devices` says how many GPUs, or processes on a CPU, train together (see `Devices`). They divide each batch of the
    recipe, so that their number changes how long a training takes, and little else. A script that asks for several is
    started with torchrun.
    """
    overrides = {
        name: values for name, values in (("data", data), ("model", model), ("train", train)) if values is not None
    }
    if isinstance(recipe, Recipe) and overrides:
        raise OptionError("A Recipe is complete; replace its fields with dataclasses.replace instead of keywords.")
    if resume and overwrite:
        raise OptionError("Give resume to continue the run in the folder, or overwrite to replace it; not both.")
    from regard.systems.resume import resumed_plan
    from regard.training.processes import first_process_first, from_first, is_first_process, joined
    from regard.training.run import run  # Lightning takes seconds to import, and evaluating needs none of it
    from regard.training.run_folder import RunFolder

    folder = RunFolder(out)
    joint = Devices(devices) if isinstance(devices, int) else devices
    with joined(joint):
        progress = progress and is_first_process()
        goes_on = from_first(lambda: resume and folder.holds_run)
        if resume and not goes_on and recipe is None and "data" not in overrides:
            raise DataError(
                f"{folder.path} holds no run to resume. Say what to train, or give the folder of a run: --out."
            )
        if not goes_on:
            plan = _new_plan(recipe, overrides, start_from, trust=trust)
            folder.check_free(overwrite=overwrite, refuse=refuse_to_replace)
        with folder.locked():
            with first_process_first():
                if goes_on:
                    plan = resumed_plan(folder, recipe, overrides, start_from, progress=progress)
                else:
                    folder.check_free(overwrite=overwrite, refuse=refuse_to_replace)
            experiment = registry.entry(plan.recipe.system).experiment(plan.recipe, folder.path, progress=progress)
            with _explaining(recipe, data):
                return run(experiment, folder, start_from=plan.model, base=plan.base, resume=goes_on, devices=joint)


@contextmanager
def _explaining(recipe: str | os.PathLike[str] | Recipe | None, data: Mapping[str, Any] | None) -> Iterator[None]:
    """Add how a packaged recipe is used to errors of data that were not given."""
    try:
        yield
    except (DataError, OptionError) as error:
        usage = "" if data or recipe is None or isinstance(recipe, Recipe) else recipe_usage(recipe)
        if not usage:
            raise
        raise type(error)(f"{error} The recipe is used like this: {usage}") from error


@dataclass(frozen=True)
class Plan:
    """What is to be trained."""

    recipe: Recipe
    model: System | None = None
    """The model to train; None for a new one."""
    base: str = ""
    """The trained model that it started from."""


def _new_plan(
    recipe: str | os.PathLike[str] | Recipe | None,
    overrides: Mapping[str, Mapping[str, Any]],
    start_from: str | os.PathLike[str] | System | None,
    *,
    trust: bool,
) -> Plan:
    checked = recipe if isinstance(recipe, Recipe) else read_recipe(recipe, overrides)
    return plan_from(checked, start_from, trust=trust)


def plan_from(recipe: Recipe, start_from: str | os.PathLike[str] | System | None, *, trust: bool) -> Plan:
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
    import torch

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


def evaluate(
    model: str | os.PathLike[str] | System,
    *,
    device: str | torch.device | None = None,
    trust: bool = False,
    **options: Any,
) -> Report:
    """Score a model, given by name, folder or object, on a test set.

    The options depend on the system: source and reference for a translator, captions and images for a captioner, folder
    for an image classifier. `regard evaluate --help` lists them. `device` and `trust` are those of `load`; a model that
    is already loaded is evaluated where it is.
    """
    if isinstance(model, System) and device is not None:
        raise OptionError(f"This model is already on the device {model.device}: move it there yourself, with model.to.")
    loaded: System = model if isinstance(model, System) else load(model, device=device, trust=trust)
    found = registry.entry(loaded.kind)
    name = type(loaded).__name__ if isinstance(model, System) else str(model)
    checked = from_values(found.test_set, options, f"evaluate {name}")
    return found.evaluate(loaded, checked, name=name)
