"""Training and evaluating by name: what `regard.train`, `regard.evaluate` and their commands do."""

import errno
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.arguments import checked
from regard.config import from_values
from regard.errors import DataError, ModelError, OptionError, TrainingError
from regard.extras import require
from regard.files import NO_ROOM, write_text
from regard.layers.layout import by_rows
from regard.systems import registry
from regard.systems.folder import refuse_to_replace
from regard.systems.plan import Named, Start, new_plan, read_recipe, resumed_plan
from regard.systems.pretrained import load
from regard.systems.report import Report
from regard.systems.system import System
from regard.training import processes
from regard.training.checkpoints import step_files
from regard.training.interruption import Interrupted, Interruption
from regard.training.processes import from_first, is_first_process, rank_zero_first
from regard.training.recipes import RawRecipe, Recipe, recipe_toml, recipe_usage
from regard.training.run_folder import RunFolder, changed_data, describe_run
from regard.training.settings import Devices, TrainSettings

if TYPE_CHECKING:
    from regard.training.experiment import Experiment, Trained


@checked
def train(
    recipe: Named | Recipe = None,
    *,
    out: str | os.PathLike[str] = "regard-run",
    data: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    start_from: Start = None,
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

    `resume` continues the run in `out`, for which nothing else is needed; or starts one where there is none. Fields
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
    require("Training", "sacrebleu")
    processes.fabric()
    from regard.training.experiment import Trained
    from regard.training.fit import fit, seed_everything

    folder = RunFolder(out)
    joint = Devices(devices) if isinstance(devices, int) else devices
    with processes.joined(joint):
        progress = progress and is_first_process()
        resumes = from_first(lambda: resume and folder.holds_run)
        if resume and not resumes and recipe is None and "data" not in overrides:
            raise DataError(
                f"{folder.path} holds no run to resume. Say what to train, or give the folder of a run: --out."
            )
        if not resumes:
            checked = recipe if isinstance(recipe, Recipe) else read_recipe(recipe, overrides)
            plan = new_plan(checked, start_from, trust=trust)
            folder.check_free(overwrite=overwrite, refuse=refuse_to_replace)
        with folder.locked():
            with rank_zero_first():
                if resumes:
                    plan = resumed_plan(folder, recipe, overrides, start_from, progress=progress)
                else:
                    # Again, since another process may have begun a run there meanwhile.
                    folder.check_free(overwrite=overwrite, refuse=refuse_to_replace)
            with _usage_added(recipe, data), _advising(folder), Interruption() as interruption:
                folder.clean()
                seed_everything(plan.recipe.train.seed)
                experiment = registry.entry(plan.recipe.system).experiment(plan.recipe, folder.path, progress=progress)
                before = from_first(folder.record) if resumes else {}
                with rank_zero_first():
                    splits = _read(experiment, before)
                    record = _record(experiment, splits, folder, before) | {"start_from": plan.base}
                with _memory_explained():
                    if plan.model is None:
                        built = from_first(lambda: experiment.build(splits))
                    else:
                        built = by_rows(plan.model.to("cpu")).train()
                        experiment.check_model(built, splits)
                with rank_zero_first():
                    task, train_batches, valid_batches = experiment.task(built, splits)
                    record = _begin(experiment, folder, built, before, record)
                metrics = fit(
                    task,
                    (train_batches, valid_batches),
                    folder,
                    score=experiment.score,
                    half_precision_on_gpu=experiment.half_precision_on_gpu,
                    progress=progress,
                    interruption=interruption,
                    devices=joint,
                    hyperparameters=_flat(plan.recipe.to_dict()),
                )
                if progress and "stopped" in metrics:
                    sys.stderr.write(f"Stopped {metrics['stopped']}.{_unfinished(plan.recipe.train, metrics)}\n")
                built.to(processes.device()).eval()
                if is_first_process():
                    metrics |= _tested(experiment, built, splits, interruption) | {"run": record}
                    try:
                        built.save(folder.model, metrics=metrics)
                    except ModelError as error:
                        raise TrainingError(str(error)) from error
                return Trained(folder.model, built, metrics, signum=interruption.signum)


@contextmanager
def _usage_added(recipe: Named | Recipe, data: Mapping[str, Any] | None) -> Iterator[None]:
    """Add how a packaged recipe is used to errors of data that were not given."""
    try:
        yield
    except (DataError, OptionError) as error:
        named = recipe.path if isinstance(recipe, RawRecipe) else recipe
        usage = "" if data or named is None or isinstance(named, Recipe) else recipe_usage(named)
        if not usage:
            raise
        raise type(error)(f"{error} The recipe is used like this: {usage}") from error


@contextmanager
def _advising(folder: RunFolder) -> Iterator[None]:
    """Add how to resume to a training that was stopped at once, or that failed."""
    try:
        yield
    except Interrupted as stop:
        sys.stderr.write(f"Stopped at once. {_resume_hint(folder)}\n")
        if stop.signum == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + stop.signum) from None
    except TrainingError as error:
        raise TrainingError(f"{error} {_resume_hint(folder)}") from error
    except OSError as error:
        if error.errno not in (*NO_ROOM, errno.EROFS):
            raise
        message = f"{folder.path} cannot be written to: {error.strerror}. {_resume_hint(folder)}"
        raise TrainingError(message) from error
    except RuntimeError as error:
        if not processes.is_loss_of_process(error):
            raise
        raise TrainingError(f"Another process of the training has ended. {_resume_hint(folder)}") from error


def _unfinished(settings: TrainSettings, metrics: Mapping[str, Any]) -> str:
    """How to end the schedule in the time that there is, where time ended the training."""
    if settings.schedule_by == "clock" or not metrics["stopped"].startswith("by train.minutes"):
        return ""
    return " Its schedule had not ended: choose fewer --train.epochs, or --train.schedule_by clock."


def _resume_hint(folder: RunFolder) -> str:
    kept = step_files(folder.checkpoints)
    if not kept:
        return "No checkpoint had been written yet."
    return f"The last good checkpoint is {kept[0]}. To continue: {folder.resume_command}"


@contextmanager
def _memory_explained() -> Iterator[None]:
    """Explain what torch raises where no memory could hold a model."""
    try:
        yield
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        is_size = isinstance(error, OverflowError | MemoryError)
        if not is_size and not re.search("can't allocate memory|out of memory|verflow", str(error)):
            raise
        raise OptionError(
            "The model does not fit into the memory of this machine. Choose smaller sizes in [model], such as hidden."
        ) from error


def _read(experiment: "Experiment[Any]", before: Mapping[str, Any]) -> Any:
    try:
        return experiment.read_data()
    except DataError as error:
        started = before.get("directory", str(Path.cwd()))
        if started == str(Path.cwd()):
            raise
        raise DataError(f"{error} The run was started in {started}: resume it there.") from error


def _record(experiment: "Experiment[Any]", splits: Any, folder: RunFolder, before: Mapping[str, Any]) -> dict[str, Any]:
    """What makes this run; data that has changed since it began is refused."""
    checksums = experiment.checksums(splits) if is_first_process() else {}
    record = describe_run(seed=experiment.recipe.train.seed, data=checksums)
    if before and is_first_process():
        if changes := changed_data(before, record):
            raise DataError(
                f"{folder.path} cannot continue, because its data has changed: {'; '.join(changes)}. Restore the data, "
                "or start again with --overwrite."
            )
        experiment.notes = dict(before["notes"])
    return record


def _begin(
    experiment: "Experiment[Any]", folder: RunFolder, model: System, before: dict[str, Any], record: dict[str, Any]
) -> dict[str, Any]:
    """Write what a resumed run needs to know, and return the record of how the run began."""
    if not is_first_process():
        return record
    resumed = before.pop("resumed", [])
    if before:
        resumed.append(
            {name: record[name] for name in ("command", "directory", "versions", "device", "threads", "processes")}
        )
        record = {name: value for name, value in before.items() if name != "notes"}
    else:
        folder.begin()
    folder.write_record(record | {"notes": experiment.notes} | ({"resumed": resumed} if resumed else {}))
    if not step_files(folder.checkpoints):
        model.save_config(folder.checkpoints)
    write_text(folder.recipe, recipe_toml(experiment.recipe))
    return record


def _tested(experiment: "Experiment[Any]", model: System, splits: Any, interruption: Interruption) -> dict[str, Any]:
    """The metrics of the model; none where training was interrupted, or testing is."""
    if interruption.signum:
        return {}
    try:
        with torch.inference_mode():
            return experiment.test(model, splits)
    except Interrupted:
        return {}


def _flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recipe as {"model.hidden": 256, ...}."""
    flat: dict[str, Any] = {}
    for table, values in tables.items():
        if isinstance(values, Mapping):
            flat |= {
                f"{table}.{name}": str(value) if isinstance(value, tuple) else value for name, value in values.items()
            }
        else:
            flat[table] = values
    return flat


@checked
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
    require("Evaluation", "sacrebleu")
    if isinstance(model, System) and device is not None:
        raise OptionError(f"This model is already on the device {model.device}: move it there yourself, with model.to.")
    loaded: System = model if isinstance(model, System) else load(model, device=device, trust=trust)
    found = registry.entry(loaded.kind)
    name = type(loaded).__name__ if isinstance(model, System) else str(model)
    asked = from_values(found.test_set, options, f"evaluate {name}")
    return found.evaluate(loaded, asked, name=name)
