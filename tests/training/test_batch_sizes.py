"""Automatic sizes give small data enough updates; sizes that were chosen stay, with advice where they are too large."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.runs import SYSTEMS, small_recipe

from regard.data.batches import BatchLoader, CostBatches
from regard.systems import registry
from regard.systems.classify.config import ClassificationTrain
from regard.systems.plan import check_recipe
from regard.systems.run import train
from regard.training.batch_sizes import few_updates, load_batches
from regard.training.recipes import RawRecipe
from regard.training.task import Task


@pytest.mark.parametrize(
    ("examples", "size", "batches"),
    [
        (10_000, 0, 157),  # 64 in a batch
        (1280, 0, 20),
        (1216, 0, 38),  # 32
        (291, 0, 37),  # 8, since 16 would give 19 batches
        (60, 0, 15),  # 4, and no fewer
        (3, 0, 1),
        (291, 64, 5),
        (291, 300, 1),
    ],
)
def test_automatic_sizes_are_halved_until_an_epoch_has_twenty_updates(examples, size, batches):
    def load(size):
        costs = np.ones((examples, 1), dtype=np.int64)
        return BatchLoader(range(examples), CostBatches(costs, max_cost=size, shuffle=True, seed=1), collate_fn=list)

    assert len(load_batches(load, size, usual=64)) == batches


@pytest.mark.parametrize("system", sorted(set(SYSTEMS.values()) - {"tape"}))
def test_every_system_makes_small_batches_of_small_data_by_default(system, tmp_path):
    recipe = small_recipe(system, tmp_path / "data")
    name = "batch_size" if hasattr(recipe.train, "batch_size") else "max_tokens"
    assert getattr(type(recipe.train)(), name) == 0
    recipe = replace(recipe, train=replace(recipe.train, **{name: 0}))
    experiment = registry.entry(system).experiment(recipe, tmp_path, progress=False)
    splits = experiment.read_data()
    _, batches, _ = experiment.task(experiment.build(splits), splits)
    assert 20 < batches.num_examples < 80
    assert len(batches) >= batches.num_examples / 8


def test_few_updates_in_an_epoch_are_reported_with_a_size_to_choose():
    task = Task(ClassificationTrain(batch_size=64), total_steps=84)
    assert few_updates(task, 6).endswith(
        "only 6 updates, the training 84, and may learn little: choose smaller batches, such as --train.batch_size 19, "
        "or more --train.epochs.\n"
    )
    assert not few_updates(task, 20)
    task.total_steps = 1000
    assert not few_updates(task, 6)
    assert not few_updates(Task(ClassificationTrain(), total_steps=84), 6), "an automatic size is small enough"


def reviews(count, seed):
    """Documents in which one word decides."""
    drawn = random.Random(seed)  # noqa: S311
    for number in range(count):
        words = [f"w{drawn.randrange(40)}" for _ in range(12)]
        words[drawn.randrange(12)] = drawn.choice((["awful", "poor"], ["lovely", "superb"])[number % 2])
        yield {"text": f"{' '.join(words[:6])}. {' '.join(words[6:])}.", "label": ("bad", "good")[number % 2]}


def test_a_classifier_learns_from_323_documents_with_default_settings(tmp_path):
    for name, count, seed in (("train", 323, 1), ("test", 200, 2)):
        lines = (json.dumps(row) + "\n" for row in reviews(count, seed))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    data = {"folder": str(tmp_path), "train": "train.jsonl", "test": "test.jsonl"}
    tables = {"data": data, "model": {"embedding": 16, "hidden": 16}, "train": {}}
    trained = train(check_recipe(RawRecipe("classify", tables)), out=tmp_path / "run", progress=False)
    assert trained.metrics["test_accuracy"] >= 90, "with batches of 64 documents, it is 59"
