"""Recipes: one complete experiment each, as TOML with the tables [data], [model] and [train].

The line `system = ...` says what a recipe trains; without it, a translator.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config import nearest_hint
from regard.errors import DataError, OptionError

RECIPES = Path(__file__).parent.parent / "recipes"
"""The folder of the packaged recipes."""
DEFAULT_SYSTEM = "translate"
TABLES = ("data", "model", "train")


@dataclass(frozen=True)
class Recipe:
    """One complete experiment: the tables [data], [model] and [train] of a system."""

    system: str
    data: Any
    model: Any
    train: Any
    given: frozenset[str] = frozenset()
    """The fields of [model] that were set, rather than left at their defaults."""

    def to_dict(self) -> dict[str, Any]:
        """The tables as plain values, as a TOML recipe has them."""
        tables = {"data": self.data, "model": self.model, "train": self.train}
        return {"system": self.system} | {name: table.to_dict() for name, table in tables.items()}


@dataclass(frozen=True)
class RawRecipe:
    """What a recipe file says, before it is checked against the tables of its system."""

    system: str = DEFAULT_SYSTEM
    tables: dict[str, dict[str, Any]] = field(default_factory=lambda: {table: {} for table in TABLES})
    path: Path | None = None

    @property
    def place(self) -> str:
        """Where its fields stand, for errors."""
        return "the command line" if self.path is None else str(self.path)


def read_raw(name: str | Path | None) -> RawRecipe:
    """Read a TOML file, or the packaged recipe of that name; None for an empty recipe."""
    if name is None:
        return RawRecipe()
    path = find_recipe(name)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise DataError(f"{path} is not a recipe: {error}.") from error
    system = given.pop("system", DEFAULT_SYSTEM)
    if not isinstance(system, str):
        raise OptionError(f"{path}: system must be text, such as {DEFAULT_SYSTEM!r}; got {system!r}.")
    for table, values in given.items():
        if table not in TABLES or not isinstance(values, dict):
            hint = nearest_hint(table, ("system", *TABLES))
            raise OptionError(f"{path}: a recipe has the tables [data], [model] and [train]; got {table!r}.{hint}")
    return RawRecipe(system, {table: dict(given.get(table, {})) for table in TABLES}, path)


def with_values(raw: RawRecipe, overrides: Mapping[str, Mapping[str, Any]]) -> RawRecipe:
    """The recipe with fields replaced."""
    for table, values in overrides.items():
        if table not in TABLES or not isinstance(values, Mapping):
            raise OptionError(f"A field is set with --data.NAME, --model.NAME or --train.NAME; got --{table}.")
    tables = {table: raw.tables[table] | dict(overrides.get(table, {})) for table in TABLES}
    return RawRecipe(raw.system, tables, raw.path)


def recipe_names() -> list[str]:
    """The names of the packaged recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def recipe_summary(name: str) -> str:
    """What a packaged recipe trains: the comment in its first line."""
    return find_recipe(name).read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def recipe_usage(name: str | os.PathLike[str]) -> str:
    """The command that trains a packaged recipe on data, a comment at its top; empty if it needs no data."""
    lines = find_recipe(Path(name)).read_text(encoding="utf-8").splitlines()
    return next((line[2:] for line in lines if line.startswith("# regard train ") and "--data." in line), "")


def find_recipe(name: str | Path) -> Path:
    """The file of a recipe: a path, or the name of a packaged recipe."""
    path = Path(name)
    if path.is_file():
        return path
    if (RECIPES / f"{name}.toml").is_file():
        return RECIPES / f"{name}.toml"
    hint = nearest_hint(name, recipe_names()) or f" Packaged recipes: {', '.join(recipe_names())}."
    raise DataError(f"There is no recipe file {str(name)!r}, nor a packaged recipe of that name.{hint}")


def recipe_toml(recipe: Recipe) -> str:
    """A recipe as TOML, all its fields included; `regard train` reads it back."""
    return to_toml(recipe.to_dict())


def to_toml(recipe: Mapping[str, Any]) -> str:
    """Plain values as TOML: single values, and tables of values one level deep; None is left out."""
    lines = [f"{name} = {_toml(value)}" for name, value in recipe.items() if not isinstance(value, Mapping)]
    for table, values in recipe.items():
        if isinstance(values, Mapping):
            lines += [
                "",
                f"[{table}]",
                *(f"{name} = {_toml(part)}" for name, part in values.items() if part is not None),
            ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML. Its texts are those of JSON, but for DEL; tables within tables are inline."""
    if isinstance(value, Mapping):
        items = ((name, part) for name, part in value.items() if part is not None)
        return "{" + ", ".join(f"{_toml(name)} = {_toml(part)}" for name, part in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
