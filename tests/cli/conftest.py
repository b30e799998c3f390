"""A small model and inputs for the command of every verb."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from helpers.command_line import write_lines
from helpers.models import (
    TRANSFORMER,
    small_captioner,
    small_classifier,
    small_document_classifier,
    small_reader,
    small_translator,
)
from PIL import Image

from regard.data.tokenizer import END
from regard.jobs import job
from regard.jobs.worker import Worker
from regard.systems.glimpse.config import GlimpsesConfig
from regard.systems.glimpse.model import Glimpser
from regard.systems.registry import SYSTEMS
from regard.systems.tape.config import TapeConfig
from regard.systems.tape.model import TuringMachine
from regard.worlds.digits import DIGITS
from regard.worlds.tapes import Copy, PrioritySort

INPUTS = {
    "translate": ("a dog .", "two dogs run"),
    "caption": ("red.png", "blue.png"),
    "recognize": ("red.png", "blue.png"),
    "classify": ("The film was fine. I loved it!", "a fine room"),
    "read": ("the cat sat", "it slept"),
    "tape": ("101 001", "011"),
    "glimpse": ("red.png", "blue.png"),
}
"""Two lines of input of each verb."""
SHORT = {"translate": ("--max-length", "4"), "caption": ("--max-length", "3")}


@dataclass(frozen=True)
class Case:
    """The command of a verb with its small model, and what it answers."""

    verb: str
    models: Path

    @property
    def command(self) -> list[str]:
        """The verb with its model."""
        return [self.verb, "-m", str(self.models / self.verb), *SHORT.get(self.verb, ())]

    @property
    def lines(self) -> list[str]:
        """Two inputs, each as a line of a file."""
        return [str(self.models / line) if line.endswith(".png") else line for line in INPUTS[self.verb]]

    @property
    def one(self) -> list[str]:
        """The words of the command line that stand for the first input."""
        return self.lines[0].split() if self.verb == "tape" else self.lines[:1]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models, by the names of their systems, special ones, and two images."""
    folder = tmp_path_factory.mktemp("verbs")
    torch.manual_seed(1)
    captioner, plain = small_captioner(), small_captioner(architecture="show_and_tell")
    with torch.no_grad():
        plain.decoder.output.bias[END] = -9.0
    for name, end in (("caption", -9.0), ("silent", 99.0), ("brief", 0.6)):
        with torch.no_grad():
            captioner.decoder.output.bias[END] = end
        captioner.save(folder / name)
    glimpses = GlimpsesConfig(image_size=30, glimpse_size=8, num_scales=2, num_glimpses=3, hidden=12)
    machine = TapeConfig(hidden=7, slots=9, width=4)
    for name, model in {
        "translate": small_translator(),
        "transformer": small_translator(**TRANSFORMER),
        "plain": small_translator(architecture="plain"),
        "show_and_tell": plain,
        "recognize": small_classifier(),
        "classify": small_document_classifier(),
        "read": small_reader("lstmn_model"),
        "lstmn_classifier": small_reader("lstmn_classifier"),
        "tagger": small_reader("tagger"),
        "pairs": small_reader("deep"),
        "tape": TuringMachine(machine, Copy(bits=3, max_length=5)),
        "sort": TuringMachine(TapeConfig(hidden=7), PrioritySort()),
        "glimpse": Glimpser(glimpses, DIGITS),
    }.items():
        model.save(folder / name)
    for colour in ("red", "blue", "green"):
        Image.new("RGB", (60, 40), colour).save(folder / f"{colour}.png")
    write_lines(folder / "captions.tsv", [f"{colour}.png\ta {colour} wall" for colour in ("red", "green", "blue")])
    return folder


@pytest.fixture(params=SYSTEMS)
def case(request: pytest.FixtureRequest, models: Path) -> Case:
    """Every verb in turn."""
    return Case(request.param, models)


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers in this process: starting others, which import torch, takes seconds."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # else a worker takes all cores, and this process would keep them
    monkeypatch.setattr(job, "run_processes", lambda job, parts, workers: (Worker(job)(part) for part in parts))
