"""Checked configs: dataclasses whose values are validated wherever they come from.

A config is a frozen dataclass that extends `Checked`. Its annotations say what each field accepts (type, choice,
range), and the docstring below a field says what it means. Constructing one with anything else raises an `OptionError`,
whether the values come from Python, from a TOML recipe, from config.json or from the command line.
"""

import dataclasses
import difflib
import math
import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, ValidationError, convert

from regard.bounds import too_large, wrong_text
from regard.errors import OptionError

Config = TypeVar("Config", bound="Checked")

PositiveInt = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]
NonNegativeFloat = Annotated[float, Meta(ge=0)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Fraction = Annotated[float, Meta(ge=0, lt=1)]
"""At least 0 and below 1, such as a dropout rate or the decay of an average."""

_CUSTOM_PART = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_NOUNS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True)
class Names:
    """The names that a text field accepts: `choices`, names with one of the `prefixes`, and `package.module:Name`."""

    choices: tuple[str, ...]
    prefixes: tuple[str, ...] = ()
    custom: bool = True
    """Whether the import path of a custom part is accepted."""

    def accepts(self, name: str) -> bool:
        """Whether a name is one of these."""
        return self._is_built_in(name) or self.is_custom(name)

    def is_custom(self, name: str) -> bool:
        """Whether a name is the import path of a custom part."""
        return self.custom and not self._is_built_in(name) and bool(_CUSTOM_PART.fullmatch(name))

    def _is_built_in(self, name: str) -> bool:
        is_prefixed = any(name.startswith(prefix) and len(name) > len(prefix) for prefix in self.prefixes)
        return name in self.choices or is_prefixed

    def __str__(self) -> str:
        named = [*self.choices, *(f"{prefix}NAME" for prefix in self.prefixes)]
        return f"one of {', '.join(named)}" + (", or a custom part as package.module:Name" if self.custom else "")


@dataclass(frozen=True)
class Field:
    """One field of a config: its name, the values it accepts, its default and what it means."""

    name: str
    kind: Any
    default: Any
    meaning: str

    @property
    def allowed(self) -> str:
        """What the field accepts, in words."""
        return _allowed(self.kind)

    def check(self, value: Any) -> Any:
        """The value as the field keeps it (a list as a tuple, an int as a float), or an OptionError."""
        try:
            checked = _checked(value, self.kind)
        except (ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._refused(value) from error
        if (largest := too_large(self.name, checked)) is not None:
            raise OptionError(f"{self.name} must be at most {largest:,}; got {_shortened(value)}.")
        if wrong := wrong_text(self.name, checked):
            raise OptionError(f"{self.name} {wrong}.")
        return checked

    def parse(self, text: str) -> Any:
        """The value that a text of the command line stands for."""
        try:
            value = _parsed(text, self.kind)
        except (ValidationError, ValueError) as error:
            raise self._refused(text) from error
        return self.check(value)

    def _refused(self, value: Any) -> OptionError:
        near = nearest_hint(value, _choices(self.kind))
        return OptionError(f"{self.name} must be {self.allowed}; got {_shortened(value)}.{near}")


def _shortened(value: Any) -> str:
    """A value for a message; a number may have more digits than Python prints."""
    try:
        return f"{value!r:.200}"
    except Exception:  # whatever an object of a user raises that is asked for its text
        return f"a {type(value).__name__}"


@dataclass(frozen=True)
class Checked:
    """Base of all configs: every construction validates the fields, then the rules between them."""

    def __post_init__(self) -> None:
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            if value is field.default:
                continue
            checked = field.check(value)
            if checked is not value:
                object.__setattr__(self, field.name, checked)
        self.check()

    def check(self) -> None:
        """Raise an OptionError where fields contradict each other."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON and TOML."""
        return dataclasses.asdict(self)


_FIELDS: dict[type[Any], tuple[Field, ...]] = {}


def fields_of(config: type[Any]) -> tuple[Field, ...]:
    """The fields of a config class, in order; they are found once for each class."""
    if config not in _FIELDS:
        hints, meanings = get_type_hints(config, include_extras=True), field_meanings(config)
        _FIELDS[config] = tuple(
            Field(field.name, hints[field.name], field.default, meanings.get(field.name, ""))
            for field in dataclasses.fields(config)
            if field.init
        )
    return _FIELDS[config]


def from_values(config: type[Config], values: Mapping[str, Any], place: str) -> Config:
    """Build a config from plain values; errors begin with `place`, such as "recipe.toml [model]"."""
    known = {field.name: field for field in fields_of(config)}
    _refuse_unknown(values, known, place)
    try:
        checked = {name: known[name].check(value) for name, value in values.items()}
        missing = [name for name, field in known.items() if field.default is dataclasses.MISSING and name not in values]
        if missing:
            raise OptionError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.")
        return config(**checked)
    except OptionError as error:
        raise OptionError(f"{place}: {error}") from error


def parse_values(config: type[Checked], texts: Mapping[str, str], place: str) -> dict[str, Any]:
    """The values that texts of the command line stand for; `place` is what stands before a name, such as "--model."."""
    known = {field.name: field for field in fields_of(config)}
    values = {}
    for key, text in texts.items():
        name = key.replace("-", "_")
        if name not in known:
            near = nearest_hint(name, known)
            hint = near or f" Its fields are {', '.join(known)}."
            raise OptionError(f"There is no field {place}{key}.{hint}")
        if not isinstance(text, str):
            raise OptionError(f"{place}{key} takes one value: {known[name].allowed}.")
        try:
            values[name] = known[name].parse(text)
        except OptionError as error:
            raise OptionError(f"{place}{key}{str(error).removeprefix(name)}") from error
    return values


def parse_numbers(field: str, text: str, *, such_as: str = "") -> dict[str, float]:
    """The numbers, 0 or more, in the text of a field such as "positive=3,negative=0.5"."""
    numbers = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, number = part.rpartition("=")
        try:
            numbers[name.strip()] = float(number)
        except ValueError:
            numbers[name.strip()] = -1.0
        if not name or not 0 <= numbers[name.strip()] < math.inf:
            raise OptionError(f"{field} must be such as {such_as}; got {text!r}.")
    return numbers


def differing(first: Checked, second: Checked) -> dict[str, tuple[Any, Any]]:
    """The fields in which two configs of one class differ, with both values."""
    pairs = {field.name: (getattr(first, field.name), getattr(second, field.name)) for field in fields_of(type(first))}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def custom_parts(config: Checked) -> dict[str, str]:
    """The fields of a config that name custom parts, with their import paths."""
    named = ((field.name, _names(field.kind)) for field in fields_of(type(config)))
    return {
        name: getattr(config, name)
        for name, names in named
        if names is not None and names.is_custom(getattr(config, name))
    }


def _refuse_unknown(values: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    known = list(known)
    for key in values:
        if key not in known:
            hint = nearest_hint(key, known) or f" Its fields are {', '.join(known)}."
            raise OptionError(f"{place}: there is no field {key!r:.200}.{hint}")


def _checked(value: Any, kind: Any) -> Any:
    if hasattr(value, "__index__") and not isinstance(value, int):  # a number of NumPy or of a tensor
        value = operator.index(value)
    if isinstance(value, os.PathLike) and _plain(kind) is str:
        value = os.fspath(value)
    names = _names(kind)
    if names is not None and isinstance(value, str) and not names.accepts(value):
        raise ValueError(value)
    converted = convert(value, kind if names is None else _plain(kind))
    for part in converted if isinstance(converted, tuple) else (converted,):
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(value)
    if isinstance(converted, str) and "\0" in converted:
        raise ValueError(value)
    return converted


def _parsed(text: str, kind: Any) -> Any:
    plain = _plain(kind)
    if get_origin(plain) in (Union, UnionType):
        if text.lower() == "none":
            return None
        (kind,) = (part for part in get_args(plain) if part is not NoneType)
        plain = _plain(kind)
    if get_origin(plain) is tuple:
        parts = [part.strip() for part in text.split(",")] if text else []
        return convert(parts, plain, strict=False)
    return text if plain is str or get_origin(plain) is Literal else convert(text, plain, strict=False)


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


@cache
def _names(kind: Any) -> Names | None:
    metadata = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((part for part in metadata if isinstance(part, Names)), None)


def _choices(kind: Any) -> tuple[str, ...]:
    names = _names(kind)
    if names is not None:
        return names.choices
    plain = _plain(kind)
    if get_origin(plain) in (Union, UnionType):
        return tuple(choice for part in get_args(plain) for choice in _choices(part))
    return tuple(map(str, get_args(plain))) if get_origin(plain) is Literal else ()


def _allowed(kind: Any) -> str:
    names, plain = _names(kind), _plain(kind)
    if names is not None:
        return str(names)
    if get_origin(plain) in (Union, UnionType):
        return " or ".join("none" if part is NoneType else _allowed(part) for part in get_args(plain))
    if get_origin(plain) is Literal:
        return f"one of {', '.join(repr(choice) if choice == '' else str(choice) for choice in get_args(plain))}"
    if get_origin(plain) is tuple:
        parts = get_args(plain)
        inside = _NOUNS.get(_plain(parts[0]), "value").removeprefix("a ")
        if len(parts) == 2 and parts[1] is Ellipsis:
            return f"a list of {inside}" if inside == "text" else f"a list of {inside}s"
        return f"a list of {len(parts)} {inside}s"
    noun = _NOUNS.get(plain, getattr(plain, "__name__", str(plain)))
    return f"{noun}{_range(kind)}"


def _range(kind: Any) -> str:
    metas = [part for part in get_args(kind)[1:] if isinstance(part, Meta)] if get_origin(kind) is Annotated else []
    parts = []
    for meta in metas:
        if meta.ge is not None and meta.le is not None:
            return f" from {_number(meta.ge)} to {_number(meta.le)}"
        parts += [] if meta.gt is None else [f" above {_number(meta.gt)}"]
        parts += [] if meta.ge is None else [f", {_number(meta.ge)} or more"]
        parts += [] if meta.lt is None else [f" and below {_number(meta.lt)}"]
        parts += [] if meta.le is None else [f", {_number(meta.le)} or less"]
    return "".join(parts)


def _number(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def nearest_hint(name: Any, names: Iterable[str]) -> str:
    """ " Did you mean 'x'?", where a name is close to one of `names`; otherwise nothing."""
    near = difflib.get_close_matches(str(name)[:200], list(names), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def field_meanings(config: type) -> dict[str, str]:
    """The docstring below each field; a field that a subclass only gives another default keeps its own."""
    from docstring_parser import parse_from_object

    found: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if dataclasses.is_dataclass(base) and base is not Checked:
            parsed = parse_from_object(base)
            found |= {
                param.arg_name: " ".join(param.description.split()) for param in parsed.params if param.description
            }
    return found
