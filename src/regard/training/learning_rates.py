"""Other learning rates for parts of a model, such as lower ones for what was trained already."""

from collections import defaultdict
from collections.abc import Sequence

import torch

from regard.config import nearest_hint, parse_numbers
from regard.errors import OptionError
from regard.training.task import Task


def scale_rates(optimizer: torch.optim.Optimizer, task: Task) -> None:
    """Multiply the learning rates of the parts that train.learning_rates names; the longest name decides.

    Each group of parameters is divided into those that have the same factor.
    """
    factors = parse_numbers("learning_rates", task.settings.learning_rates)
    if not factors:
        return
    # A parameter that is tied has several names.
    names: dict[int, list[str]] = defaultdict(list)
    for name, parameter in task.named_parameters(remove_duplicate=False):
        names[id(parameter)].append(name.removeprefix("model."))
    for part in factors:
        _check_part(part, [name for each in names.values() for name in each])
    groups = []
    for group in optimizer.param_groups:
        divided: dict[float, list[torch.Tensor]] = defaultdict(list)
        for parameter in group["params"]:
            found = [part for part in factors if any(_is_in(name, part) for name in names[id(parameter)])]
            divided[factors[max(found, key=len)] if found else 1.0].append(parameter)
        groups += [group | {"params": each, "lr": group["lr"] * factor} for factor, each in divided.items()]
    optimizer.param_groups = groups


def _is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def _check_part(part: str, names: Sequence[str]) -> None:
    """Raise an error that lists the parts there are, where no parameter is in this one."""
    if any(_is_in(name, part) for name in names):
        return
    outer = part
    while outer and not any(name.startswith(f"{outer}.") for name in names):
        outer = outer.rpartition(".")[0]
    start = f"{outer}." if outer else ""
    inside = (name.removeprefix(start) for name in names if name.startswith(start))
    parts = list(dict.fromkeys(start + name.partition(".")[0] for name in inside))
    raise OptionError(
        f"learning_rates: the model has no part {part!r}.{nearest_hint(part, parts)} "
        f"There {'is' if len(parts) == 1 else 'are'} {', '.join(parts)}."
    )
