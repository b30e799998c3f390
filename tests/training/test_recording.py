"""Updates that a GPU replays as CUDA graphs: they learn what updates without graphs learn."""

from dataclasses import replace

import pytest
import torch
from helpers.runs import small_recipe
from torch import nn

from regard.encoders.recurrent import RecurrentEncoder
from regard.systems import registry
from regard.training.fit import Training, seed_everything
from regard.training.losses import real_tokens, smoothed_cross_entropy
from regard.training.settings import Devices

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a CUDA GPU")
WITHOUT_CHANCE = {
    "translate": {"dropout": 0.0, "state_dropout": 0.0, "output_dropout": 0.0},
    "transformer": {"dropout": 0.0, "state_dropout": 0.0, "output_dropout": 0.2, "hidden": 256},
    "read": {},
    "tape": {},
    "glimpse": {},
}


def training_of(kind, folder, *, recorded, model=None, **train):
    recipe = small_recipe(kind, folder / "data", average_decay=0.9, **train)
    model = model or {}
    fixed = WITHOUT_CHANCE["transformer" if model.get("architecture") == "transformer" else kind]
    recipe = replace(recipe, model=replace(recipe.model, **fixed | model))
    seed_everything(1)
    experiment = registry.entry(kind).experiment(recipe, folder / f"run-{recorded}", progress=False)
    splits = experiment.read_data()
    task, *loaders = experiment.task(experiment.build(splits), splits)
    task.is_recordable = task.is_recordable and recorded
    # So that the updates are proportional to the gradients: Adam would blow up those that are 0 but for rounding.
    task.make_optimizer = lambda: torch.optim.AdamW(task.parameters(), lr=0.1, eps=1.0, fused=task.may_fuse or None)
    return Training(task, tuple(loaders), experiment.score, Devices(), half_precision_on_gpu=False)


def learned(training, epochs):
    losses = []
    for epoch in range(epochs):
        training.batches.set_epoch(epoch)
        losses += [float(training.update(batch)) for batch in training.batches]
    return losses, [each.detach().clone() for each in training.task.parameters()]


@on_gpu
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("translate", {}),
        ("translate", {"conditional": True}),
        ("translate", {"architecture": "luong", "cell": "lstm", "score": "general"}),
        ("translate", {"architecture": "transformer", "layers": 2, "heads": 2}),
        ("read", {}),
        ("tape", {}),
        ("glimpse", {}),
    ],
)
def test_recorded_updates_learn_what_updates_without_graphs_learn(kind, model, tmp_path):
    results = []
    for recorded in (False, True):
        training = training_of(kind, tmp_path, recorded=recorded, model=model, precision="32-true")
        torch.manual_seed(3)
        results.append(learned(training, 4))
        assert (training._recorded is not None and training._recorded.num_recordings > 0) == recorded
        assert {"loss"} <= training.task.metrics.keys()
    (losses, parameters), (recorded_losses, recorded_parameters) = results
    assert recorded_losses == pytest.approx(losses, rel=1e-3, abs=1e-4)
    for first, second in zip(parameters, recorded_parameters, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-4)


@on_gpu
def test_dropout_is_drawn_anew_in_each_replay(tmp_path):
    model = {"architecture": "transformer", "layers": 1, "heads": 2, "dropout": 0.5}
    training = training_of("translate", tmp_path, recorded=True, model=model, learning_rate=1e-9)
    batch = next(iter(training.batches))
    losses = {float(training.update(batch)) for _ in range(6)}
    assert training._recorded.num_recordings == 1
    assert len(losses) == 6


@on_gpu
def test_learning_rates_reach_recorded_updates_and_checkpoints_hold_numbers(tmp_path):
    training = training_of("translate", tmp_path, recorded=True)
    batch = next(iter(training.batches))
    for _ in range(3):
        training.update(batch)
    before = [each.detach().clone() for each in training.task.parameters()]
    training._set_rates([0.0])
    training.update(batch)
    for first, second in zip(before, training.task.parameters(), strict=True):
        assert torch.equal(first, second)
    content = training.content()
    assert all(type(group["lr"]) is float for group in content["optimizer"]["param_groups"])


@on_gpu
def test_what_cannot_be_recorded_is_said_once_and_computed_without_graphs(tmp_path):
    training = training_of("glimpse", tmp_path, recorded=True)
    loss = training.task.loss
    training.task.loss = lambda batch: loss(batch) * (1 + 0 * float(batch[0].sum()))
    batches = list(training.batches)
    training.update(batches[0])
    with pytest.warns(UserWarning, match="cannot be recorded as CUDA graphs"):
        training.update(batches[0])
    training.update(batches[0])
    assert training._recorded.num_recordings == 0


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_padded_sentences_are_read_as_packed_ones(cell, bidirectional):
    torch.manual_seed(0)
    encoder = RecurrentEncoder(nn.Embedding(11, 5), 7, cell=cell, num_layers=2, bidirectional=bidirectional)
    encoder.double()
    source, lengths = torch.randint(0, 11, (3, 6)), torch.tensor([6, 2, 4])
    packed = encoder(source, lengths).states
    padded = encoder.read_padded(encoder.embedding(source), lengths)
    torch.testing.assert_close(padded, packed)
    upstream, parameters = torch.randn_like(packed), list(encoder.parameters())
    grads = [torch.autograd.grad(states, parameters, upstream) for states in (packed, padded)]
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_all_tokens_counts_the_real_ones_alone(smoothing):
    torch.manual_seed(0)
    lengths, tokens, logits = torch.tensor([5, 2, 3]), torch.randint(0, 7, (3, 5)), torch.randn(3, 5, 7)
    select, everything = real_tokens(lengths, tokens)
    assert everything is None
    expected, nll = smoothed_cross_entropy(select(logits), select(tokens), smoothing=smoothing)
    assert len(nll) == 10
    real = (torch.arange(5) < lengths[:, None]).flatten()
    found, _ = smoothed_cross_entropy(logits.flatten(0, 1), tokens.flatten(), smoothing=smoothing, real=real)
    torch.testing.assert_close(found, expected)
