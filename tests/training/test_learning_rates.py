"""Parts of a model with learning rates of their own: what trains, how fast, and what is refused."""

import pytest
import torch
from helpers.runs import same_parameters, small_recipe
from torch import nn

from regard.errors import OptionError
from regard.systems.run import train
from regard.training.checkpoints import read_checkpoint, step_files
from regard.training.learning_rates import scale_rates
from regard.training.settings import TrainSettings
from regard.training.task import Task


class Tied(Task):
    """Two layers, a matrix that both ends share, and a number of the loss."""

    def __init__(self, **settings):
        super().__init__(TrainSettings(**settings), total_steps=2)
        ends = nn.ModuleDict({"first": nn.Linear(2, 3), "second": nn.Linear(3, 3)})
        self.model = nn.ModuleDict({"encoder": ends, "words": nn.Embedding(5, 3), "output": nn.Linear(3, 5)})
        self.model["output"].weight = self.model["words"].weight
        self.scale = nn.Parameter(torch.ones(()))


def rates(task, optimizer):
    names = {id(parameter): name for name, parameter in task.named_parameters()}
    return {names[id(each)]: group["lr"] for group in optimizer.param_groups for each in group["params"]}


def test_the_longest_name_of_a_part_decides():
    task = Tied(learning_rate=0.5, learning_rates="encoder=0.1, encoder.second.bias=4, output.weight=0, scale=2")
    optimizer = task.make_optimizer()
    scale_rates(optimizer, task)
    assert rates(task, optimizer) == {
        "model.encoder.first.weight": 0.05, "model.encoder.first.bias": 0.05, "model.encoder.second.weight": 0.05,
        "model.encoder.second.bias": 2.0, "model.words.weight": 0.0, "model.output.bias": 0.5, "scale": 1.0,
    }  # fmt: skip
    assert {group["betas"] for group in optimizer.param_groups} == {(0.9, 0.98)}


def test_without_factors_the_optimizer_stays_as_it_is():
    task = Tied()
    optimizer = task.make_optimizer()
    scale_rates(optimizer, task)
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("encoders=1", "no part 'encoders'. Did you mean 'encoder'\\? There are scale, encoder, words, output"),
        ("encoder.third=1", "no part 'encoder.third'.* There are encoder.first, encoder.second"),
        ("encoder.first.weights=1", "Did you mean 'encoder.first.weight'"),
        ("words.weight.row=1", "no part 'words.weight.row'.* There is words.weight"),
        ("enc=1", "no part 'enc'"),
    ],
)
def test_a_part_that_there_is_not_is_refused(given, says):
    task = Tied(learning_rates=given)
    with pytest.raises(OptionError, match=says):
        scale_rates(task.make_optimizer(), task)


@pytest.mark.parametrize("given", ["0.1", "encoder=fast", "encoder=-1", "=2", "encoder=inf"])
def test_factors_are_numbers(given):
    with pytest.raises(OptionError, match=r"learning_rates must be such as encoder=0\.1,decoder\.output=2; got "):
        TrainSettings(learning_rates=given)


def test_a_part_is_kept_while_the_others_go_on_and_a_killed_run_is_resumed(tmp_path):
    """As a user does with --from: the encoder is kept, the decoder learns slowly, and the schedule holds for both."""
    settings = {"patience": 0, "average_decay": 0.0}
    first = train(small_recipe("translate", tmp_path / "data", **settings), out=tmp_path / "first", progress=False)
    tuned = small_recipe(
        "translate", tmp_path / "data", learning_rates="encoder=0,decoder=0.1", weight_decay=0.1, **settings
    )
    whole = train(tuned, out=tmp_path / "tuned", start_from=first.folder, progress=False)
    before, after = first.model.state_dict(), whole.model.state_dict()
    for name, value in before.items():
        assert torch.equal(value, after[name]) == name.startswith("encoder."), name
    groups = read_checkpoint(step_files(tmp_path / "tuned" / "checkpoints")[0])["optimizer"]["param_groups"]
    assert sorted(group["initial_lr"] for group in groups)[:2] == pytest.approx([0.0, 0.001])
    newest, *older = step_files(tmp_path / "tuned" / "checkpoints")
    newest.unlink()
    assert older
    again = train(out=tmp_path / "tuned", resume=True, progress=False)
    assert same_parameters(whole.model, again.model)
