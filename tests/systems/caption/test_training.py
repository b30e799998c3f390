"""Training captioners: they learn, and a resumed run ends with the same parameters."""

import json
import signal

import numpy as np
import pytest
import torch
from helpers.runs import comparable, same_parameters

from regard.search.options import Search
from regard.systems.caption.model import Captioner
from regard.systems.caption.training import CaptionTask, doubly_stochastic
from regard.systems.plan import read_recipe
from regard.systems.run import train

KINDS = {
    "soft": ({}, {"average_decay": 0.9, "doubly_stochastic_weight": 1.0}),
    "reinforce": ({"align": "hard"}, {"soft_fraction": 0.3}),
    "samples": ({"align": "hard"}, {"soft_fraction": 0.3, "attention_samples": 3}),
    "gumbel": (
        {"align": "hard", "temperature": 1.0},
        {"soft_fraction": 0.3, "soft_probability": 0.0, "reinforce_weight": 0.0},
    ),
    "show and tell": ({"architecture": "show_and_tell"}, {}),
}

REWARDS = ({}, {"self_critical_fraction": 0.6, "num_samples": 3, "max_output_length": 8})


def recipe_of(kind: str, **options):
    """Scenes with a few small parts."""
    model, training = REWARDS if kind == "rewards" else KINDS[kind]
    data = {"examples": 60, "held_out": 6, "held_out_test": 5}
    small = {"image_size": 32, "filters": (4, 6, 8), "embedding": 12, "hidden": 24, "attention_dim": 12}
    given = (
        {"epochs": 3, "max_tokens": 150, "learning_rate": 0.01, "average_decay": 0.0, "max_output_length": 8}
        | training
        | options
    )
    return read_recipe("scenes-soft", {"data": data, "model": small | model, "train": given})


@pytest.mark.parametrize("kind", KINDS)
def test_a_captioner_learns_and_is_tested(kind, tmp_path, monkeypatch):
    seen = []
    cross_entropy = CaptionTask._cross_entropy

    def watched(self, unrolled, targets):
        nll, loss = cross_entropy(self, unrolled, targets)
        if self.training:
            seen.append(float(nll[targets != 0].mean()))
        return nll, loss

    monkeypatch.setattr(CaptionTask, "_cross_entropy", watched)
    trained = train(recipe_of(kind, epochs=5), out=tmp_path, progress=False)
    assert len(seen) == trained.metrics["steps"]
    assert np.mean(seen[-4:]) < 0.9 * np.mean(seen[:2])
    assert trained.metrics["train_images"] == trained.metrics["train_captions"] == 60
    assert 0 <= trained.metrics["test_beam_exact"] <= 1
    assert len((tmp_path / "test.tsv").read_text().splitlines()) == 5
    assert json.loads((trained.folder / "metrics.json").read_text()) == trained.metrics
    loaded = Captioner.load(trained.folder, device="cpu")
    pixels = torch.randint(0, 255, (3, 3, 32, 32), dtype=torch.uint8)
    ours, theirs = (model.to("cpu").search(pixels, Search(beam=2, max_length=30)) for model in (trained.model, loaded))
    assert [best[0].tokens for best in ours] == [best[0].tokens for best in theirs]


def test_a_run_that_is_interrupted_among_rewards_goes_on(tmp_path, monkeypatch):
    recipe = recipe_of("rewards")
    whole = train(recipe, out=tmp_path / "whole", progress=False)
    step = whole.metrics["steps"] // 2 + 1
    loss = CaptionTask.loss

    def interrupted(self, batch):
        if self.step == step:
            monkeypatch.setattr(CaptionTask, "loss", loss)
            signal.raise_signal(signal.SIGINT)
        return loss(self, batch)

    monkeypatch.setattr(CaptionTask, "loss", interrupted)
    assert train(recipe, out=tmp_path / "parts", progress=False).metrics["steps"] == step + 1
    resumed = train(recipe, out=tmp_path / "parts", resume=True, progress=False)
    assert comparable(resumed.metrics) == comparable(whole.metrics)
    assert same_parameters(whole.model, resumed.model)


def test_the_doubly_stochastic_penalty_is_the_mean_over_cells_of_the_squared_rest():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.5, 0.2, 0.3], [1.0, 0.0, 0.0]]])
    real = torch.tensor([[True, True, False]])
    expected = ((1 - 1.0) ** 2 + (1 - 0.7) ** 2 + (1 - 0.3) ** 2) / 3
    torch.testing.assert_close(doubly_stochastic(weights, real), torch.tensor(expected))
