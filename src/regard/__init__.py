"""regard: attention models you can train, measure and look inside."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:  # the table below, for type checkers; a test compares them
    from regard import errors as errors
    from regard import viewing as viewing
    from regard.attention import align as align
    from regard.attention import mask as mask
    from regard.attention import score as score
    from regard.attention.attend import Attended as Attended
    from regard.attention.attend import Attention as Attention
    from regard.attention.attend import attend as attend
    from regard.attention.heads import MultiHead as MultiHead
    from regard.attention.memory import Memory as Memory
    from regard.encoders.layer_table import layer_table as layer_table
    from regard.errors import RegardError as RegardError
    from regard.search.options import Search as Search
    from regard.systems.caption.model import Captioner as Captioner
    from regard.systems.classify.model import DocumentClassifier as DocumentClassifier
    from regard.systems.export import export as export
    from regard.systems.faithfulness import faithfulness as faithfulness
    from regard.systems.glimpse.model import Glimpser as Glimpser
    from regard.systems.pretrained import load as load
    from regard.systems.read.model import Reader as Reader
    from regard.systems.recognize.model import ImageClassifier as ImageClassifier
    from regard.systems.report import Report as Report
    from regard.systems.run import evaluate as evaluate
    from regard.systems.run import train as train
    from regard.systems.tape.model import TuringMachine as TuringMachine
    from regard.systems.translate.model import Translator as Translator
    from regard.trace import Trace as Trace
    from regard.viewing.view import view as view

# The module of each public name; a module is its own name. Nothing is imported, least of all torch, before it is used.
_MODULES = {
    "Attended": "regard.attention.attend",
    "Attention": "regard.attention.attend",
    "Captioner": "regard.systems.caption.model",
    "DocumentClassifier": "regard.systems.classify.model",
    "Glimpser": "regard.systems.glimpse.model",
    "ImageClassifier": "regard.systems.recognize.model",
    "Memory": "regard.attention.memory",
    "MultiHead": "regard.attention.heads",
    "Reader": "regard.systems.read.model",
    "RegardError": "regard.errors",
    "Report": "regard.systems.report",
    "Search": "regard.search.options",
    "Trace": "regard.trace",
    "Translator": "regard.systems.translate.model",
    "TuringMachine": "regard.systems.tape.model",
    "align": "regard.attention.align",
    "attend": "regard.attention.attend",
    "errors": "regard.errors",
    "evaluate": "regard.systems.run",
    "export": "regard.systems.export",
    "faithfulness": "regard.systems.faithfulness",
    "layer_table": "regard.encoders.layer_table",
    "load": "regard.systems.pretrained",
    "mask": "regard.attention.mask",
    "score": "regard.attention.score",
    "train": "regard.systems.run",
    "view": "regard.viewing.view",
    "viewing": "regard.viewing",
}

__all__ = sorted(["__version__", *_MODULES])


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module = import_module(_MODULES[name])
    value: object = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
