"""Cases of the config schema: every field of every table of every system, from Python and from a recipe."""

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from abuse.api import WRONG
from abuse.cases import Case, Verdict, conforms, judged
from regard.config import Checked, fields_of, from_values, parse_values
from regard.systems import registry

TEXTS = {
    "''": "",
    "x": "x",
    "-1": "-1",
    "1.5": "1.5",
    "nan": "nan",
    "inf": "inf",
    "1e999": "1e999",
    "10**18": "1" + "0" * 18,
    "10**400": "1" + "0" * 400,
    "none": "none",
    "a list": "1,x,",
    "escape": "\x1b[31m",
    "long": "y" * 10_000,
    "custom": "no_such_module:Score",
    "digits": "٣",
}
"""What stands for the text of a field on the command line."""


def tables() -> Iterator[tuple[str, type[Checked]]]:
    """Every config class that a user fills in."""
    from regard.serving.settings import ServerSettings
    from regard.training.settings import Devices

    yield "server", ServerSettings
    yield "devices", Devices
    for entry in registry.entries():
        system = entry.system
        experiment = entry.experiment
        found = {
            "model": system.Config,
            "options": system.Options,
            "arguments": entry.arguments,
            "test": entry.test_set,
            "data": getattr(experiment, "Data", None),
            "train": getattr(experiment, "Train", None),
        }
        for name, table in found.items():
            if table is not None and dataclasses.is_dataclass(table):
                yield f"{entry.name}.{name}", table


def cases() -> Iterator[Case]:
    """Each field with each wrong value and each wrong text."""
    for place, table in tables():
        for field in fields_of(table):
            for name, value in WRONG.items():
                run = partial(_value, table, field.name, field.kind, value)
                yield Case("config", f"{place}.{field.name} = {name}", run)
            for name, text in TEXTS.items():
                yield Case("config", f"--{place}.{field.name} {name}", partial(_text, table, field.name, text))
        yield Case("config", f"{place}.nonsense", partial(_value, table, "nonsense", Any, 1))


def _value(table: type[Checked], name: str, kind: Any, value: Any, folder: Path) -> Verdict:
    return judged(lambda: from_values(table, {name: value}, "recipe.toml"), must_refuse=not conforms(value, kind))


def _text(table: type[Checked], name: str, text: str, folder: Path) -> Verdict:
    return judged(lambda: from_values(table, parse_values(table, {name: text}, "--"), "the command"))
