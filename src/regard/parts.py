"""Custom parts: a score, alignment, encoder, decoder or task named by its import path, `package.module:Name`."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.config import nearest_hint
from regard.errors import OptionError, RegardError

_ANY_POSITION, _ANY_NAME = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def find_part(path: str) -> Any:
    """Import what `package.module:Name` names; the current folder is searched too, as `python -m` does."""
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        part: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{path!r}: there is no module {error.name!r}. A custom part is written package.module:Name, and its "
            "module must be importable from the current folder."
        ) from error
    except Exception as error:  # whatever the user's module raises
        raise OptionError(f"{path!r} cannot be imported: {type(error).__name__}: {error}.") from error
    finally:
        if added:
            sys.path.remove(here)
    for name in attribute.split("."):
        if not hasattr(part, name):
            names = [known for known in vars(part) if not known.startswith("_")] if hasattr(part, "__dict__") else []
            raise OptionError(f"{path!r}: {module_name} has no {name!r}.{nearest_hint(name, names)}")
        part = getattr(part, name)
    return part


def build_part(path: str, sizes: Mapping[str, Any]) -> Any:
    """Instantiate the class or function at an import path, passing the `sizes` that match its parameter names."""
    factory = find_part(path)
    if not callable(factory):
        raise OptionError(f"{path!r} is {factory!r}, which is neither a class nor a function.")
    parameters = inspect.signature(factory).parameters.values()
    variable = {parameter.kind for parameter in parameters} & {_ANY_POSITION, _ANY_NAME}
    # nn.Module itself takes (*args, **kwargs) and refuses both: a module without an __init__ asks for nothing.
    if variable == {_ANY_NAME}:
        return _built(path, factory, sizes)
    named = [parameter for parameter in parameters if parameter.kind not in variable]
    unknown = [
        parameter.name
        for parameter in named
        if parameter.name not in sizes and parameter.default is inspect.Parameter.empty
    ]
    if unknown:
        raise OptionError(
            f"{path!r} asks for {', '.join(unknown)}, which this model cannot give. It can give: {', '.join(sizes)}. "
            "Name a class, or a function that returns the part, rather than the part itself: for a function "
            "score(query, key), name one that returns it, def make(): return score."
        )
    return _built(path, factory, {each.name: sizes[each.name] for each in named if each.name in sizes})


def _built(path: str, factory: Callable[..., Any], sizes: Mapping[str, Any]) -> Any:
    try:
        return factory(**sizes)
    except RegardError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise OptionError(f"{path!r} cannot be built: {type(error).__name__}: {error}.") from error
