"""The command that times attention on this machine."""

from pathlib import Path

from regard.cli.io import Flag, check_outputs
from regard.errors import OptionError


def bench(
    *,
    repeats: int = 7,
    compiled: bool = False,
    tf32: bool = False,
    json: Path | None = None,
    overwrite: Flag = False,
) -> None:
    """Benchmark attention on this machine: each score against its formula and against torch.

    Times are medians of runs that take turns. Leave the machine alone meanwhile: other work slows some runs more than
    others. Scripts in `benchmarks/` of the sources time decoders, decoding and training.

    Parameters
    ----------
    repeats
        Number of timed runs, after one to warm up.
    compiled
        Also time torch.compile of the plain formula; compiling takes a minute.
    tf32
        On a GPU: allow TF32 matrix products, for everything that is timed.
    json
        Also write the numbers to this file.
    overwrite
        Replace a file that exists.
    """
    import torch

    from regard.bench import attention, contest

    contest.check_repeats(repeats)
    if tf32 and not torch.cuda.is_available():
        raise OptionError("--tf32 needs a CUDA GPU, and torch finds none here. Remove it.")
    if json is not None and json.is_dir():
        raise OptionError(f"--json takes the name of a file; {json} is a folder.")
    check_outputs({"--json": json}, overwrite=overwrite)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    contest.report(attention.contests(compiled=compiled), "regard bench", repeats=repeats, path=json)
