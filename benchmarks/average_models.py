"""Average the parameters of models that were trained one from the other, and store the result as int8.

    python benchmarks/average_models.py MODEL MODEL ... --out FOLDER

The last step of the shipped en-fr (docs/measurements/results.md). The models must have the same sizes and the same
vocabulary; the rest of FOLDER is taken from the first.
"""

import argparse
from pathlib import Path

import torch

import regard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    first, *others = (regard.load(name, device="cpu") for name in arguments.models)
    parameters = list(first.parameters())
    with torch.no_grad():
        for own, *further in zip(parameters, *(model.parameters() for model in others), strict=True):
            own.copy_(torch.stack([own, *further]).mean(0))
    first.save(arguments.out, metrics=first.metrics, store="int8")


if __name__ == "__main__":
    main()
