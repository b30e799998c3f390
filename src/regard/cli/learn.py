"""Commands about training."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import say


def train(
    recipe: str | None = None,
    *,
    source: Path | None = None,
    target: Path | None = None,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-run"),
    start_from: Annotated[str | None, Parameter(name="--from")] = None,
    resume: bool = False,
    **overrides: dict[str, str],
) -> None:
    """Train a translator on your own two text files, or whatever a recipe says.

    Any field of a recipe can be set: --model.score dot --train.epochs 5. `regard recipes --fields` lists them all.
    Ctrl-C ends the training and saves the model as it is.

    Parameters
    ----------
    recipe
        A TOML file, or the name of a packaged recipe (`regard recipes` lists them).
    source
        Source sentences, one a line (plain, .gz, .xz, .zip).
    target
        Target sentences, line by line parallel to the source.
    out
        Folder for the model, logs and checkpoints.
    start_from
        A shipped model or a model folder to go on from, with its vocabulary or classes.
    resume
        Go on from the last checkpoint in the folder.
    overrides
        Fields of the recipe: --data.NAME, --model.NAME, --train.NAME.
    """
    from regard.systems.shipped import load
    from regard.training.recipe import read_overrides, read_recipe, recipe_system
    from regard.training.run import train as run

    system = recipe_system(recipe)
    fields = read_overrides(overrides, system)
    files = {"source": source, "target": target}
    fields.setdefault("data", {}).update({name: str(path) for name, path in files.items() if path is not None})
    base = None if start_from is None else load(start_from, device="cpu")
    trained = run(read_recipe(recipe, fields), out, start_from=base, resume=resume)
    named = [f"{part}_{score}" for part in ("valid", "test") for score in ("bleu", "accuracy")]
    shown = ", ".join(f"{name} {trained.metrics[name]:.2f}" for name in named if name in trained.metrics)
    trial = {
        "translator": f"regard translate --model {trained.folder} 'A sentence.'",
        "image-classifier": f"regard recognize --model {trained.folder} PICTURE",
        "captioner": f"regard caption --model {trained.folder} PICTURE",
    }[system]
    say(f"Wrote {trained.folder} ({shown}). Try it: {trial}")


def recipes(*, fields: bool = False) -> None:
    """List the packaged recipes, complete experiments each.

    Parameters
    ----------
    fields
        List the fields of a recipe instead, with their defaults.
    """
    from rich.console import Console
    from rich.table import Table

    from regard.training.recipe import SYSTEMS, fields_of, recipe_names, recipe_summary

    console = Console()
    if not fields:
        table = Table("name", "what it trains")
        for name in recipe_names():
            table.add_row(name, recipe_summary(name))
        console.print(table)
        return
    for system, (_, tables) in SYSTEMS.items():
        for name in tables:
            title = f"{system} [{name}]"
            table = Table("field", "type", "default", "meaning", title=title, title_justify="left")
            for field, kind, default, meaning in fields_of(name, system):
                table.add_row(f"--{name}.{field}", kind, str(default), meaning)
            console.print(table)
