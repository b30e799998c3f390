"""Commands that time regard on this machine."""

from pathlib import Path
from typing import Literal

from regard.systems.output import say


def bench(
    what: Literal["attention", "decoder", "decode", "train"] = "attention",
    *,
    repeats: int = 7,
    compiled: bool = False,
    tf32: bool = False,
    json: Path | None = None,
) -> None:
    """Time attention, a decoder, decoding or training on this machine, side by side with what else there is.

    Leave the machine alone meanwhile: times are medians, but other work slows some more than others.

    Parameters
    ----------
    what
        attention (against the formula and against torch), decoder (a recurrent decoder's loop against the loop as one
        writes it), decode (sentences in a second) or train (tokens in a second).
    repeats
        How often each is run.
    compiled
        Let torch.compile compete too, where what competes is a plain formula; compiling takes a minute or so.
    tf32
        On a GPU: let matrix products round to TF32, for all who compete.
    json
        Also write the numbers here.
    """
    import torch
    from rich.console import Console

    from regard.bench import attention, contest, decoders, translators

    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    match what:
        case "attention":
            contests = attention.contests(compiled=compiled)
        case "decoder":
            contests = decoders.contests(compiled=compiled)
        case "decode":
            contests = translators.decoding()
        case "train":
            contests = translators.training()
    results = contest.hold(contests, repeats=repeats)
    Console().print(contest.show(results, f"regard bench {what}"))
    if json is not None:
        contest.write(results, json)
        say(f"Wrote {json}")
