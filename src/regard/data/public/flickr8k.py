"""Preparing Flickr8k (Hodosh et al. 2013): captions with their official splits in one file.

`regard.data.captions.read_captions` loads that file, and the other formats of captions too.
"""

import gzip
import re
from pathlib import Path

from regard.data.captions import read_captions
from regard.data.text import find_members
from regard.errors import DataError
from regard.files import write_bytes

TEXTS = "Flickr8k_text.zip"
CAPTIONS = "captions.tsv.gz"
_LISTS = {"train": "trainImages", "dev": "devImages", "test": "testImages"}


def write_captions(folder: Path) -> None:
    """Write captions.tsv.gz (image, split, number, caption) from the token file and lists of Flickr8k_text.zip."""
    archive = folder / TEXTS
    members = find_members(archive)

    def member(ending: str) -> Path:
        names = [name for name in members if re.fullmatch(rf"(?!__MACOSX).*{re.escape(ending)}", name)]
        if len(names) != 1:
            raise DataError(f"{archive} must hold one file {ending}; it holds {len(names)}.")
        return archive / names[0]

    captions = read_captions(member("Flickr8k.token.txt"))
    captions = captions.split_by_lists({split: member(f"Flickr_8k.{name}.txt") for split, name in _LISTS.items()})
    lines = (
        f"{item.image}\t{item.split or 'none'}\t{number}\t{text}\n"
        for item in captions
        for number, text in enumerate(item.captions)
    )
    write_bytes(folder / CAPTIONS, gzip.compress("".join(lines).encode(), mtime=0))
