"""From a Trace or a measure to something to look at: figures, animations and the terminal.

    regard.viewing.save(regard.viewing.heat_map(trace), "map.png")

Nothing is imported before it is used; matplotlib is imported by the first figure.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.viewing import terminal
    from regard.viewing.caption_figures import animation, word_by_word
    from regard.viewing.figures import Animation, InlineFigure, save
    from regard.viewing.gallery import GalleryCaption, save_gallery
    from regard.viewing.heat_map_figures import heat_map, heat_maps
    from regard.viewing.length_curves import length_curve
    from regard.viewing.line_figures import lines
    from regard.viewing.view import View

__all__ = [
    "Animation",
    "GalleryCaption",
    "InlineFigure",
    "View",
    "animation",
    "heat_map",
    "heat_maps",
    "length_curve",
    "lines",
    "save",
    "save_gallery",
    "terminal",
    "word_by_word",
]

_HOMES = {
    "Animation": "regard.viewing.figures:Animation",
    "GalleryCaption": "regard.viewing.gallery:GalleryCaption",
    "InlineFigure": "regard.viewing.figures:InlineFigure",
    "View": "regard.viewing.view:View",
    "animation": "regard.viewing.caption_figures:animation",
    "heat_map": "regard.viewing.heat_map_figures:heat_map",
    "heat_maps": "regard.viewing.heat_map_figures:heat_maps",
    "length_curve": "regard.viewing.length_curves:length_curve",
    "lines": "regard.viewing.line_figures:lines",
    "save": "regard.viewing.figures:save",
    "save_gallery": "regard.viewing.gallery:save_gallery",
    "terminal": "regard.viewing.terminal",
    "word_by_word": "regard.viewing.caption_figures:word_by_word",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.viewing' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    home = import_module(module)
    value: object = getattr(home, attribute) if attribute else home
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
