"""A contact sheet of scenes for viewing."""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from regard.errors import OptionError
from regard.worlds.scenes.scene import Scene

if TYPE_CHECKING:
    from PIL import Image

# Pixels between images, and height of a line of text.
_MARGIN, _LINE_HEIGHT = 10, 15


def contact_sheet(scenes: Iterable[Scene], *, columns: int = 6, scale: int = 3, regions: bool = False) -> "Image.Image":
    """Draw scenes in rows, each enlarged `scale` times above its caption; `regions` draws the gold boxes too."""
    from PIL import Image, ImageDraw, ImageFont

    items: Sequence[Scene] = list(scenes)
    if not items or columns < 1 or scale < 1:
        raise OptionError(
            f"A contact sheet needs at least one scene, column and scale; got {len(items)} scenes, columns={columns}, "
            f"scale={scale}."
        )
    width = max(len(scene.image) for scene in items) * scale
    font = ImageFont.load_default(12)
    captions = [wrap(scene.caption, max(8, width // 6)) for scene in items]
    height = width + _LINE_HEIGHT * max(map(len, captions)) + 4
    columns = min(columns, len(items))
    rows = -(-len(items) // columns)
    sheet = Image.new("RGB", (columns * (width + _MARGIN) + _MARGIN, rows * (height + _MARGIN) + _MARGIN), "white")
    pen = ImageDraw.Draw(sheet)
    for index, (scene, lines) in enumerate(zip(items, captions, strict=True)):
        left, top = _MARGIN + index % columns * (width + _MARGIN), _MARGIN + index // columns * (height + _MARGIN)
        side = len(scene.image) * scale
        sheet.paste(Image.fromarray(scene.image).resize((side, side), Image.Resampling.NEAREST), (left, top))
        for x0, y0, x1, y1 in scene.boxes if regions else ():
            box = (left + x0 * scale, top + y0 * scale, left + x1 * scale, top + y1 * scale)
            pen.rectangle(box, outline=(20, 20, 20))
        for number, line in enumerate(lines):
            pen.text((left, top + side + 4 + number * _LINE_HEIGHT), line, fill="black", font=font)
    return sheet
