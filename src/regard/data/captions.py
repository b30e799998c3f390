"""Reading captions from the file formats of public data sets, and splitting them by image."""

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from regard.data.text import read_all, read_lines, well_formed
from regard.errors import DataError, OptionError, counted

SPLITS = {
    "train": "train",
    "restval": "train",
    "val": "valid",
    "valid": "valid",
    "validation": "valid",
    "dev": "valid",
    "test": "test",
}
"""Names of splits in data sets, and here; Karpathy's restval is the part of COCO's validation set used for training."""
_COLUMNS = {
    "image": ("image", "image_name", "image_id", "filename", "file_name", "id", "path"),
    "caption": ("caption", "comment", "text", "raw", "sentence", "description"),
    "split": ("split", "set", "subset"),
}
# Of tables without a header, by their number of columns.
_PLAIN = {2: {"image": 0, "caption": 1}, 4: {"image": 0, "split": 1, "caption": 3}}
_FLICKR = re.compile(r"(.+)#\d+\t(.*)")
# A file in which more lines than this cannot be read is refused.
_MAX_BAD_FRACTION = 0.01
# Image, caption and split.
_Row = tuple[str, str, str]


@dataclass(frozen=True)
class ImageCaptions:
    """The captions of one image, which is given by its name."""

    image: str
    captions: tuple[str, ...]
    split: str = ""
    """train, valid or test; empty if the file states none."""


@dataclass(frozen=True)
class Captions:
    """The captions of many images, each image once, in the order of the file."""

    images: tuple[ImageCaptions, ...]
    left_out: tuple[str, ...] = ()
    """Lines that were left out because they could not be read or hold no caption, and why."""

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[ImageCaptions]:
        return iter(self.images)

    def __getitem__(self, index: int) -> ImageCaptions:
        return self.images[index]

    def select(self, split: str) -> "Captions":
        """Return the captions of one split: train, valid or test."""
        if split not in SPLITS.values():
            raise OptionError(f"There is no split {split!r}; choose from {', '.join(dict.fromkeys(SPLITS.values()))}.")
        return Captions(tuple(image for image in self.images if image.split == split))

    def split_by_hash(self, *, valid: int, test: int, seed: int = 0) -> "Captions":
        """Split into `valid` images for validation, `test` images for testing, and the rest for training.

        The split depends only on the names of the images and the seed, not on the order of the file. Karpathy and
        Fei-Fei 2015 hold out 1,000 and 1,000 images of Flickr8k and Flickr30k, and 5,000 and 5,000 of COCO.
        """
        if min(valid, test) < 0 or valid + test >= len(self):
            raise OptionError(
                f"{len(self)} images are too few for {valid} to validate with, {test} to test with and others to "
                "train on."
            )

        def number(item: ImageCaptions) -> bytes:
            return blake2b(f"{seed} {item.image}".encode(), digest_size=8).digest()

        chosen = sorted(self.images, key=number)[: test + valid]
        split = {item.image: "test" if index < test else "valid" for index, item in enumerate(chosen)}
        return replace(self, images=tuple(replace(item, split=split.get(item.image, "train")) for item in self))

    def split_by_lists(self, lists: Mapping[str, str | os.PathLike[str]]) -> "Captions":
        """Split by text files with one image name per line, as Flickr8k has; images in no list get no split.

        `captions.split_by_lists({"train": "Flickr_8k.trainImages.txt", "valid": "Flickr_8k.devImages.txt", ...})`
        """
        split: dict[str, str] = {}
        for name, path in lists.items():
            for image in filter(None, (line.strip() for line in read_lines(path))):
                if split.setdefault(image, _split(name)) != _split(name):
                    raise DataError(f"{image} is in the list for {split[image]} and in the list for {_split(name)}.")
        images = tuple(replace(item, split=split.get(item.image, "")) for item in self)
        if not any(item.split for item in images):
            listed = f"is {next(iter(split))!r}" if split else "does not exist: the lists are empty"
            raise DataError(
                f"None of the {len(self)} images is in a list: the first image is {self.images[0].image!r}, the first "
                f"name in the lists {listed}."
            )
        return replace(self, images=images)


def read_captions(path: str | os.PathLike[str]) -> Captions:
    """Read captions from a file, plain or compressed (.gz, .xz, .zip). The format is detected; it is one of these:

    - JSON of COCO ("images" and "annotations") or of Karpathy ("images" with "sentences" and "split");
    - the token files of Flickr8k and Flickr30k: image#number, tab, caption;
    - a table with a header line, separated by commas, semicolons, bars or tabs (image, caption, optionally split);
    - a tab-separated table without a header: image and caption; or image, split, number and caption.

    Blank lines are skipped. A line without a caption is left out and listed in `left_out`; a file with many such lines
    is refused.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    rows = _json(path) if ".json" in suffixes else _lines(path)
    captions: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    bad: list[str] = []
    num_good = 0
    for row in rows:
        if isinstance(row, str):
            bad.append(row)
            continue
        num_good += 1
        image, caption, split = row
        captions.setdefault(image, []).append(caption)
        if splits.setdefault(image, split) != split:
            raise DataError(f"{path}: {image} is in the split {splits[image]!r} and in the split {split!r}.")
    if not captions or len(bad) > max(1, _MAX_BAD_FRACTION * num_good):
        total = num_good + len(bad)
        detail = f"{len(bad)} of {total} lines cannot be read, the first: {bad[0]}" if bad else "it is empty"
        raise DataError(f"{path} does not hold captions in a known format: {detail}.")
    images = (ImageCaptions(image, tuple(texts), splits[image]) for image, texts in captions.items())
    return Captions(tuple(images), tuple(bad))


def _split(name: str) -> str:
    name = name.strip().lower()
    if name in ("", "none"):
        return ""
    if name not in SPLITS:
        raise DataError(f"{name!r:.60} is not the name of a split; known names are {', '.join(SPLITS)}.")
    return SPLITS[name]


def _json(path: Path) -> Iterator[_Row | str]:
    try:
        content = json.loads(read_all(path).decode("utf-8-sig"))
        images = content["images"]
        if "annotations" in content:
            names = {image["id"]: image["file_name"] for image in images}
            rows = ((names[note["image_id"]], note["caption"], "") for note in content["annotations"])
        else:
            # The images of COCO are in one folder for each of its own splits.
            rows = (
                ("/".join(filter(None, (image.get("filepath"), image["filename"]))), sentence["raw"], image["split"])
                for image in images
                for sentence in image["sentences"]
            )
        for number, (image, caption, split) in enumerate(rows, 1):
            yield _row(image, caption, split, f"caption {number}")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path} is not a JSON file of captions as COCO or Karpathy write it: {error!r:.200}."
        ) from error


def _lines(path: Path) -> Iterator[_Row | str]:
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return iter(())
    whole = chain([first], lines)
    if _FLICKR.fullmatch(first):
        matches = ((_FLICKR.fullmatch(line), line) for line in whole)
        return _table((list(match.groups()) if match else [line] for match, line in matches), _PLAIN[2], 1)
    if (header := _header(first)) is not None:
        separator, columns = header
        # Fields are quoted in tables with commas; in the others a quotation mark is an ordinary character.
        rows = _csv(path, lines, separator) if separator in ",;" else (line.split(separator) for line in lines)
        return _table(rows, columns, 2, separator=separator)
    if "\t" in first:
        width = 4 if first.count("\t") == 3 else 2
        return _table((line.split("\t") for line in whole), _PLAIN[width], 1, width)
    raise DataError(f"{path} does not hold captions in a known format; it starts with {first[:80]!r}.")


def _header(line: str) -> tuple[str, dict[str, int]] | None:
    """Return the separator and columns of a table if this line is its header, else None."""
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


def _csv(path: Path, lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(
            f"{path}: line {reader.line_num + 1} is not a line of a table: {error}. Is a quotation mark not closed?"
        ) from error


def _table(
    rows: Iterable[list[str]],
    columns: Mapping[str, int],
    first: int,
    width: int | None = None,
    *,
    separator: str = "\t",
) -> Iterator[_Row | str]:
    """Pick the columns of each row; the `first` row is on this line. A row of another `width` is a bad one."""
    for number, cells in enumerate(rows, first):
        if not any(map(str.strip, cells)):
            continue
        if len(cells) <= max(columns.values()) or width not in (None, len(cells)):
            yield f"line {number}: {counted(len(cells), 'column')}: {separator.join(cells)[:60]!r}"
        else:
            split = cells[columns["split"]] if "split" in columns else ""
            yield _row(cells[columns["image"]], cells[columns["caption"]], split, f"line {number}")


def _row(image: Any, caption: Any, split: Any, where: str) -> _Row | str:
    # In JSON, a name or caption may be null.
    image, caption = (well_formed(text) if isinstance(text, str) else "" for text in (image, caption))
    image, caption = image.strip(), " ".join(caption.split())
    if not image:
        return f"{where}: a caption without an image"
    if not caption:
        return f"{where}: {image} without a caption"
    return image, caption, _split(str(split))
