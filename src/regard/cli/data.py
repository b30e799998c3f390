"""Commands about data to learn from."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.io import Flag, SafeConsole, check_folder, check_outputs, mark_folder, print_line
from regard.cli.listings import print_entry
from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.worlds.described import Row

Language = Literal["en", "fr", "de", "fa"]
"""A language of the world babel."""


def get(name: str, *, source: Annotated[Path | None, Parameter(name="--from")] = None, out: Path | None = None) -> None:
    """Download a data set and verify it, or copy it from a folder.

    Parameters
    ----------
    name
        The name of a data set; `regard data list` lists them.
    source
        A folder with the files, if you already have them.
    out
        Where to store the files; by default in the user's cache folder.
    """
    from regard.data.public.download import get as download

    print_line(f"{name} is in {download(name, out, source=source)}")


def list_() -> None:
    """List the public data sets that `regard data get` knows: what they hold, their licences, how to train on them."""
    from regard.data.public.datasets import list_datasets

    for dataset in list_datasets():
        how = f"manual download: {dataset.by_hand}" if dataset.by_hand else "downloaded"
        lines = (dataset.description, f"Licence: {dataset.licence}", f"Train: {dataset.training}")
        print_entry(dataset.name, f"{dataset.size}, {how}", *lines)


def newsgroups(
    *,
    source: Annotated[Path, Parameter(name="--from")],
    out: Annotated[Path, Parameter(alias="-o")],
    words: int = 100,
    overwrite: Flag = False,
) -> None:
    """Prepare the 20 newsgroups: text files with the posts and with their subject lines.

    Parameters
    ----------
    source
        A folder with *train*.jsonl and *test*.jsonl (maybe .xz), each line a post: {"text": ...}, with its headers.
    out
        Folder for train.body, train.subject, valid.body and so on.
    words
        Keep at most this many words of each body; how many were cut is reported.
    overwrite
        Write into a folder that holds other files.
    """
    from regard.data.public.newsgroups import prepare

    check_folder(out, overwrite=overwrite)
    for part, counts in prepare(source, mark_folder(out), words=words).items():
        print_line(f"{part}: {counts}")
    print_line(f"Wrote {out}. Train on it: regard train newsgroups-subject --data.folder {out}")


def babel(source: Language = "en", target: Language = "fr", *, count: int = 2000, seed: int = 0, show: int = 5) -> None:
    """Print statistics and examples of the generated world babel.

    Parameters
    ----------
    source
        The language of the source sentences.
    target
        The language of the target sentences.
    count
        Number of sentence pairs to compute the statistics from.
    seed
        Seed of the pairs.
    show
        Number of examples to print.
    """
    from itertools import islice

    from regard.worlds.babel import pairs, statistics

    _check_counts(count, show)
    _print_statistics(statistics(source, target, count=count, seed=seed).rows())
    for pair in islice(pairs(source, target, seed=seed), show):
        print_line(f"\n{' '.join(pair.source)}\n{' '.join(pair.target)}")


def scenes(
    *,
    count: int = 2000,
    seed: int = 0,
    show: int = 5,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    overwrite: Flag = False,
) -> None:
    """Print statistics and examples of the generated world scenes.

    Parameters
    ----------
    count
        Number of images to compute the statistics from.
    seed
        Seed of the images.
    show
        Number of examples: captions to print, or images on the contact sheet.
    out
        Save a contact sheet of the examples here (.png), with their captions.
    overwrite
        Replace a file that exists.
    """
    from itertools import islice

    from regard.files import replacing
    from regard.worlds.scenes import contact_sheet, statistics
    from regard.worlds.scenes import scenes as generate

    _check_counts(count, show)
    if out is not None and out.suffix.lower() != ".png":
        raise OptionError(f"A contact sheet is saved as .png; got {out.name!r}.")
    check_outputs({"--out": out}, overwrite=overwrite)
    _print_statistics(statistics(count=count, seed=seed).rows())
    examples = list(islice(generate(seed=seed), show))
    if out is None:
        print_line("".join(f"\n{scene.caption}" for scene in examples))
    else:
        with replacing(out) as draft:
            contact_sheet(examples).save(draft, "PNG")
        print_line(f"Wrote {out}")


def _check_counts(count: int, show: int) -> None:
    if count < 1 or show < 0:
        raise OptionError(f"--count must be 1 or more and --show 0 or more; got {count} and {show}.")


def _print_statistics(rows: "Iterable[Row]") -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold", style="dim")
    for row in rows:
        value = f"{row.value:.3f}" if isinstance(row.value, float) else f"{row.value:,}"
        table.add_row(row.name.replace("_", " "), value, row.description)
    SafeConsole().print(table)
