"""From a Trace or a measure to something to look at: pages, figures, animations and the terminal.

    regard.view(trace).save("map.html")
    regard.viewing.save(regard.viewing.matrix.figure(trace, title="A title"), "map.png")

`matrix`, `heads` and `lines` draw any trace. Nothing is imported before it is used; matplotlib is imported by the first
figure.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.viewing import heads, lines, matrix
    from regard.viewing.figures import Animation, InlineFigure, save
    from regard.viewing.gallery import GalleryCaption, save_gallery
    from regard.viewing.length_curves import length_curve, length_table
    from regard.viewing.view import View

__all__ = [
    "Animation",
    "GalleryCaption",
    "InlineFigure",
    "View",
    "heads",
    "length_curve",
    "length_table",
    "lines",
    "matrix",
    "save",
    "save_gallery",
]

_FILES = {
    "Animation": "figures",
    "GalleryCaption": "gallery",
    "InlineFigure": "figures",
    "View": "view",
    "length_curve": "length_curves",
    "length_table": "length_curves",
    "save": "figures",
    "save_gallery": "gallery",
}
"""Where the names are that are not files themselves."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'regard.viewing' has no attribute {name!r}")
    module = import_module(f"regard.viewing.{_FILES.get(name, name)}")
    value: object = getattr(module, name) if name in _FILES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
