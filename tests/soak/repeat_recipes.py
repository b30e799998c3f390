"""Train a small version of every packaged recipe twice, and check that the parameters are equal bit by bit.

    python tests/soak/repeat_recipes.py                          # about three minutes on two cores
    python tests/soak/repeat_recipes.py babel-en-fr ntm-copy     # some recipes

The second training is in another process, with another order of sets, and with two workers that prepare batches where a
system has workers. The exit status is 1 if any parameter differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from helpers.recipes import small_version

from regard.config import fields_of
from regard.files import checksum
from regard.systems.run import train
from regard.training.recipes import recipe_names


def train_all(names: list[str], folder: Path, workers: int) -> None:
    """Train each recipe, and print its name with the checksum of its parameters."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in names:
        recipe = small_version(name, folder / name / "data")
        if "workers" in {field.name for field in fields_of(type(recipe.train))}:
            recipe = small_version(name, folder / name / "data", workers=workers)
        trained = train(recipe, out=folder / name / "run", progress=False)
        print(name, checksum(trained.folder / "model.safetensors"), flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="which recipes (all)")
    parser.add_argument("--train", nargs=2, metavar=("FOLDER", "WORKERS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    names = chosen.recipes or recipe_names()
    if chosen.train:
        train_all(names, Path(chosen.train[0]), int(chosen.train[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, *names, "--train", f"{name}/{number}", str(2 * number)],
                env=os.environ | {"PYTHONHASHSEED": str(number)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        first, second = (dict(map(str.split, process.communicate()[0].splitlines())) for process in processes)
    wrong = 0
    for recipe in names:
        same = recipe in first and first[recipe] == second.get(recipe)
        wrong += not same
        print(f"{recipe}: {'the same parameters' if same else 'OTHER PARAMETERS, OR NONE'}")  # noqa: T201
    print(f"{len(names)} recipes, {wrong} that differ")  # noqa: T201
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
