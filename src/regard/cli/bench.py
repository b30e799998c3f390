"""The commands that time attention and training on this machine."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

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
    others. `regard bench train` times the training of recipes. Scripts in `benchmarks/` of the sources time decoders
    and decoding.

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


def train(
    name: str,
    /,
    *,
    seconds: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 20.0,
    json: Path | None = None,
    overwrite: Flag = False,
    **overrides: dict[str, str],
) -> None:
    """Benchmark the training of a recipe, or of all packaged recipes of a system: regard bench train translate.

    Prints the throughput, the share of time spent waiting for data, the use of the arithmetic, as a fraction of what a
    large product of matrices reaches in the same precision, and the peak memory. Needs no data: random sentences and
    images have the sizes of the recipe. With --data.folder, or other fields of [data], the recipe's own data is used.

    Parameters
    ----------
    name
        A packaged recipe, a TOML file, or a system, such as translate.
    seconds
        Seconds of training to measure, after half as many to warm up.
    json
        Also write the numbers to this file.
    overwrite
        Replace a file that exists.
    overrides
        Fields of the recipes: --data.NAME, --model.NAME, --train.NAME.
    """
    from regard.bench import training
    from regard.cli.train import parse_fields
    from regard.systems import registry
    from regard.systems.plan import read_recipe
    from regard.training.recipes import read_raw, recipe_names

    if json is not None and json.is_dir():
        raise OptionError(f"--json takes the name of a file; {json} is a folder.")
    check_outputs({"--json": json}, overwrite=overwrite)
    of_systems = {each: read_raw(each).system for each in recipe_names()}
    names = [each for each, system in of_systems.items() if system == name] or [name]
    fields = parse_fields(registry.entry(read_raw(names[0]).system).tables, overrides)
    recipes = {Path(each).stem: read_recipe(each, fields) for each in names}
    training.report(recipes, seconds=seconds, given=bool(fields["data"]), path=json)
