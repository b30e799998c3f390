"""Trainings that are really killed, at any moment, go on to the same end; `make soak` does so more often."""

import json

import pytest
from helpers.killed_runs import read_losses, run_and_kill, run_to_the_end
from helpers.runs import comparable

from regard.files import DRAFT, checksum


def result(run):
    """The checksum of the parameters, and the metrics."""
    metrics = json.loads((run / "model" / "metrics.json").read_text())
    return checksum(run / "model" / "model.safetensors"), comparable(metrics)


@pytest.mark.parametrize(
    ("kind", "updates", "writing"),
    [("translate", 4, False), ("translate", 7, True), ("glimpse", 5, True)],
    ids=["between updates", "while a checkpoint is written", "while a checkpoint of another system is written"],
)
def test_a_training_that_is_killed_goes_on_to_the_same_end(kind, updates, writing, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_to_the_end(kind, tmp_path / "data", whole, tmp_path / "whole.txt")
    losses = tmp_path / "killed.txt"
    assert run_and_kill(kind, tmp_path / "data", killed, losses, updates=updates, writing=writing)
    assert len(list((killed / "checkpoints").glob(f".*{DRAFT}"))) == writing
    assert not (killed / "model").exists()
    run_to_the_end(kind, tmp_path / "data", killed, losses)
    assert read_losses(losses) == read_losses(tmp_path / "whole.txt")
    assert result(killed) == result(whole)
    assert not list((killed / "checkpoints").glob(f".*{DRAFT}"))
