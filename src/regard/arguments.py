"""Checks of the arguments of public functions and constructors by their annotations, as the fields of configs are."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from regard.config import Field
from regard.errors import OptionError

Function = TypeVar("Function", bound=Callable[..., Any])
Check = Callable[[Any], Any]
"""Returns an argument as the function takes it, or raises an OptionError."""
_PLAIN = (int, float, str, bool)


def checked(function: Function) -> Function:
    """Let a function refuse, with an OptionError, arguments that its annotations do not allow.

    Numbers are held to the bounds of `regard.bounds` too; a path is a text or an os.PathLike that can name a file. The
    shapes of tensors are left to the function.
    """

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        signature, checks = _of(function)
        try:
            bound = signature.bind(*given, **named)
        except TypeError:
            return function(*given, **named)  # which says in Python's own words what is missing or unknown
        for name, value in bound.arguments.items():
            if name in checks and value is not signature.parameters[name].default:
                bound.arguments[name] = checks[name](value)
        return function(*bound.args, **bound.kwargs)

    return cast(Function, call)


def check_arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise an OptionError where a value is not what a function takes under this name."""
    signature, checks = _of(inspect.unwrap(function))
    for name, value in values.items():
        if name in checks and value is not signature.parameters[name].default:
            checks[name](value)


@cache
def _of(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Check]]:
    """The signature of a function, and what checks each argument that can be checked."""
    signature, several = inspect.signature(function), (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [name for name, each in signature.parameters.items() if each.kind not in several]
    return signature, {name: check for name in named if (check := _check(name, _hint(function, name))) is not None}


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The annotation of an argument; Any where there is none, or where it names what only type checkers import."""
    annotation = function.__annotations__.get(name, Any)
    alone = type("Alone", (), {"__annotations__": {name: annotation}})
    try:
        return get_type_hints(alone, globalns=function.__globals__, include_extras=True)[name]
    except NameError:
        return Any


def _check(name: str, kind: Any) -> Check | None:
    """What checks a value of this kind; None where a value may be anything."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin, arguments = get_origin(plain), get_args(plain)
    if origin in (Union, UnionType):
        return _one_of(name, arguments)
    if plain is Any or isinstance(plain, TypeVar):
        return None
    if plain in _PLAIN or origin is Literal:
        return Field(name, kind, None, "").check
    if origin in (Sequence, list, tuple, Iterable) and arguments:
        return _several(name, arguments[0])
    if origin in (Mapping, dict):
        return _instance(name, Mapping, "a mapping")
    if getattr(origin or plain, "__name__", "") == "Callable":
        return _that(name, callable, "a function")
    if array := getattr(plain, "array_type", None):  # an array of jaxtyping
        return _instance(name, array, f"a {getattr(array, '__name__', 'number').lower()}")
    if (origin or plain) is os.PathLike:
        return _path(name)
    is_class = isinstance(origin or plain, type) and (origin or plain) is not object
    return _instance(name, origin or plain, _noun(origin or plain)) if is_class else None


def _one_of(name: str, kinds: Sequence[Any]) -> Check | None:
    """What checks a value that is of one of several kinds."""
    if any(get_origin(kind) is os.PathLike or kind is os.PathLike for kind in kinds) and str in kinds:
        others = [kind for kind in kinds if kind is not str and (get_origin(kind) or kind) is not os.PathLike]
        path = _path(name)
        return _alternatives(name, [path, *(_check(name, kind) for kind in others if kind is not NoneType)], kinds)
    simple = [kind for kind in kinds if _is_simple(kind)]
    checks: list[Check | None] = [Field(name, Union[tuple(simple)], None, "").check] if simple else []  # noqa: UP007
    checks += [_check(name, kind) for kind in kinds if not _is_simple(kind) and kind is not NoneType]
    return _alternatives(name, checks, kinds)


def _alternatives(name: str, checks: Sequence[Check | None], kinds: Sequence[Any]) -> Check | None:
    """What takes a value that one of the checks takes."""
    if None in checks:
        return None
    known, takes_none = [each for each in checks if each is not None], NoneType in kinds

    def check(value: Any) -> Any:
        if value is None and takes_none:
            return value
        messages = []
        for each in known:
            try:
                return each(value)
            except OptionError as error:
                messages.append(str(error))
        start, got = f"{name} must be ", f"; got {_shown(value)}."
        allowed = [each.removeprefix(start).partition("; got ")[0] for each in messages]
        if len(messages) == 1 or not all(each.startswith(start) for each in messages):
            raise OptionError(messages[0])
        raise OptionError(start + " or ".join(dict.fromkeys(allowed)) + got)

    return check


def _several(name: str, kind: Any) -> Check | None:
    """What checks a list, and every entry of it."""
    each = _check(name, kind)

    def check(value: Any) -> Any:
        if isinstance(value, str) and kind is str:  # a list of its letters
            return value
        if isinstance(value, str | bytes) or not isinstance(value, Iterable) or isinstance(value, Mapping):
            raise OptionError(f"{name} must be a list; got {_shown(value)}.")
        if each is None:
            return value
        found = [each(part) for part in value]
        return tuple(found) if isinstance(value, tuple) else found

    return check


def _instance(name: str, kind: Any, noun: str) -> Check:
    return _that(name, lambda value: isinstance(value, kind), noun)


def _that(name: str, holds: Callable[[Any], bool], noun: str) -> Check:
    def check(value: Any) -> Any:
        if not holds(value):
            raise OptionError(f"{name} must be {noun}; got {_shown(value)}.")
        return value

    return check


def _path(name: str) -> Check:
    def check(value: Any) -> Any:
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else b""
        if not isinstance(text, str) or not text or "\0" in text:
            raise OptionError(f"{name} must be the path of a file or folder; got {_shown(value)}.")
        try:
            os.fsencode(text)
        except UnicodeEncodeError:
            raise OptionError(f"{name} must be a path that the file system can hold; got {_shown(value)}.") from None
        return value

    return check


def _is_simple(kind: Any) -> bool:
    """Whether a config checks values of this kind."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return plain in (*_PLAIN, NoneType) or get_origin(plain) is Literal


def _noun(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.80}" if not isinstance(value, str) else f"{value!r:.80}"
