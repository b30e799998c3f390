"""The checks of signatures while tests run, which `conftest.py` installs: types by beartype, shapes by jaxtyping."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from inspect import isclass
from types import FunctionType
from typing import Any, get_args, get_type_hints

import jaxtyping
import torch
from beartype import beartype
from jaxtyping import AbstractArray, config, install_import_hook
from torch import Tensor

with_shapes = jaxtyping.jaxtyped


def check_signatures(package: str) -> None:
    """Check the signatures of all modules of a package that are imported from now on.

    jaxtyping's own decorator checks the arguments of every function twice, and opens a scope of named axes for each
    call. Where no annotation has axes, beartype alone finds the same mistakes in a tenth of the time.
    """
    jaxtyping.jaxtyped = lambda *, typechecker: checked  # what the import hook decorates every definition with
    install_import_hook(package, "beartype.beartype")


def checked(part: Any) -> Any:
    """Decorate a function, method, property, or the fields of a dataclass."""
    if isclass(part):
        if is_dataclass(part) and not hasattr(part.__init__, "__wrapped__"):
            part.__init__ = checked(part.__init__)
        return part
    if isinstance(part, classmethod | staticmethod):
        return type(part)(checked(part.__func__))
    if isinstance(part, property):
        return property(*(each and checked(each) for each in (part.fget, part.fset, part.fdel)))
    strict = _with_known_types(part)
    has_shapes = any(map(_has_shapes, strict.__annotations__.values()))
    strict = with_shapes(beartype(strict), typechecker=None) if has_shapes else beartype(strict)

    @wraps(part)
    def function(*arguments: Any, **options: Any) -> Any:
        return part(*arguments, **options) if config.jaxtyping_disable else strict(*arguments, **options)

    return function


def _with_known_types(function: FunctionType) -> FunctionType:
    """A copy of a function whose annotations are types; Any for those that are imported for the type checker alone."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
    for name, annotation in function.__annotations__.items():
        holder = FunctionType((lambda: None).__code__, function.__globals__)
        holder.__annotations__ = {"return": annotation}
        try:
            copy.__annotations__[name] = get_type_hints(holder, include_extras=True)["return"]
        except (NameError, AttributeError, TypeError, ValueError):
            copy.__annotations__[name] = Any
    return copy


def _has_shapes(annotation: Any) -> bool:
    """Whether an annotation is or contains an array with named axes."""
    return (isclass(annotation) and issubclass(annotation, AbstractArray)) or any(
        map(_has_shapes, get_args(annotation))
    )


@contextmanager
def without_checks() -> Iterator[None]:
    """Switch the checks off."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)


def check_gradients(run: Callable[..., Any], leaves: Sequence[Tensor]) -> bool:
    """gradcheck of every element; signatures are checked once, and not in each of its hundreds of calls."""
    run(*leaves)
    with without_checks():
        return torch.autograd.gradcheck(run, leaves, check_undefined_grad=False, fast_mode=False)
