"""The command that trains any system."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io import print_line
from regard.errors import OptionError, TrainingError
from regard.training.settings import Devices

if TYPE_CHECKING:
    from regard.config import Checked
    from regard.training.run_folder import RunFolder


def train(
    recipe: str | None = None,
    *,
    system: str | None = None,
    source: Path | None = None,
    target: Path | None = None,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-run"),
    start_from: Annotated[str | None, Parameter(name="--from")] = None,
    resume: bool = False,
    overwrite: bool = False,
    trust: bool = False,
    devices: Annotated[Devices | None, Parameter(name="*")] = None,
    **overrides: dict[str, str],
) -> None:
    """Train a translator on two parallel text files, or any model from a recipe.

    Override any field of a recipe: --model.score dot --train.epochs 5. `regard recipes --fields SYSTEM` lists them.
    Ctrl-C stops training and saves the best model so far; `regard train --resume --out FOLDER` continues.

    Parameters
    ----------
    recipe
        A TOML file, or the name of a packaged recipe (`regard recipes` lists them).
    system
        Without a recipe: the system to train, such as classify, with the defaults of its fields; translate by default.
    source
        Source sentences, one per line (plain, .gz, .xz, .zip).
    target
        Target sentences, line by line parallel to the source.
    out
        Folder for the model, logs and checkpoints.
    start_from
        A shipped model or a model folder to start from, with its vocabulary or classes.
    resume
        Continue the run in the folder with its own recipe; some fields may change, such as --train.epochs.
    overwrite
        Replace the run in the folder.
    trust
        Start --from a model with custom code (package.module:Name).
    overrides
        Fields of the recipe: --data.NAME, --model.NAME, --train.NAME.
    """
    from regard.systems import registry
    from regard.systems.run import train as run
    from regard.training.processes import check_devices, environment, is_first_process
    from regard.training.recipes import RawRecipe, read_raw
    from regard.training.run_folder import RunFolder

    stored = out / "recipe.toml"
    if recipe is not None and system is not None:
        raise OptionError(f"The recipe {recipe} says which system it trains: leave out --system {system}.")
    named = Path(recipe) if recipe is not None else stored if resume and stored.is_file() else None
    raw = RawRecipe(system) if named is None and system is not None else read_raw(named)
    if system not in (None, raw.system):
        raise OptionError(f"{out} holds a run of the system {raw.system}, not {system}. Leave out --system.")
    found = registry.entry(raw.system, raw.place)
    tables = found.tables
    fields = parse_fields(tables, overrides)
    files = {"source": source, "target": target}
    fields["data"] |= {name: str(path) for name, path in files.items() if path is not None}
    given: dict[str, Any] = {table: values for table, values in fields.items() if values}
    devices = devices or Devices()
    check_devices(devices)
    if devices.devices > 1 and devices.nodes == 1 and environment(devices) is None:
        sys.exit(_launch(devices.devices, RunFolder(out)))
    options: dict[str, Any] = {"start_from": start_from, "resume": resume, "overwrite": overwrite, "trust": trust}
    is_named = recipe is not None or (named is None and system is not None)
    trained = run(raw if is_named else None, out=out, devices=devices, **given, **options)
    if not is_first_process():
        sys.exit(128 + trained.signum if trained.interrupted else 0)
    scores = found.declaration.scores(trained.metrics)
    if trained.interrupted:
        again = RunFolder(out).resume_command
        print_line(f"Interrupted. The best model so far is in {trained.folder}. To continue: {again}")
        sys.exit(128 + trained.signum)
    measured = f" ({scores})" if scores else ""
    trusted = " --trust" if trained.model.custom_parts else ""
    example = found.declaration.example.format(model=trained.folder) + trusted
    print_line(f"Wrote {trained.folder}{measured}. Try it: {example}")


def parse_fields(tables: "Mapping[str, type[Checked]]", overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of recipes that were given as --data.NAME, --model.NAME and --train.NAME, by their tables."""
    from regard.config import parse_values
    from regard.training.recipes import TABLES

    fields: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for table, texts in overrides.items():
        if table not in tables or not isinstance(texts, dict):
            raise OptionError(f"A field is set with --data.NAME, --model.NAME or --train.NAME; got --{table}.")
        fields[table] = parse_values(tables[table], texts, f"--{table}.")
    return fields


def _launch(count: int, folder: "RunFolder") -> int:
    """Run this command in several processes, and give its exit status."""
    from regard.training.processes import launch

    try:
        return launch([sys.executable, "-m", "regard", *sys.argv[1:]], count)
    except TrainingError as error:
        raise TrainingError(f"{error} To continue: {folder.resume_command} --devices {count}") from error
