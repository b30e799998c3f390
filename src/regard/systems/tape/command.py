"""The command of memory machines."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.output import check_show, say, show_result, write_json
from regard.systems.tape.config import TapeOptions


def tape(
    *rows: str,
    model: Annotated[str, Parameter(alias="-m")] = "tape-copy",
    length: Annotated[int | None, Parameter(alias="-n")] = None,
    seed: int = 1,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    device: str | None = None,
    options: Annotated[TapeOptions | None, Parameter(name="*")] = None,
) -> None:
    """Run a memory machine on a tape: a random one, or rows of bits such as 01101001 11100010.

    Parameters
    ----------
    rows
        The rows of the sequence; without them, random ones.
    model
        A shipped model (`regard models` lists them) or a model folder.
    length
        Length of the random sequence; by default the longest of the training.
    seed
        Seed of the random sequence.
    show
        Show input, output, the movements of the heads and the memory: "-" draws in the terminal, FILE.png, .svg or
        .pdf saves a figure, FILE.html an interactive page.
    json
        Write the result as JSON, with the trace.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    """
    import torch

    from regard.systems.tape.model import TuringMachine
    from regard.worlds.tapes import PrioritySort

    options = options or TapeOptions()
    check_show(show, 1)
    for row in rows:
        if not set(row) <= set("01 "):
            raise OptionError(f"Rows are bits, such as 01101001; got {row!r:.80}. A model is named with -m.")
    machine = TuringMachine.load(model, device=device)
    task = machine.task
    if rows and length is not None:
        raise OptionError("Give rows, or --length for random ones, not both.")
    if rows and isinstance(task, PrioritySort):
        raise OptionError("Rows of priority-sort have priorities, which are given in Python; here, use --length.")
    sequence: Any
    if rows:
        sequence = " ".join(rows)
    else:
        generator = torch.Generator().manual_seed(seed)
        sequence = task.draw(1, task.max_length if length is None else length, generator).rows[0]
    keywords = vars(options) if json or show is not None else vars(options) | {"traces": "none"}
    result = machine.tape(sequence, **keywords)
    if json:
        write_json(result, sys.stdout)
    else:
        count = sum(map(len, result.target))
        right = f"{count - result.wrong} of {count} bits right, {result.bits:.2f} bits to correct the answer"
        say(f"in    {_written(result.sequence)}\nout   {result.text}")
        if result.wrong:
            say(f"right {_written(result.target)}")
        say(right)
    if show is not None:
        show_result(result, show, model=model)


def _written(rows: tuple[tuple[float | int, ...], ...]) -> str:
    """Rows of bits without spaces; numbers that are no bits stand apart."""
    return " ".join("".join(f"{number:g}" if number in (0, 1) else f"({number:.2f})" for number in row) for row in rows)
