"""How a memory machine learns: new tapes in every update, the same ones for the same seed, longer ones later."""

import math
from collections import Counter

import pytest
import torch

import regard
from regard.errors import OptionError
from regard.systems.plan import read_recipe
from regard.systems.tape.config import TapeConfig, TapeData, TapeTrain
from regard.systems.tape.model import TuringMachine
from regard.systems.tape.training import TapeExperiment, TapeTask, bit_loss, clip_finite
from regard.worlds.tapes import TASKS, Copy, Recall, RepeatCopy, Tapes

SMALL = {"hidden": 20, "slots": 6, "width": 6}
TINY = {"bits": 2, "max_length": 3, "valid_tapes": 30}
SHORT = {"epochs": 2, "epoch_updates": 100, "batch_size": 32, "learning_rate": 0.02}


def recipe(tmp_path, **tables) -> str:
    path = tmp_path / "recipe.toml"
    path.write_text('system = "tape"\n')
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    return regard.train(recipe(folder), out=folder / "run", data=TINY, model=SMALL, train=SHORT, progress=False)


def test_a_machine_learns_to_copy(trained):
    """Chance is 4 bits a sequence, 2 for each of its vectors."""
    metrics = trained.metrics
    assert metrics["test_bits"] < 2.5
    assert metrics["test_bits_right"] > 75
    assert metrics["steps"] == 200
    assert metrics["valid_log_likelihood"] == pytest.approx(-metrics["valid_bits"], abs=0.3)
    assert set(metrics) >= {"parameters", "test_bits_right", "length_3_bits_right", "length_6_bits_right"}
    result = regard.load(trained.folder, device="cpu").tape("10 01")
    assert result.target == ((1, 0), (0, 1))


def test_training_goes_on_from_a_machine_with_longer_tapes(trained, tmp_path):
    out = tmp_path / "longer"
    data = TINY | {"max_length": 5}
    brief = SHORT | {"epochs": 1, "epoch_updates": 2}
    longer = regard.train(recipe(tmp_path), out=out, data=data, train=brief, start_from=trained.folder, progress=False)
    assert regard.load(longer.folder, device="cpu").task == Copy(bits=2, max_length=5)
    with pytest.raises(OptionError, match="trained for copy with 2 bits, and this recipe asks for copy with 3"):
        regard.train(
            recipe(tmp_path),
            out=out,
            data={"bits": 3},
            train=brief,
            start_from=trained.folder,
            overwrite=True,
            progress=False,
        )
    assert regard.load(out, device="cpu").task.max_length == 5, "a run is replaced only when another one begins"


def a_task(task=None, **settings) -> TapeTask:
    torch.manual_seed(1)
    machine = TuringMachine(TapeConfig(**SMALL), task or Copy(bits=2, max_length=6))
    return TapeTask(machine, TapeTrain(batch_size=4, **settings), total_steps=100)


def test_an_update_always_sees_the_same_tapes():
    task, again, other = a_task(seed=1), a_task(seed=1), a_task(seed=2)
    for step in (0, 1, 50):
        assert all(torch.equal(*parts) for parts in zip(task.tapes(step), again.tapes(step), strict=True))
    first = [task.tapes(step).inputs for step in range(12)]
    longest = [tuple(each.flatten().tolist()) for each in first if each.shape[1] > 5]
    assert len(set(longest)) == len(longest) > 3, "new ones in every update"
    assert any(
        one.shape != two.inputs.shape or not torch.equal(one, two.inputs)
        for one, two in zip(first, map(other.tapes, range(12)), strict=True)
    )
    assert {each.shape[1] for each in first} <= {2 * length + 1 for length in range(1, 7)}


def test_a_curriculum_makes_tapes_longer():
    task = a_task(curriculum=0.5)
    assert [task.longest(step, 1, 6) for step in (0, 10, 30, 50, 99)] == [1, 2, 4, 6, 6]
    assert task.longest(0, 0, 6) == 1, "tapes without bits teach nothing"
    assert a_task().longest(0, 1, 6) == 6
    assert task.tapes(0).inputs.shape[1] == 3


def test_a_curriculum_also_begins_with_few_copies():
    task = a_task(RepeatCopy(bits=2, max_length=4, max_repeats=8), curriculum=0.5)
    assert task.tapes(0).inputs.shape[1] == 1 + 1 + 1 + 1
    steps = [task.tapes(step).inputs.shape[1] for step in range(10, 20)]
    assert max(steps) <= 2 + 1 + 2 * 4 + 1
    assert max(task.tapes(step).inputs.shape[1] for step in range(50, 100)) > 20


@pytest.mark.parametrize("name", TASKS)
def test_every_task_gives_a_loss_and_gradients(name):
    task = a_task(TASKS[name]())
    tapes = task.tapes(0)
    loss = bit_loss(task.model(tapes.inputs), tapes)
    loss.backward()
    assert 0.5 < float(loss.detach()) < 1, "about log 2 before training"
    assert all(part.grad is not None and part.grad.isfinite().all() for part in task.model.parameters())


def test_only_bits_that_count_are_in_the_loss():
    logits, targets = torch.randn(2, 5, 3), torch.rand(2, 5, 3).round()
    scored = torch.tensor([False, True, False, True, True])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits[:, scored], targets[:, scored])
    torch.testing.assert_close(bit_loss(logits, Tapes(logits, targets, scored)), expected)
    assert bit_loss(logits, Tapes(logits, targets, torch.zeros_like(scored))) == 0


def test_gradients_that_overflow_change_nothing_and_others_are_clipped():
    parts = [torch.zeros(3, requires_grad=True), torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)]
    parts[0].grad, parts[1].grad = torch.tensor([3.0, 0, 0]), torch.tensor([0, 4.0])
    clip_finite(parts, 10.0)
    assert parts[0].grad.tolist() == [3, 0, 0], "smaller ones stay as they are"
    clip_finite(parts, 0.5)
    torch.testing.assert_close(torch.cat([parts[0].grad, parts[1].grad]), torch.tensor([0.3, 0, 0, 0, 0.4]))
    clip_finite(parts, math.inf)
    for hostile in (math.inf, -math.inf, math.nan, 3e38):
        parts[0].grad, parts[1].grad = torch.tensor([3.0, hostile, 3e38]), torch.tensor([0, 4.0])
        clip_finite(parts, 0.5)
        assert not parts[0].grad.any()
        assert not parts[1].grad.any()


def test_both_optimizers_have_their_settings():
    adam, rmsprop = (a_task(optimizer=name, momentum=0.8).make_optimizer() for name in ("adam", "rmsprop"))
    assert isinstance(adam, torch.optim.AdamW)
    assert isinstance(rmsprop, torch.optim.RMSprop)
    assert rmsprop.defaults["momentum"] == 0.8


def test_longer_tapes_can_decide_which_machine_is_kept(tmp_path):
    chosen = {"data": TINY | {"valid_lengths": [5, 0]}, "model": SMALL}
    experiment = TapeExperiment(read_recipe(recipe(tmp_path), chosen), tmp_path, progress=False)
    splits = experiment.read_data()
    counted = Counter(len(tapes.scored) // 2 for tapes in splits.valid for _ in tapes.inputs)
    assert counted == {0: 30, 1: 10, 2: 10, 3: 10, 5: 30}
    experiment.build(splits)
    chosen["data"]["valid_lengths"] = [7]
    experiment = TapeExperiment(read_recipe(recipe(tmp_path), chosen), tmp_path, progress=False)
    with pytest.raises(OptionError, match=r"valid_lengths: copy of 7 vectors needs a memory of 7 slots or more"):
        experiment.build(experiment.read_data())
    with pytest.raises(OptionError, match="shortest sequence of recall has 2 items; got 1"):
        TapeData(task="recall", valid_lengths=(1,))


def test_fields_that_a_task_does_not_have_are_refused(tmp_path):
    assert TapeData(task="recall", item_length=2).make_task() == Recall(item_length=2)
    with pytest.raises(OptionError, match=r"The task copy has no item_length; got item_length 2\. Remove it"):
        TapeData(item_length=2)
    with pytest.raises(OptionError, match="copy of 20 vectors needs a memory of 20 slots or more; this one has 6"):
        regard.train(recipe(tmp_path), out=tmp_path / "run", model=SMALL, progress=False)
