"""Preparing the aligned Hansards of the 36th Parliament of Canada (Germann 2001): one file of sentence pairs."""

import gzip
import io
import tarfile
from pathlib import Path

from regard.data.text import read_limited, reading
from regard.errors import DataError, counted
from regard.files import replacing

ARCHIVE = "hansard.36.r2001-1a.house.debates.training.tar"
PAIRS = "hansards.en-fr.tsv.gz"


def write_pairs(folder: Path) -> None:
    """Write hansards.en-fr.tsv.gz (English, tab, French) from the archive of the House debates.

    The archive holds gzipped Latin-1 files, NAME.e.gz with English and NAME.f.gz with French sentences, line by line.
    Pairs with an empty side are left out.
    """
    archive = folder / ARCHIVE
    with (
        reading(archive),
        tarfile.open(archive) as tar,
        replacing(folder / PAIRS) as draft,
        draft.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as out,
    ):
        files = {member.name: member for member in tar if member.isfile()}
        english = sorted(name for name in files if name.endswith(".e.gz"))
        if not english:
            raise DataError(f"{archive} holds no *.e.gz files.")
        for name in english:
            french = name.removesuffix(".e.gz") + ".f.gz"
            if french not in files:
                raise DataError(f"{archive} holds {name} without {french}.")
            sources, targets = _lines(tar, files[name]), _lines(tar, files[french])
            if len(sources) != len(targets):
                raise DataError(
                    f"{archive}: {name} has {counted(len(sources), 'line')} and {french} has {len(targets)}; the "
                    "numbers of lines must be equal."
                )
            pairs = (pair for pair in zip(sources, targets, strict=True) if all(pair))
            out.write("".join(f"{source}\t{target}\n" for source, target in pairs).encode())


def _lines(tar: tarfile.TarFile, member: tarfile.TarInfo) -> list[str]:
    stream = tar.extractfile(member)
    packed = b"" if stream is None else read_limited(stream, member.name)
    with gzip.open(io.BytesIO(packed)) as unpacked:
        content = read_limited(unpacked, member.name)
    return [" ".join(line.split()) for line in content.decode("latin-1").removesuffix("\n").split("\n")]
