"""Commands that time regard on this machine."""

from pathlib import Path
from typing import Literal

from regard.cli.output import say


def bench(
    what: Literal["attention", "decode", "train"] = "attention", *, repeats: int = 7, json: Path | None = None
) -> None:
    """Time attention, decoding or training on this machine, side by side with what else there is.

    Leave the machine alone meanwhile: times are medians, but other work slows some more than others.

    Parameters
    ----------
    what
        attention (against the formula and against torch), decode (sentences in a second) or train (tokens in a second).
    repeats
        How often each is run.
    json
        Also write the numbers here.
    """
    from rich.console import Console

    from regard.bench import attention, contest, translators

    contests = {"attention": attention.contests, "decode": translators.decoding, "train": translators.training}[what]()
    results = contest.hold(contests, repeats=repeats)
    Console().print(contest.show(results, f"regard bench {what}"))
    if json is not None:
        contest.write(results, json)
        say(f"Wrote {json}")
