"""regard: attention models you can train, measure and look inside."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Attended",
    "Attention",
    "Captioner",
    "DocumentClassifier",
    "Glimpser",
    "ImageClassifier",
    "Memory",
    "MultiHead",
    "Reader",
    "RegardError",
    "Report",
    "Search",
    "Trace",
    "Translator",
    "TuringMachine",
    "__version__",
    "align",
    "attend",
    "errors",
    "evaluate",
    "faithfulness",
    "layer_table",
    "load",
    "mask",
    "score",
    "train",
    "view",
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
    from regard.search.options import Search
    from regard.systems.caption.model import Captioner
    from regard.systems.classify.model import DocumentClassifier
    from regard.systems.faithfulness import faithfulness
    from regard.systems.glimpse.model import Glimpser
    from regard.systems.pretrained import load
    from regard.systems.read.model import Reader
    from regard.systems.recognize.model import ImageClassifier
    from regard.systems.report import Report
    from regard.systems.run import evaluate, train
    from regard.systems.tape.model import TuringMachine
    from regard.systems.translate.model import Translator
    from regard.trace import Trace
    from regard.viewing.view import view

# Where each public name lives, "module" or "module:name". Nothing is imported, least of all torch, before it is used.
_HOMES = {
    "TuringMachine": "regard.systems.tape.model:TuringMachine",
    "Glimpser": "regard.systems.glimpse.model:Glimpser",
    "DocumentClassifier": "regard.systems.classify.model:DocumentClassifier",
    "Attended": "regard.attention.attend:Attended",
    "Attention": "regard.attention.attend:Attention",
    "Captioner": "regard.systems.caption.model:Captioner",
    "ImageClassifier": "regard.systems.recognize.model:ImageClassifier",
    "Memory": "regard.attention.memory:Memory",
    "MultiHead": "regard.attention.heads:MultiHead",
    "Reader": "regard.systems.read.model:Reader",
    "RegardError": "regard.errors:RegardError",
    "Report": "regard.systems.report:Report",
    "Search": "regard.search.options:Search",
    "Trace": "regard.trace:Trace",
    "Translator": "regard.systems.translate.model:Translator",
    "align": "regard.attention.align",
    "attend": "regard.attention.attend:attend",
    "errors": "regard.errors",
    "evaluate": "regard.systems.run:evaluate",
    "faithfulness": "regard.systems.faithfulness:faithfulness",
    "layer_table": "regard.encoders.layer_table:layer_table",
    "load": "regard.systems.pretrained:load",
    "mask": "regard.attention.mask",
    "score": "regard.attention.score",
    "train": "regard.systems.run:train",
    "view": "regard.viewing.view:view",
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
