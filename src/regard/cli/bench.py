"""The command that times regard on this machine."""

from pathlib import Path
from typing import Literal

from regard.cli.io import Flag, check_outputs, print_line
from regard.errors import OptionError


def bench(
    what: Literal["attention", "decoder", "decode", "train"] = "attention",
    *,
    repeats: int = 7,
    compiled: bool = False,
    tf32: bool = False,
    json: Path | None = None,
    overwrite: Flag = False,
) -> None:
    """Benchmark attention, decoders, decoding or training on this machine.

    Times are medians of runs that take turns. Leave the machine alone meanwhile: other work slows some runs more than
    others.

    Parameters
    ----------
    what
        attention: each score against its formula and against torch. decoder: training steps of recurrent decoders
        against a plain loop. decode: translated sentences per second. train: target tokens per second.
    repeats
        Number of timed runs, after one to warm up.
    compiled
        For attention and decoder: also time torch.compile of the plain formula or loop; compiling takes a minute.
    tf32
        On a GPU: allow TF32 matrix products, for everything that is timed.
    json
        Also write the numbers to this file.
    overwrite
        Replace a file that exists.
    """
    import torch
    from rich.console import Console

    from regard.bench import attention, contest, decoders, translators

    contest.check_repeats(repeats)
    if compiled and what in ("decode", "train"):
        raise OptionError(f"--compiled is for `bench attention` and `bench decoder`; got it with {what!r}. Remove it.")
    if tf32 and not torch.cuda.is_available():
        raise OptionError("--tf32 needs a CUDA GPU, and torch finds none here. Remove it.")
    if json is not None and json.is_dir():
        raise OptionError(f"--json takes the name of a file; {json} is a folder.")
    check_outputs({"--json": json}, overwrite=overwrite)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    match what:
        case "attention":
            contests, unit = attention.contests(compiled=compiled), "items"
        case "decoder":
            contests, unit = decoders.contests(compiled=compiled), "words"
        case "decode":
            contests, unit = translators.decoding(), "sentences"
        case "train":
            contests, unit = translators.training(), "tokens"
    timings = contest.run_contests(contests, repeats=repeats)
    Console(highlight=False).print(contest.timing_table(timings, f"regard bench {what}", unit=unit))
    if json is not None:
        contest.save_timings(timings, json)
        print_line(f"Wrote {json}")
