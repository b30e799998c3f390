"""regard: attention models you can train, measure and look inside."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Attended",
    "Attention",
    "Memory",
    "MultiHead",
    "RegardError",
    "Trace",
    "__version__",
    "align",
    "attend",
    "errors",
    "layer_table",
    "load",
    "mask",
    "score",
    "viewing",
]

if TYPE_CHECKING:
    from regard import errors, viewing
    from regard.attention import align, mask, score
    from regard.attention.attend import Attended, Attention, attend
    from regard.attention.heads import MultiHead
    from regard.attention.memory import Memory
    from regard.encoders.layer_table import layer_table
    from regard.errors import RegardError
    from regard.systems.shipped import load
    from regard.trace import Trace

# Where each public name lives, "module" or "module:name". Nothing is imported, torch least of all, before it is used.
_HOMES = {
    "Attended": "regard.attention.attend:Attended",
    "Attention": "regard.attention.attend:Attention",
    "Memory": "regard.attention.memory:Memory",
    "MultiHead": "regard.attention.heads:MultiHead",
    "RegardError": "regard.errors:RegardError",
    "Trace": "regard.trace:Trace",
    "align": "regard.attention.align",
    "attend": "regard.attention.attend:attend",
    "errors": "regard.errors",
    "layer_table": "regard.encoders.layer_table:layer_table",
    "load": "regard.systems.shipped:load",
    "mask": "regard.attention.mask",
    "score": "regard.attention.score",
    "viewing": "regard.viewing",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    home = import_module(module)
    value: object = getattr(home, attribute) if attribute else home
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
