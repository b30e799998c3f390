"""`regard bench train`: every kind of recipe is timed without its data, and operations are counted right."""

import json

import numpy as np
import pytest
import torch
from helpers.command_line import refused, regard
from helpers.recipes import small_version
from torch import nn

from regard.bench.generated import Words, generated
from regard.bench.training import Speed, flops_of, measure, speed_table
from regard.cli.bench import train as bench_train
from regard.data.batches import BatchLoader, CostBatches
from regard.errors import DataError, OptionError
from regard.systems.plan import read_recipe
from regard.training.settings import TrainSettings
from regard.training.task import Task

KINDS = (
    "multi30k-transformer", "multi30k-rnnsearch", "hansards-en-fr", "babel-en-fr", "scenes-hard", "cifar-vgg",
    "imdb-han", "reviews", "ptb-lstmn", "ptb-lstm", "snli-lstmn", "sst-lstmn", "stories-both", "ntm-copy",
    "glimpse-mnist",
)  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_recipe_is_timed_with_random_data(name, tmp_path):
    speed = measure(small_version(name, tmp_path), name, seconds=0.0)
    assert (speed.recipe, bool(speed.unit)) == (name, True)
    assert min(speed.rate, speed.updates, speed.flops, speed.utilisation, speed.mebibytes) > 0
    assert 0 <= speed.waiting < 1


def test_features_of_photographs_are_random_too():
    changes = {"image_size": 64, "embedding": 8, "hidden": 12, "attention_dim": 6, "annotation_dim": 6, "pca_dim": 5}
    recipe = read_recipe("flickr8k-soft", {"model": changes, "train": {"max_tokens": 60}})
    _, splits = generated(recipe, 2)
    assert splits.train.images.values.shape[1:] == (4, 5)
    assert measure(recipe, "photographs", seconds=0.0).unit == "captions"


def test_the_data_of_a_recipe_is_used_where_it_is_given(tmp_path):
    recipe = small_version("multi30k-rnnsearch", tmp_path)
    (tmp_path / "source").unlink()
    assert measure(recipe, "random", seconds=0.0).rate > 0
    with pytest.raises(DataError, match=r"There is no file .*source"):
        measure(recipe, "given", seconds=0.0, given=True)


def test_a_vocabulary_is_complete():
    words = Words(60)
    every = [word for sentence in words.every(2) for word in sentence]
    assert len(every) == 120
    assert len(set(every)) == 60
    assert {word for _ in range(20) for word in words.sentence()} < set(every)


class Layer(Task):
    """One product of 3 features with 5 outputs."""

    def __init__(self):
        super().__init__(TrainSettings(), total_steps=1)
        self.layer = nn.Linear(3, 5)

    def loss(self, batch):
        return self.layer(batch).sum()


class Recurrent(Layer):
    """An LSTM of 4 units, of which oneDNN would hide the products."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(3, 4, batch_first=True)

    def loss(self, batch):
        return self.layer(batch)[0].sum()


@pytest.mark.parametrize(
    ("task", "shape", "expected"),
    [
        (Layer(), (3,), 2 * (2 * 3 * 5)),  # for the outputs, and for the gradient of the weights
        # Of 6 steps: the inputs as the layer above; the states also have gradients, but the first, which is 0.
        (Recurrent(), (6, 3), 6 * 2 * (2 * 3 * 16) + 6 * 3 * (2 * 4 * 16)),
    ],
)
def test_the_operations_of_products_are_counted(task, shape, expected):
    sizes = np.ones((7, 1), dtype=np.int64)
    examples = [torch.ones(shape) for _ in range(7)]
    batches = BatchLoader(examples, CostBatches(sizes, max_cost=7, shuffle=False, seed=0), collate_fn=torch.stack)
    assert flops_of(task, batches) == pytest.approx(expected, rel=0.1)
    assert torch.backends.mkldnn.enabled
    assert all(each.grad is None for each in task.parameters())


def test_the_table_has_a_line_for_each_recipe(capsys):
    from rich.console import Console

    speed = Speed("ptb-lstmn-3", "words", 12_345.6, 7.89, 0.034, 2.5e7, 0.123, 456.7)
    Console(width=100).print(speed_table([speed]))
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split() == ["ptb-lstmn-3", "12,346", "words", "7.9", "3%", "25.0", "12.3%", "457"]


def test_the_command_times_recipes_and_writes_the_numbers(tmp_path):
    recipe = tmp_path / "small.toml"
    tables = "system = 'tape'\n[data]\nbits = 2\nmax_length = 3\nvalid_tapes = 4\n[model]\nhidden = 8\nslots = 5\n"
    recipe.write_text(tables + "[train]\nbatch_size = 4\n", encoding="utf-8")
    said = regard(
        "bench", "train", recipe, "--seconds", 0.01, "--train.epoch_updates", 5, "--json", tmp_path / "x.json"
    )
    assert "tapes" in said.stdout
    (found,) = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["results"]
    assert found["recipe"] == "small"
    assert found["rate"] > 0
    assert "There is no field --train.epohs. Did you mean 'epochs'" in refused(
        "bench", "train", recipe, "--train.epohs", 1
    )


def test_what_cannot_be_timed_is_refused(tmp_path):
    with pytest.raises(OptionError, match="is a folder"):
        bench_train("ntm-copy", json=tmp_path)
    assert "There is no recipe file 'nonsense'" in refused("bench", "train", "nonsense")
    assert "seconds" in refused("bench", "train", "ntm-copy", "--seconds", 0)
