"""The engine: read the data, build the model, fit it, test it, save it. It knows no system."""

import errno
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from regard.errors import DataError, ModelError, OptionError, TrainingError
from regard.files import write_text
from regard.layers.layout import by_rows
from regard.training import processes
from regard.training.checkpoint_files import step_files
from regard.training.experiment import Experiment, Trained
from regard.training.fit import fit, prepare
from regard.training.interruption import Interrupted, Interruption
from regard.training.processes import first_process_first, from_first, is_first_process
from regard.training.recipes import recipe_toml
from regard.training.run_folder import RunFolder, changed_data, describe_run
from regard.training.settings import Devices

Model = TypeVar("Model", bound=nn.Module)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""The errors of a disk that is full, of a quota, of a limit, and of a disk that can only be read."""


def run(
    experiment: Experiment[Model],
    folder: RunFolder,
    *,
    start_from: Model | None = None,
    base: str = "",
    resume: bool = False,
    devices: Devices | None = None,
) -> Trained[Model]:
    """Run an experiment into its folder, which is locked: the model, logs/, checkpoints/, recipe.toml and run.json.

    With `resume`, the run in the folder goes on; otherwise a new one replaces it. `start_from` is the model to train
    instead of a new one, and `base` says where it comes from. `devices` are those of all processes that train together,
    which have joined; only the first of them writes, and tests the model. Ctrl-C and SIGTERM end the training early and
    save the model; a second one ends everything at once, as KeyboardInterrupt or SystemExit.
    """
    with Interruption() as interruption:
        try:
            return _run(experiment, folder, start_from, base, devices or Devices(), interruption, resume=resume)
        except Interrupted as stop:
            sys.stderr.write(f"Stopped at once. {_how_to_go_on(folder)}\n")
            if stop.signum == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(128 + stop.signum) from None
        except TrainingError as error:
            raise TrainingError(f"{error} {_how_to_go_on(folder)}") from error
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            message = f"{folder.path} cannot be written to: {error.strerror}. {_how_to_go_on(folder)}"
            raise TrainingError(message) from error
        except RuntimeError as error:
            if not processes.is_loss_of_process(error):
                raise
            raise TrainingError(f"Another process of the training has ended. {_how_to_go_on(folder)}") from error


def _run(
    experiment: Experiment[Model],
    folder: RunFolder,
    start_from: Model | None,
    base: str,
    devices: Devices,
    interruption: Interruption,
    *,
    resume: bool,
) -> Trained[Model]:
    folder.clean()
    prepare(experiment.recipe.train)
    before = from_first(folder.record) if resume else {}
    with first_process_first():
        splits = _read(experiment, before)
        checksums = experiment.checksums(splits) if is_first_process() else {}
        record = describe_run(seed=experiment.recipe.train.seed, data=checksums) | {"start_from": base}
        if before and is_first_process():
            _check_data(folder, before, record)
            experiment.notes = dict(before["notes"])
    if start_from is None:
        with _explaining_sizes():
            model = from_first(lambda: experiment.build(splits))
    else:
        model = by_rows(start_from.to("cpu")).train()
        experiment.check_model(model, splits)
    with first_process_first():
        task, *loaders = experiment.task(model, splits)
        record = _remember(experiment, folder, model, before, record)
    fitted: dict[str, Any] = fit(
        task,
        (loaders[0], loaders[1]),
        folder,
        score=experiment.score,
        half_precision_on_gpu=experiment.half_precision_on_gpu,
        progress=experiment.progress,
        interruption=interruption,
        devices=devices,
        hyperparameters=_flat(experiment.recipe.to_dict()),
    )
    if experiment.progress and "stopped" in fitted:
        sys.stderr.write(f"Stopped {fitted['stopped']}.\n")
    model.to(processes.device()).eval()
    if not is_first_process():
        return Trained(folder.model, model, fitted, signum=interruption.signum)
    metrics = fitted | _tested(experiment, model, splits, interruption) | {"run": record}
    saved: Any = model
    try:
        saved.save(folder.model, metrics=metrics)
    except ModelError as error:
        raise TrainingError(str(error)) from error
    return Trained(folder.model, model, metrics, signum=interruption.signum)


@contextmanager
def _explaining_sizes() -> Iterator[None]:
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


def _read(experiment: Experiment[Any], before: dict[str, Any]) -> Any:
    try:
        return experiment.read()
    except DataError as error:
        started = before.get("directory", str(Path.cwd()))
        if started == str(Path.cwd()):
            raise
        raise DataError(f"{error} The run was started in {started}: resume it there.") from error


def _check_data(folder: RunFolder, before: dict[str, Any], record: dict[str, Any]) -> None:
    if changes := changed_data(before, record):
        raise DataError(
            f"{folder.path} cannot continue, because its data has changed: {'; '.join(changes)}. Restore the data, or "
            "start again with --overwrite."
        )


def _remember(
    experiment: Experiment[Any], folder: RunFolder, model: Any, before: dict[str, Any], record: dict[str, Any]
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


def _tested(experiment: Experiment[Model], model: Model, splits: Any, interruption: Interruption) -> dict[str, Any]:
    """The metrics of the model; none where training was interrupted, or testing is."""
    if interruption.signum:
        return {}
    try:
        with torch.inference_mode():
            return experiment.test(model, splits)
    except Interrupted:
        return {}


def _how_to_go_on(folder: RunFolder) -> str:
    kept = step_files(folder.checkpoints)
    if not kept:
        return "Nothing had been learned yet."
    return f"The last good checkpoint is {kept[0]}. To continue: {folder.resume_command}"


def _flat(tables: dict[str, Any]) -> dict[str, Any]:
    """The fields of a recipe as {"model.hidden": 256, ...}."""
    flat: dict[str, Any] = {}
    for table, values in tables.items():
        if isinstance(values, dict):
            flat |= {
                f"{table}.{name}": str(value) if isinstance(value, tuple) else value for name, value in values.items()
            }
        else:
            flat[table] = values
    return flat
