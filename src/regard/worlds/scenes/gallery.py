"""A contact sheet of pictures, to look at."""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from regard.errors import OptionError
from regard.worlds.scenes.pictures import Picture

if TYPE_CHECKING:
    from PIL import Image

# Pixels around the pictures, and of a line of text.
_SPACE, _LINE = 10, 15


def contact_sheet(
    pictures: Iterable[Picture], *, columns: int = 6, scale: int = 3, regions: bool = False
) -> "Image.Image":
    """Pictures in rows, each enlarged `scale` times and above its caption; `regions` draws the gold boxes too."""
    from PIL import Image, ImageDraw, ImageFont

    shown: Sequence[Picture] = list(pictures)
    if not shown or columns < 1 or scale < 1:
        raise OptionError(
            f"A contact sheet is of one or more pictures; got {len(shown)}, columns={columns}, scale={scale}."
        )
    width = max(len(picture.image) for picture in shown) * scale
    font = ImageFont.load_default(12)
    captions = [wrap(picture.caption, max(8, width // 6)) for picture in shown]
    height = width + _LINE * max(map(len, captions)) + 4
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    sheet = Image.new("RGB", (columns * (width + _SPACE) + _SPACE, rows * (height + _SPACE) + _SPACE), "white")
    pen = ImageDraw.Draw(sheet)
    for place, (picture, lines) in enumerate(zip(shown, captions, strict=True)):
        left, top = _SPACE + place % columns * (width + _SPACE), _SPACE + place // columns * (height + _SPACE)
        side = len(picture.image) * scale
        sheet.paste(Image.fromarray(picture.image).resize((side, side), Image.Resampling.NEAREST), (left, top))
        for x0, y0, x1, y1 in picture.boxes if regions else ():
            box = (left + x0 * scale, top + y0 * scale, left + x1 * scale, top + y1 * scale)
            pen.rectangle(box, outline=(20, 20, 20))
        for number, line in enumerate(lines):
            pen.text((left, top + side + 4 + number * _LINE), line, fill="black", font=font)
    return sheet
