"""Commands that list what comes with regard: models and recipes."""

from inspect import get_annotations
from typing import TYPE_CHECKING

from regard.cli.io import SafeConsole, as_json, print_line
from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.config import Checked


def models(*, json: bool = False) -> None:
    """List the shipped models with their scores.

    Parameters
    ----------
    json
        Print the list as JSON, with all metrics.
    """
    from dataclasses import asdict

    from regard.systems.pretrained import pretrained_models

    found = pretrained_models()
    if json:
        print_line(as_json([asdict(model) for model in found]))
        return
    for model in found:
        score = f"; on its test set: {model.headline}" if model.headline else ""
        print_entry(model.name, f"{model.mebibytes:.1f} MiB{score}", model.summary)


def print_entry(name: str, facts: str, *lines: str) -> None:
    """Print an entry of a list: its name with short facts, and indented lines below."""
    from rich.padding import Padding
    from rich.text import Text

    console = SafeConsole(highlight=False)
    console.print(Text.assemble((name, "bold"), f"  {facts}"))
    console.print(Padding("\n".join(lines), (0, 0, 1, 4), expand=False), markup=False)


def recipes(name: str | None = None, *, fields: str | None = None) -> None:
    """List the packaged recipes, print a recipe, or list the fields of a system's recipes.

    Parameters
    ----------
    name
        Print this recipe.
    fields
        List the fields of recipes for this system: translate, caption, recognize, ...
    """
    from rich.table import Table

    from regard.training.recipes import find_recipe, recipe_names, recipe_summary

    if name is not None and fields is not None:
        raise OptionError("Give the name of a recipe, or --fields SYSTEM, not both.")
    if name is not None:
        print_line(find_recipe(name).read_text(encoding="utf-8").rstrip("\n"))
    elif fields is not None:
        _print_tables(fields)
    else:
        table = Table()
        table.add_column("name", no_wrap=True)
        table.add_column("what it trains", overflow="fold")
        for each in recipe_names():
            table.add_row(each, recipe_summary(each))
        SafeConsole().print(table)
        print_line("regard recipes NAME prints one of them.")
        print_line("regard recipes --fields SYSTEM lists all settings of a system.")


def _print_tables(system: str) -> None:
    from regard.systems import registry

    for table, config in registry.entry(system).tables.items():
        print_fields(config, prefix=f"--{table}.", title=f"{system} [{table}]")


def print_fields(config: "type[Checked]", *, prefix: str, title: str) -> None:
    """Print the fields of a config: each with its default and what it accepts, then what it means."""
    from rich.padding import Padding
    from rich.text import Text

    from regard.config import fields_of

    console = SafeConsole()
    console.print(f"\n{title}", style="bold", highlight=False, markup=False)
    own = get_annotations(config)
    for field in sorted(fields_of(config), key=lambda field: field.name not in own):
        default = "" if field.default in ("", None, ()) else f" (default {_written(field.default)})"
        line = Text.assemble((f"{prefix}{field.name}", "cyan"), f"  {field.allowed}{default}")
        console.print(line, highlight=False)
        console.print(Padding(field.meaning, (0, 0, 0, 4)), highlight=False, markup=False)


def _written(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
