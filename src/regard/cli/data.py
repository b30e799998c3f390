"""Commands about data to learn from."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.systems.output import say


def get(name: str, *, source: Annotated[Path | None, Parameter(name="--from")] = None, out: Path | None = None) -> None:
    """Download a data set and verify it, or take it from a folder.

    Parameters
    ----------
    name
        The name of a data set; `regard data list` lists them.
    source
        A folder that holds the files already, where there is no network.
    out
        Where to put them; by default a cache folder of the user.
    """
    from regard.data.download import get as download

    say(f"{name} is in {download(name, out, source=source)}")


def list_() -> None:
    """List the public data sets that `regard data get` knows: what they hold, their licences, how to train on them."""
    from rich.console import Console
    from rich.padding import Padding

    from regard.data.datasets import list_datasets

    console = Console()
    for dataset in list_datasets():
        how = f"fetched by hand: {dataset.by_hand}" if dataset.by_hand else "downloaded"
        console.print(f"[bold]{dataset.name}[/bold]  {dataset.size}, {how}", highlight=False)
        lines = [dataset.description, f"Licence: {dataset.licence}", f"Train: {dataset.training}"]
        console.print(Padding("\n".join(lines), (0, 0, 1, 4)), highlight=False, markup=False)


def newsgroups(
    *, source: Annotated[Path, Parameter(name="--from")], out: Annotated[Path, Parameter(alias="-o")], words: int = 100
) -> None:
    """Make text files of the 20 newsgroups: posts, and their subject lines to be found.

    Parameters
    ----------
    source
        A folder with *train*.jsonl and *test*.jsonl (maybe .xz), each line a post: {"text": ...}, with its headers.
    out
        Folder for train.body, train.subject, valid.body and so on.
    words
        Keep only so many words of each body; how many were cut is told.
    """
    from regard.data.newsgroups import prepare

    for part, counts in prepare(source, out, words=words).items():
        say(f"{part}: {counts}")
    say(f"Wrote {out}. Train on it: regard train newsgroups-subject --data.folder {out}")


def babel(source: str = "en", target: str = "fr", *, count: int = 2000, seed: int = 0, show: int = 5) -> None:
    """Statistics and examples of the generated world babel.

    Parameters
    ----------
    source
        en, fr, de or fa.
    target
        Another of these.
    count
        Sentence pairs to count in.
    seed
        Which pairs.
    show
        Examples to print.
    """
    from dataclasses import asdict
    from itertools import islice

    from regard.worlds.babel import pairs, statistics

    for name, value in asdict(statistics(source, target, count=count, seed=seed)).items():
        say(f"{name:24} {value if not isinstance(value, float) else round(value, 3)}")
    for pair in islice(pairs(source, target, seed=seed), show):
        say(f"\n{' '.join(pair.source)}\n{' '.join(pair.target)}")


def scenes(
    *, count: int = 2000, seed: int = 0, show: int = 5, out: Annotated[Path | None, Parameter(alias="-o")] = None
) -> None:
    """Statistics and examples of the generated world scenes.

    Parameters
    ----------
    count
        Pictures to count in.
    seed
        Which pictures.
    show
        Examples: captions to print, or pictures on the contact sheet.
    out
        Save a contact sheet of the examples here (.png), with their captions.
    """
    from dataclasses import asdict
    from itertools import islice

    from regard.errors import OptionError
    from regard.worlds.scenes import contact_sheet, statistics
    from regard.worlds.scenes import scenes as generate

    if out is not None and out.suffix.lower() != ".png":
        raise OptionError(f"A contact sheet is saved as .png; got {out.name!r}.")
    for name, value in asdict(statistics(count=count, seed=seed)).items():
        say(f"{name:24} {value if not isinstance(value, float) else round(value, 3)}")
    examples = list(islice(generate(seed=seed), show))
    if out is None:
        say("".join(f"\n{picture.caption}" for picture in examples))
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        contact_sheet(examples).save(out)
        say(f"Wrote {out}")
