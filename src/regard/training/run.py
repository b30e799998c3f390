"""The engine: read the data, build the model, fit it, test it, save it. It knows no system."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from regard.files import check_replaceable, write_text
from regard.training.experiment import Experiment, Trained
from regard.training.fit import fit, prepare
from regard.training.recipes import recipe_toml

Model = TypeVar("Model", bound=nn.Module)


def run(
    experiment: Experiment[Model],
    *,
    start_from: Model | None = None,
    resume: bool = False,
    refuse: Callable[[Path], str],
) -> Trained[Model]:
    """Run an experiment into its folder: the model, logs/, checkpoints/ and recipe.toml.

    `refuse` says why an existing folder must not be replaced by the model; it is asked before anything is done.
    """
    folder, settings = experiment.folder, experiment.recipe.train
    check_replaceable(folder / "model", refuse=refuse)
    prepare(settings)
    splits = experiment.read()
    if start_from is None:
        model = experiment.build(splits)
    else:
        model = start_from.to("cpu").train()
        experiment.check_model(model, splits)
    task, *loaders = experiment.task(model, splits)
    write_text(folder / "recipe.toml", recipe_toml(experiment.recipe))
    fitted = fit(
        task,
        (loaders[0], loaders[1]),
        folder,
        score=experiment.score,
        half_precision_on_gpu=experiment.half_precision_on_gpu,
        resume=resume,
        progress=experiment.progress,
        hyperparameters=_flat(experiment.recipe.to_dict()),
    )
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    with torch.inference_mode():
        metrics = fitted.metrics | experiment.test(model, splits)
    saved: Any = model
    saved.save(folder / "model", metrics=metrics)
    return Trained(folder / "model", model, metrics, interrupted=fitted.interrupted)


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
