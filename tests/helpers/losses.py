"""The losses of the first updates of a packaged recipe in its small version: what a change of the numbers would change.

python tests/helpers/losses.py FOLDER RECIPE ...     # a line of JSON each, for `benchmarks/compare_losses.py`
"""

import json
import math
import sys
import warnings
from pathlib import Path
from unittest import mock

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.recipes import small_version
from helpers.runs import watch_losses
from regard.systems.run import train
from regard.training.divergence import Divergence

UPDATES = 50


class _Enough(Exception):  # noqa: N818 - no error, but the end
    """All updates that were asked for are done."""


def first_losses(name: str, folder: Path, updates: int = UPDATES) -> list[float]:
    """The losses of the first updates. The training is planned for UPDATES of them, whatever is asked for.

    The schedule, the end of a phase and the validations in between therefore all happen within them.
    """
    per_epoch = _updates_per_epoch(name, folder)
    epochs = math.ceil(UPDATES / per_epoch)
    recipe = small_version(name, folder / "data", epochs=epochs, validate_every=math.ceil(epochs / 2))
    seen: dict[int, float] = {}
    watched = watch_losses(seen)

    def until_enough(self, loss, step):
        watched(self, loss, step)
        if step == updates:
            raise _Enough

    with mock.patch.object(Divergence, "update", until_enough):
        try:
            train(recipe, out=folder / "run", overwrite=True, progress=False)
        except _Enough:
            return [seen[step] for step in range(1, updates + 1)]
    raise RuntimeError(f"The small version of {name} ended after {len(seen)} updates.")


def _updates_per_epoch(name: str, folder: Path) -> int:
    found = []

    def first(self, loss, step):
        found.append(len(self._batches))
        raise _Enough

    with mock.patch.object(Divergence, "update", first):
        try:
            train(small_version(name, folder / "data"), out=folder / "run", overwrite=True, progress=False)
        except _Enough:
            return found[0]
    raise RuntimeError(f"The small version of {name} has no update.")


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        try:
            found: list[float] | str = first_losses(name, folder / name)
        except Exception as error:  # of another revision, whose recipes may ask for something else
            found = f"{type(error).__name__}: {error}"
        print(json.dumps([name, found]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
