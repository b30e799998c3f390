"""Captions from the files in which data sets publish them, and their splits by picture."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from regard.data.text import read_all, read_lines
from regard.errors import DataError, OptionError

SPLITS = {
    "train": "train",
    "restval": "train",
    "val": "valid",
    "valid": "valid",
    "validation": "valid",
    "dev": "valid",
    "test": "test",
}
"""What data sets call a split, and what it is called here; Karpathy's restval is the rest of COCO's validation set."""
_COLUMNS = {
    "image": ("image", "image_name", "image_id", "filename", "file_name", "id", "path"),
    "caption": ("caption", "comment", "text", "raw", "sentence", "description"),
    "split": ("split", "set", "subset"),
}
_FLICKR = re.compile(r"(.+)#\d+\t(.*)")
# A file with a larger share of lines that cannot be read is not what it was taken for.
_TOLERATED = 0.01
# Image, caption, split; and what is wrong with a line that has none of these.
_Row = tuple[str, str, str]


@dataclass(frozen=True)
class Captioned:
    """A picture by its name, what people wrote of it, and the split it belongs to ("" where there is none)."""

    image: str
    captions: tuple[str, ...]
    split: str = ""


@dataclass(frozen=True)
class Captions:
    """Captioned pictures, each once, in the order of the file."""

    pictures: tuple[Captioned, ...]
    left_out: tuple[str, ...] = ()
    """Lines that could not be read, or that hold no caption, and why."""

    def __len__(self) -> int:
        return len(self.pictures)

    def __iter__(self) -> Iterator[Captioned]:
        return iter(self.pictures)

    def __getitem__(self, place: int) -> Captioned:
        return self.pictures[place]

    def of(self, split: str) -> "Captions":
        """Those of one split: train, valid or test."""
        if split not in SPLITS.values():
            raise OptionError(f"There is no split {split!r}; choose from {', '.join(dict.fromkeys(SPLITS.values()))}.")
        return Captions(tuple(one for one in self.pictures if one.split == split))

    def divided(self, *, valid: int, test: int, seed: int = 0) -> "Captions":
        """Split as Karpathy splits: so many whole pictures for validation and for testing, the others for training.

        Which they are depends on their names and the seed alone, not on the order of the file. Karpathy and Fei-Fei
        2015 take 1,000 and 1,000 of Flickr8k and Flickr30k, and 5,000 and 5,000 of COCO.
        """
        if min(valid, test) < 0 or valid + test >= len(self):
            raise OptionError(
                f"{len(self)} pictures cannot give {valid} for validation, {test} for testing and some more."
            )
        order = sorted(self.pictures, key=lambda one: blake2b(f"{seed} {one.image}".encode(), digest_size=8).digest())
        split = {one.image: "test" if place < test else "valid" for place, one in enumerate(order[: test + valid])}
        return replace(self, pictures=tuple(replace(one, split=split.get(one.image, "train")) for one in self))

    def listed(self, lists: Mapping[str, str | os.PathLike[str]]) -> "Captions":
        """Split by files with a name a line, as Flickr8k has them; pictures in no list are in no split.

        `captions.listed({"train": "Flickr_8k.trainImages.txt", "valid": "Flickr_8k.devImages.txt", ...})`
        """
        split: dict[str, str] = {}
        for name, path in lists.items():
            for image in filter(None, (line.strip() for line in read_lines(path))):
                if split.setdefault(image, _split(name)) != _split(name):
                    raise DataError(f"{image} is in the list of {split[image]} and in that of {_split(name)}.")
        found = tuple(replace(one, split=split.get(one.image, "")) for one in self)
        if not any(one.split for one in found):
            raise DataError(
                f"None of the {len(self)} pictures is in a list: they are called {self.pictures[0].image!r}, ..., and "
                f"in the lists {next(iter(split), 'nothing')!r}, ..."
            )
        return replace(self, pictures=found)


def read_captions(path: str | os.PathLike[str]) -> Captions:
    """Captions from a file, plain or compressed (.gz, .xz, .zip), of one of these forms, which it is told by:

    - JSON of COCO ("images" and "annotations") or of Karpathy ("images" with "sentences" and "split");
    - Flickr8k and Flickr30k tokens: picture#number, tab, caption;
    - a table with a line of names above it, with commas, semicolons, bars or tabs (image, caption, maybe split);
    - a table without, with tabs: picture and caption; or picture, split, number and caption.

    A line without a caption is left out and told; a file with many such lines is refused.
    """
    path = Path(path)
    endings = [suffix.lower() for suffix in path.suffixes]
    rows = _json(path) if ".json" in endings else _lines(path)
    found: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    wrong: list[str] = []
    right = 0
    for row in rows:
        if isinstance(row, str):
            wrong.append(row)
            continue
        right += 1
        image, caption, split = row
        found.setdefault(image, []).append(caption)
        if splits.setdefault(image, split) != split:
            raise DataError(f"{path}: {image} is in the split {splits[image]!r} and in {split!r}.")
    if not found or len(wrong) > max(1, _TOLERATED * right):
        detail = (
            f"{len(wrong)} of {right + len(wrong)} lines cannot be read, the first: {wrong[0]}"
            if wrong
            else "it is empty"
        )
        raise DataError(f"{path} does not hold captions in a form that read_captions knows: {detail}.")
    return Captions(
        tuple(Captioned(image, tuple(captions), splits[image]) for image, captions in found.items()), tuple(wrong)
    )


def _split(name: str) -> str:
    name = name.strip().lower()
    if name in ("", "none"):
        return ""
    if name not in SPLITS:
        raise DataError(f"{name!r} is no split; known are {', '.join(SPLITS)}.")
    return SPLITS[name]


def _json(path: Path) -> Iterator[_Row | str]:
    try:
        content = json.loads(read_all(path))
        images = content["images"]
        if "annotations" in content:
            names = {image["id"]: image["file_name"] for image in images}
            rows = ((names[one["image_id"]], one["caption"], "") for one in content["annotations"])
        else:
            # COCO's pictures lie in one folder for each of its own splits.
            rows = (
                ("/".join(filter(None, (image.get("filepath"), image["filename"]))), one["raw"], image["split"])
                for image in images
                for one in image["sentences"]
            )
        for number, (image, caption, split) in enumerate(rows, 1):
            yield _row(image, caption, split, f"caption {number}")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is no JSON of captions in the form of COCO or Karpathy: {error!r}.") from error


def _lines(path: Path) -> Iterator[_Row | str]:
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return iter(())
    whole = chain([first], lines)
    if _FLICKR.fullmatch(first):
        return _flickr(whole)
    if (header := _header(first)) is not None:
        return _table(lines, *header)
    if "\t" in first:
        return _plain_table(whole, len(first.split("\t")))
    raise DataError(f"{path} does not hold captions in a form that read_captions knows; it starts with {first[:80]!r}.")


def _flickr(lines: Iterable[str]) -> Iterator[_Row | str]:
    for number, line in enumerate(lines, 1):
        match = _FLICKR.fullmatch(line)
        yield _row(match[1], match[2], "", f"line {number}") if match else f"line {number}: {line[:60]!r}"


def _header(line: str) -> tuple[str, dict[str, int]] | None:
    """The separator and the columns of a table, if this is the line with their names."""
    for separator in ",\t|;":
        names = [name.strip().strip('"').lower() for name in line.split(separator)]
        columns = {
            part: names.index(known[0])
            for part, aliases in _COLUMNS.items()
            if (known := [alias for alias in aliases if alias in names])
        }
        if "image" in columns and "caption" in columns:
            return separator, columns
    return None


def _table(lines: Iterable[str], separator: str, columns: dict[str, int]) -> Iterator[_Row | str]:
    # Captions with a separator are quoted in tables with commas; in the others a quotation mark is just one.
    if separator in ",;":
        rows: Iterable[list[str]] = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    else:
        rows = (line.split(separator) for line in lines)
    for number, cells in enumerate(rows, 2):
        if len(cells) <= max(columns.values()):
            yield f"line {number}: {len(cells)} column(s): {separator.join(cells)[:60]!r}"
        else:
            split = cells[columns["split"]] if "split" in columns else ""
            yield _row(cells[columns["image"]], cells[columns["caption"]], split, f"line {number}")


def _plain_table(lines: Iterable[str], width: int) -> Iterator[_Row | str]:
    pick: dict[int, Callable[[Sequence[str]], tuple[str, str, str]]] = {
        2: lambda cells: (cells[0], cells[1], ""),
        4: lambda cells: (cells[0], cells[3], cells[1]),
    }
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if width not in pick or len(cells) != width:
            yield f"line {number}: {len(cells)} column(s): {line[:60]!r}"
        else:
            yield _row(*pick[width](cells), f"line {number}")


def _row(image: Any, caption: Any, split: Any, where: str) -> _Row | str:
    image, caption = str(image).strip(), " ".join(str(caption).split())
    if not image or not caption:
        return (
            f"{where}: {image or 'no picture'} without a caption" if image else f"{where}: a caption without a picture"
        )
    return image, caption, _split(str(split))
