"""The command of the verb."""

import sys
from typing import Annotated

from cyclopts import Parameter

from helpers.picker.config import PickOptions
from helpers.picker.model import Picker
from regard.systems.output import say, write_json


def pick(
    *numbers: float,
    model: Annotated[str, Parameter(alias="-m")],
    json: bool = False,
    options: Annotated[PickOptions | None, Parameter(name="*")] = None,
) -> None:
    """Pick the largest number."""
    result = Picker.load(model).pick(list(numbers), options or PickOptions())
    if json:
        write_json(result, sys.stdout)
    else:
        say(result.text)
