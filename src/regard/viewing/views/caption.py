"""Captions: each word over the image it describes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from regard.viewing import terminal_image
from regard.viewing.view import View, check_options, check_suffix

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


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

        selected = self._select(layer=layer, head=head, name=name)
        if title is None:
            title = selected.axis(selected.main.rows).text
        return word_by_word(selected, cells=cells, overlay=overlay, columns=columns, title=title)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure or the page, or an animation to a GIF file, by the suffix of the path.

        `options` are those of `figure`; for a GIF those of `caption_figures.animation`.
        """
        if check_suffix(path, self.SUFFIXES) != ".gif":
            return super().save(path, **options)
        from regard.viewing.caption_figures import animation
        from regard.viewing.figures import save

        selection = {key: options.pop(key, None) for key in ("layer", "head", "name")}
        check_options(animation, options)
        return save(animation(self._select(**selection), **options), path)

    def terminal(
        self, *, width: int = 80, colour: bool = True, cells: bool = False, overlay: str = "light", **options: Any
    ) -> RenderableType:
        """The word-by-word tiles for a terminal of this width, in shades of one character without `colour`."""
        check_options(self._select, options)
        selected = self._select(**options)
        return terminal_image.word_by_word(
            selected, width=width, side=min(18, width), cells=cells, overlay=overlay, colour=colour
        )


VIEW = CaptionView
