"""Typed requests and answers, made from signatures, options and results; the only place that makes pydantic models."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import torch
from msgspec import Meta, to_builtins
from PIL import Image
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from torch import Tensor

from regard.config import field_meanings
from regard.data.images import ImageInput
from regard.serving import limits
from regard.serving.models import Served
from regard.serving.settings import ServerSettings
from regard.systems.endpoint import NOT_SENT, Streamed
from regard.systems.faithfulness import Faithfulness
from regard.systems.predictor import Result
from regard.systems.registry import Entry
from regard.systems.system import System
from regard.trace import Axis, Trace
from regard.trace.data_uri import to_data_uri

DATA_URI = r"^data:image/(png|jpeg|gif|webp|bmp|tiff);base64,[A-Za-z0-9+/]+={0,2}$"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
"""The smallest image, as an example."""
ImageUri = Annotated[str, Field(pattern=re.compile(DATA_URI), description="An image as a data URI.", examples=[PIXEL])]
STRICT = ConfigDict(strict=True, extra="forbid")
DIGITS = 4
"""Digits after the point of the numbers of a tensor."""


class Pair(BaseModel):
    """Two sentences to compare."""

    model_config = STRICT
    premise: Annotated[str, Field(max_length=20_000)]
    hypothesis: Annotated[str, Field(max_length=20_000)]


def verb_request(each: Entry, names: list[str], settings: ServerSettings) -> type[BaseModel]:
    """The body of a request to the route of a verb, of which `names` are the models."""
    fields = _verb_fields(each, names, settings)
    (one, about), example = fields["input"], _example(each.system)
    several: Any = Annotated[GenericAlias(list, (one,)), Field(min_length=1, max_length=settings.max_inputs)]
    about = Field(description="One input, or a list of them.", examples=about.examples)
    trace = Field(default=False, description="Report what was attended to, as a trace for the viewer.")
    return _request(each.name, fields | {"input": (one | several, about), "trace": (bool, trace)}, {"input": example})


def faithfulness_request(each: Entry, names: list[str], settings: ServerSettings) -> type[BaseModel]:
    """The body of a request about one input of a verb: that of its route, and the verb itself."""
    verb: Any = Literal[each.name]
    fields = {"verb": (verb, Field(description="What the model does."))} | _verb_fields(each, names, settings)
    return _request(f"faithfulness_{each.name}", fields, {"verb": each.name, "input": _example(each.system)})


def endpoint_request(
    each: Entry, function: Callable[..., Any], names: Callable[[str], list[str]], settings: ServerSettings
) -> type[BaseModel]:
    """The body of a request to an endpoint: a field for each parameter of its function."""
    point = function.endpoint  # type: ignore[attr-defined]
    meanings, hints = parameter_meanings(function), parameters(function)
    fields: dict[str, Any] = {}
    example = dict(point.example)
    for name, (kind, default) in hints.items():
        written = "input" if name == point.input else name
        about = meanings.get(name, "The model." if is_system(kind) else "The input." if written == "input" else "")
        if is_system(kind):
            served = names(kind.kind)
            fields[written] = (_named(served), Field(default=default_model(each, served), description=about))
            continue
        if name == point.input:
            example[written] = example.pop(name, PIXEL)
        chosen = ... if default is inspect.Parameter.empty else default
        chosen = dict(chosen) if isinstance(chosen, Mapping) else chosen
        fields[written] = (request_type(kind, written, settings), Field(default=chosen, description=about))
    return _request(f"{each.name}_{point.name}", fields, example)


def parameters(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The kind and the default of each parameter of a function."""
    hints = get_type_hints(function, include_extras=True)
    return {name: (hints[name], each.default) for name, each in inspect.signature(function).parameters.items()}


def parameter_meanings(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a function says about each of its parameters, below `Parameters`."""
    from docstring_parser import parse_from_object

    return {each.arg_name: " ".join((each.description or "").split()) for each in parse_from_object(function).params}


def is_system(kind: Any) -> bool:
    """Whether a parameter takes a model."""
    return isinstance(kind, type) and issubclass(kind, System)


def default_model(each: Entry, names: list[str]) -> Any:
    """The default of the command, where it is served; or the first model; or none, so that a request must name one."""
    if each.declaration.default_model in names:
        return each.declaration.default_model
    return names[0] if names else ...


def verb_response(each: Entry) -> type[BaseModel]:
    """The body of the response of a verb: one result for each input, in order."""
    results: Any = GenericAlias(list, (response_type(each.system.Answer),))
    return _response(each.name, {"results": (results, Field(description="One for each input, in order."))})


def endpoint_response(each: Entry, function: Callable[..., Any]) -> type[BaseModel]:
    """The body of the response of an endpoint: the fields of its value, or the one that holds it."""
    point, kind = function.endpoint, get_type_hints(function)["return"]  # type: ignore[attr-defined]
    if get_origin(kind) is Streamed:
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    fields = {point.answer: (response_type(kind), ...)} if point.answer else _response_fields(kind)
    asks = any(is_system(one) for one, _ in parameters(function).values())
    return _response(f"{each.name}_{point.name}", fields, has_model=asks)


def models_response() -> type[BaseModel]:
    """The body of the list of models."""
    loaded = (bool, Field(description="Whether it is in memory."))
    entry: Any = create_model("ModelEntry", **_response_fields(Served), loaded=loaded)
    return create_model("ModelList", models=(list[entry], ...))


def faithfulness_response() -> type[BaseModel]:
    """The body of the response about faithfulness."""
    return _response("faithfulness", _response_fields(Faithfulness))


def examples_response(each: Entry) -> type[BaseModel]:
    """The body of the response with the examples of a system."""
    return create_model(
        f"{each.name.capitalize()}Examples", examples=(response_type(get_type_hints(each.examples)["return"]), ...)
    )


def description(described: Any) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(described) or "").partition("\n\n")[0].split())


def response_type(kind: Any) -> Any:
    """A type as responses have it: a dataclass as a pydantic model, a trace as a JSON object of version 3."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Trace, Axis):
        return dict[str, Any]
    if kind is Image.Image:
        return str
    if dataclasses.is_dataclass(kind):
        return _response_model(cast(type, kind))
    if origin in (Union, UnionType):
        return Union[tuple(response_type(part) for part in arguments)]  # noqa: UP007
    if origin in (tuple, list, Sequence, frozenset):
        same = origin is not tuple or arguments[-1] is Ellipsis or len(set(arguments)) == 1
        return list[response_type(arguments[0])] if same else list[Any]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, response_type(arguments[1])]  # type: ignore[misc]
    return kind if kind in (str, int, float, bool, NoneType) or origin is Literal else Any


def plain(value: Any) -> Any:
    """A value of an endpoint as JSON has it."""
    if isinstance(value, Image.Image):
        return to_data_uri(value)
    if isinstance(value, Tensor) and value.dtype == torch.uint8:
        pixels = value.permute(1, 2, 0).contiguous().numpy()
        return to_data_uri(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if isinstance(value, Tensor | np.ndarray):  # for a picture, which needs few digits
        numbers = value.double().numpy() if isinstance(value, Tensor) else value.astype(np.float64)
        return numbers.round(DIGITS).tolist()
    if isinstance(value, Trace | Axis | Result):
        return value.to_dict()
    kind: Any = type(value)
    if hasattr(kind, "__dataclass_fields__") and not _is_simple(kind):
        return {name: plain(getattr(value, name)) for name in sent_names(kind)}
    if kind in (list, tuple) and value and not _is_simple(cast(Any, type(value[0]))):
        return [plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else to_builtins(value, str_keys=True)


@cache
def _is_simple(kind: Any) -> bool:
    """Whether values of a type are numbers, texts, and dataclasses and lists of these, which msgspec makes plain."""
    if dataclasses.is_dataclass(kind):
        return not issubclass(cast(type, kind), Trace | Axis | Result) and all(
            map(_is_simple, get_type_hints(kind).values())
        )
    if get_origin(kind) in (tuple, list, dict, Union, UnionType):
        return all(map(_is_simple, get_args(kind)))
    return kind in (str, int, float, bool, NoneType, Ellipsis) or get_origin(kind) is Literal


@cache
def sent_names(kind: type) -> list[str]:
    """The names of the fields of a dataclass that are sent."""
    return [field.name for field in dataclasses.fields(kind) if field.metadata != NOT_SENT]


def request_type(kind: Any, name: str, settings: ServerSettings) -> Any:
    """The type of a field of a request, with its bounds; what it validates is what the function takes."""
    metas = [part for part in get_args(kind)[1:] if isinstance(part, Meta)] if get_origin(kind) is Annotated else []
    plain_kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin, arguments = get_origin(plain_kind), get_args(plain_kind)
    inner = partial(request_type, name=name, settings=settings)
    if plain_kind == ImageInput:
        return ImageUri
    if origin in (Union, UnionType):
        parts = [part for part in arguments if _is_json(part)]
        return Union[tuple(part if part is NoneType else inner(part) for part in parts)]  # noqa: UP007
    if dataclasses.is_dataclass(plain_kind):
        return _dataclass_type(cast(type, plain_kind), settings)
    if plain_kind is str:
        longest = settings.max_characters if name == "input" else limits.LONGEST.get(name, limits.ENTRIES)
        return Annotated[str, Field(max_length=longest)]
    if plain_kind in (int, float):
        return _number(plain_kind, name, metas)
    if origin is tuple and Ellipsis not in arguments:
        size = Field(min_length=len(arguments), max_length=len(arguments))
        return Annotated[list[inner(arguments[0])], size, AfterValidator(tuple)]  # type: ignore[misc]
    if origin in (tuple, list, Sequence, Iterable):
        least = next((meta.min_length for meta in metas if meta.min_length), 0)
        size = Field(min_length=least, max_length=limits.LONGEST.get(name, limits.ENTRIES))
        of_each = request_type(arguments[0], "" if name in limits.LONGEST else name, settings)
        return Annotated[list[of_each], size, AfterValidator(origin if origin in (tuple, list) else tuple)]  # type: ignore[valid-type]
    if origin is Mapping:
        number = Annotated[str, Field(pattern="^[0-9]{1,4}$")]
        longest = Field(max_length=limits.LONGEST.get(name, limits.ENTRIES))
        of_each = request_type(arguments[1], "", settings)
        return Annotated[dict[number, of_each], longest, AfterValidator(_by_number)]  # type: ignore[valid-type]
    return plain_kind


def _by_number(given: dict[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in given.items()}


def _is_json(kind: Any) -> bool:
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind in (str, int, float, bool, NoneType) or get_origin(kind) in (Literal, tuple, list, Sequence)


def _number(kind: Any, name: str, metas: Sequence[Meta]) -> Any:
    bounds = {each: getattr(meta, each) for meta in metas for each in ("ge", "gt", "le", "lt")}
    bounds = {each: bound for each, bound in bounds.items() if bound is not None}
    if "lt" not in bounds:
        bounds["le"] = limits.largest(name, kind, bounds.get("le"))
    if "gt" not in bounds:
        bounds.setdefault("ge", kind(-limits.NUMBER))
    return Annotated[kind, Field(allow_inf_nan=False, **bounds) if kind is float else Field(**bounds)]


@cache
def _dataclass_type(kind: type, settings: ServerSettings) -> Any:
    """A dataclass of a request: its fields are checked, and the value is the dataclass itself."""
    hints, meanings = get_type_hints(kind, include_extras=True), field_meanings(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        default = ... if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        about = Field(default=default, description=meanings.get(field.name, ""))
        fields[field.name] = (request_type(hints[field.name], field.name, settings), about)
    made = create_model(kind.__name__, __config__=STRICT, __doc__=kind.__doc__, **fields)

    def build(given: BaseModel) -> Any:
        return kind(**{name: getattr(given, name) for name in given.model_fields_set})

    return Annotated[made, AfterValidator(build)]


def _verb_fields(each: Entry, names: list[str], settings: ServerSettings) -> dict[str, Any]:
    """The fields of a request about one input: model, input and options."""
    system = each.system
    options = request_type(system.Options, "options", settings)
    return {
        "model": (_named(names), Field(default=default_model(each, names), description="The model to ask.")),
        "input": (_input_type(system, settings), Field(description="The input.", examples=[_example(system)])),
        "options": (options, Field(default=system.Options(), description=f"How to {each.name}.")),
    }


def _named(names: list[str]) -> Any:
    return Literal[tuple(names)] if names else str


def _input_type(system: type[System], settings: ServerSettings) -> Any:
    if system.takes_images:
        return ImageUri
    text = Annotated[str, Field(max_length=settings.max_characters)]
    if system.json_input == "pair":
        return text | Pair
    if system.json_input == "rows":
        row: Any = Annotated[GenericAlias(list, (_number(float, "", ()),)), Field(max_length=limits.COLUMNS)]
        rows: Any = Annotated[GenericAlias(list, (row,)), Field(max_length=limits.ROWS)]
        return text | rows
    return text if _takes_text(system) else request_type(system.input_kind, "input", settings)


def _takes_text(system: type[System]) -> bool:
    return system.input_kind in (Any, str) or str in get_args(system.input_kind)


def _example(system: type[System]) -> Any:
    if system.takes_images:
        return PIXEL
    if system.json_input == "rows":
        return "01100101 10010110"
    return "I would like a cup of coffee, please." if _takes_text(system) else [1.0, 3.0, 2.0]


def _request(name: str, fields: dict[str, Any], example: Mapping[str, Any]) -> type[BaseModel]:
    """A model of a body, with a complete example of it."""
    complete = {
        each: about.default for each, (_, about) in fields.items() if each == "model" and about.default is not ...
    }
    config = ConfigDict(**STRICT, json_schema_extra={"examples": [{**complete, **example}]})
    return create_model(f"{_camel(name)}Request", __config__=config, **fields)


def _response(name: str, fields: dict[str, Any], *, has_model: bool = True) -> type[BaseModel]:
    model = {"model": (str, Field(description="The model that answered."))} if has_model else {}
    return create_model(f"{_camel(name)}Response", **cast(Any, model | fields))


@cache
def _response_model(kind: type) -> type[BaseModel]:
    return create_model(kind.__name__, __doc__=kind.__doc__, **_response_fields(kind))


def _response_fields(kind: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    hints, meanings = get_type_hints(kind), field_meanings(kind)
    for name in sent_names(kind):
        # The alternatives of a result are results without alternatives of their own.
        found = list[dict[str, Any]] if name == "alternatives" else response_type(hints[name])
        fields[name] = (found, Field(description=meanings.get(name, "")))
    return fields


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
