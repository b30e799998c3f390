"""A memory machine at work: a copied tape, and how its heads moved."""

from pathlib import Path
from typing import Any

import torch
from rich.console import Console

import regard

LENGTH = 24
"""Vectors of the tape: more than the machine was trained with."""

FIGURE_HEIGHT = 9.0
"""Inches."""


def show_tape(console: Console, folder: Path) -> list[Path]:
    """Let the pretrained tape-copy copy a tape, and show the movements of its heads; returns the figure."""
    console.rule("[bold]A memory that the model itself writes")
    machine = regard.load("tape-copy", device="cpu")
    sequence = machine.task.draw(1, LENGTH, torch.Generator().manual_seed(1)).rows[0]
    copied: Any = machine.tape(sequence)
    task = machine.task
    console.print(
        f"A neural Turing machine reads {LENGTH} vectors of {task.bits} bits, then a mark, and copies the vectors from "
        f"its memory. It was trained with up to {task.max_length} vectors. Time runs from left to right, a character "
        "for each step. The write head moves on by one slot with each vector; after the mark, the read head follows "
        "its path.\n"
    )
    console.print(regard.view(copied), "")
    count = sum(map(len, copied.target))
    console.print(f"{count - copied.wrong} of {count} bits are right.\n")
    title = f"A neural Turing machine copies {LENGTH} vectors"
    return [regard.view(copied).save(folder / "tape.png", title=title, height=FIGURE_HEIGHT)]
