"""Captions: each word over the image it describes."""

import os
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from regard.viewing import terminal_image
from regard.viewing.view import View, check_options, check_suffix, mean_note, with_mean_note

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

_SELECTION = ("layer", "head", "name")


class CaptionView(View):
    """A caption, word by word over its image."""

    ELEMENTS = ("image", "matrix")
    SUFFIXES = (*View.SUFFIXES, ".gif")

    def figure(  # type: ignore[override]
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
        columns: int = 7,
        title: str | None = None,
    ) -> "InlineFigure":
        """The word-by-word figure; its options are explained at `caption_figures.word_by_word`."""
        from regard.viewing.caption_figures import word_by_word
        from regard.viewing.figures import add_note

        selected = self._select(layer=layer, head=head, name=name)
        if title is None:
            title = selected.axis(selected.main.rows).text
        drawn = word_by_word(selected, cells=cells, overlay=overlay, columns=columns, title=title)
        return add_note(drawn, mean_note(selected))

    def options(self, path: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """The options of `figure`, for a GIF those of `caption_figures.animation`, for the terminal its own."""
        if path is None or Path(path).suffix.lower() != ".gif":
            return super().options(path)
        from regard.viewing.caption_figures import animation

        return (*_SELECTION, *list(signature(animation).parameters)[1:])

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure or the page, or an animation to a GIF file, by the suffix of the path.

        `options` are those of `figure`; for a GIF those of `caption_figures.animation`.
        """
        if check_suffix(path, self.SUFFIXES) != ".gif":
            return super().save(path, **options)
        from regard.viewing.caption_figures import animation
        from regard.viewing.figures import save

        check_options(self.options(path), options)
        selection = {key: options.pop(key, None) for key in _SELECTION}
        return save(animation(self._select(**selection), **options), path)

    def terminal(  # type: ignore[override]
        self,
        *,
        width: int = 80,
        colour: bool = True,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
    ) -> RenderableType:
        """The word-by-word tiles for a terminal of this width, in shades of one character without `colour`."""
        selected = self._select(layer=layer, head=head, name=name)
        drawn = terminal_image.word_by_word(
            selected, width=width, side=min(18, width), cells=cells, overlay=overlay, colour=colour
        )
        return with_mean_note(drawn, selected)


VIEW = CaptionView
