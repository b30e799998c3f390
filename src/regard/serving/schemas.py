"""Typed requests and answers, made from the options and results of each system."""

import dataclasses
import re
from collections.abc import Mapping
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, create_model

from regard.config import Checked, field_meanings, fields_of
from regard.serving.settings import ServerSettings
from regard.systems.registry import Entry
from regard.systems.system import System
from regard.trace import Trace

CEILINGS = {
    "beam": 16, "nbest": 16, "max_length": 500, "min_length": 500, "top_k": 100_000, "top": 1000, "num_glimpses": 32,
    "passes": 32, "slots": 4096, "repeats": 64, "query": 1000, "block_ngrams": 100, "seed": 2**63 - 1,
}  # fmt: skip
"""The largest values that a request may ask for, so that none of them takes the server for itself."""
DATA_URI = r"^data:image/(png|jpeg|gif|webp|bmp|tiff);base64,[A-Za-z0-9+/]+={0,2}$"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
"""The smallest image, as an example."""
ImageUri = Annotated[str, Field(pattern=re.compile(DATA_URI), description="An image as a data URI.", examples=[PIXEL])]
STRICT = ConfigDict(strict=True, extra="forbid")


class Pair(BaseModel):
    """Two sentences to compare."""

    model_config = STRICT
    premise: Annotated[str, Field(max_length=20_000)]
    hypothesis: Annotated[str, Field(max_length=20_000)]


def request_model(
    system: type[System], verb: str, models: list[str], default: Any, settings: ServerSettings
) -> type[BaseModel]:
    """The body of a request to the route of a verb; `default` is the model that is asked where none is named."""
    fields = request_fields(system, verb, models, default, settings)
    one, about = fields["input"]
    several: Any = Annotated[GenericAlias(list, (one,)), Field(min_length=1, max_length=settings.max_inputs)]
    fields["input"] = (one | several, Field(description="One input, or a list of them.", examples=about.examples))
    fields["trace"] = (
        bool,
        Field(default=False, description="Report what was attended to, as a trace for the viewer."),
    )
    return create_model(f"{verb.capitalize()}Request", __config__=STRICT, **fields)


def request_fields(
    system: type[System], verb: str, models: list[str], default: Any, settings: ServerSettings
) -> dict[str, Any]:
    """The fields of a request about one input: model, input and options."""
    options = _options_model(system.Options, f"{verb.capitalize()}Options")
    named: Any = Literal[tuple(models)] if models else str
    return {
        "model": (named, Field(default=default, description="The model to ask.")),
        "input": (_input_type(system, settings), Field(description="The input.", examples=[_example(system)])),
        "options": (options, Field(default_factory=options, description=f"How to {verb}.")),
    }


def default_model(each: Entry, names: list[str]) -> Any:
    """The default of the command, where it is served; or the first model; or none, so that a request must name one."""
    if each.declaration.default_model in names:
        return each.declaration.default_model
    return names[0] if names else ...


def answer_model(system: type[System], verb: str) -> type[BaseModel]:
    """The body of the answer: one result for each input, in order."""
    results: Any = GenericAlias(list, (_result_model(system.Answer),))
    return create_model(
        f"{verb.capitalize()}Answer",
        model=(str, Field(description="The model that answered.")),
        results=(results, Field(description="One for each input, in order.")),
    )


def options_of(system: type[System], given: BaseModel, *, trace: bool) -> Any:
    """The checked options of a request; without `trace`, those that report attention are off."""
    values: Mapping[str, Any] = given.model_dump(exclude_unset=True)
    return system.options(values if trace else {**values, "traces": "none"})


def _options_model(options: type[Checked], name: str) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for field in fields_of(options):
        kind = _bounded(field.kind, CEILINGS.get(field.name))
        fields[field.name] = (kind, Field(default=field.default, description=field.meaning))
    return create_model(name, __config__=STRICT, **fields)


def _bounded(kind: Any, ceiling: int | None) -> Any:
    """A type of a config as pydantic has it: with the bounds of msgspec, and a ceiling."""
    if get_origin(kind) in (Union, UnionType):
        parts = [part if part is NoneType else _bounded(part, ceiling) for part in get_args(kind)]
        return Union[tuple(parts)]  # noqa: UP007
    metas = [part for part in get_args(kind)[1:] if isinstance(part, Meta)] if get_origin(kind) is Annotated else []
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    bounds = {name: getattr(meta, name) for meta in metas for name in ("ge", "gt", "le", "lt")}
    if ceiling is not None and plain is int:
        bounds["le"] = ceiling if bounds.get("le") is None else min(ceiling, bounds["le"])
    bounds = {name: bound for name, bound in bounds.items() if bound is not None}
    if plain is str:
        return Annotated[str, Field(max_length=2000)]
    if plain is float:
        return Annotated[float, Field(allow_inf_nan=False, **bounds)]
    return Annotated[plain, Field(**bounds)] if bounds else plain


def _input_type(system: type[System], settings: ServerSettings) -> Any:
    if system.takes_images:
        return ImageUri
    text = Annotated[str, Field(max_length=settings.max_characters)]
    row = Annotated[list[float], Field(max_length=64)]
    kinds: dict[str, Any] = {
        "text": text,
        "pair": text | Pair,
        "rows": text | Annotated[list[row], Field(max_length=2000)],
    }
    return kinds[system.json_input]


def _example(system: type[System]) -> Any:
    if system.takes_images:
        return PIXEL
    return "01100101 10010110" if system.json_input == "rows" else "I would like a cup of coffee, please."


def _result_model(result: Any) -> Any:
    """A dataclass as a pydantic model; a trace is a JSON object of version 3."""
    fields: dict[str, Any] = {}
    hints, meanings = get_type_hints(result), field_meanings(result)
    for field in dataclasses.fields(result):
        # The alternatives of a result are results without alternatives of their own.
        kind = list[dict[str, Any]] if field.name == "alternatives" else _json_type(hints[field.name])
        fields[field.name] = (kind, Field(description=meanings.get(field.name, "")))
    return create_model(result.__name__, **fields)


def _json_type(kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Trace:
        return dict[str, Any]
    if dataclasses.is_dataclass(kind):
        return _result_model(cast(Any, kind))
    if origin in (Union, UnionType):
        return Union[tuple(_json_type(part) for part in arguments)]  # noqa: UP007
    if origin is tuple:
        return list[_json_type(arguments[0])] if arguments[-1] is Ellipsis else list[Any]  # type: ignore[misc]
    if origin is dict:
        return dict[str, _json_type(arguments[1])]  # type: ignore[misc]
    return kind if kind in (str, int, float, bool, NoneType) or origin is Literal else Any
