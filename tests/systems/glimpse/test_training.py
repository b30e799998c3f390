"""Training glimpse models: REINFORCE points the right way, and a policy is learned."""

import pytest
import torch

from regard.errors import DataError, OptionError
from regard.systems.glimpse.config import GlimpsesConfig, GlimpsesTrain
from regard.systems.glimpse.model import Glimpser
from regard.systems.glimpse.training import GlimpsesExperiment, GlimpsesTask
from regard.systems.plan import check_recipe, read_recipe
from regard.systems.run import train
from regard.training.recipes import RawRecipe, recipe_names
from regard.worlds.digits import DIGITS

DATA = {"examples": 96, "held_out": 20, "test_examples": 30}
MODEL = {"image_size": 30, "num_glimpses": 3, "glimpse_size": 6, "num_scales": 2, "hidden": 16, "glimpse_dim": 8}
TRAIN = {"epochs": 2, "batch_size": 32}


def recipe_of(data=None, model=None, training=None):
    tables = {"data": DATA | (data or {}), "model": MODEL | (model or {}), "train": TRAIN | (training or {})}
    return check_recipe(RawRecipe("glimpse", tables))


def task_of(model=None, **training) -> GlimpsesTask:
    torch.manual_seed(2)
    config = GlimpsesConfig(**{**MODEL, "image_size": 12, **(model or {})})
    return GlimpsesTask(Glimpser(config, DIGITS), GlimpsesTrain(**training), 100)


def batch(count=64):
    images = torch.randint(0, 256, (count, 1, 12, 12)).to(torch.uint8)
    return images, torch.randint(0, 10, (count,)), torch.zeros(count, 2), torch.randn(count, 2, 2), torch.tensor(0.1)


def test_the_loss_is_cross_entropy_plus_reinforce_plus_the_error_of_the_baseline():
    task = task_of(reinforce_weight=0.3, baseline_weight=0.7)
    images, labels, first, noise, deviation = batch()
    loss = task.loss((images, labels, first, noise, deviation))
    with torch.no_grad():
        path = task.model.look(images, first=first, noise=deviation * noise)
    expected = 0.0
    for row in range(len(images)):
        reward = float(path.logits[row, -1].argmax() == labels[row])
        expected -= float(path.logits[row, -1].log_softmax(-1)[labels[row]])
        for step in range(2):
            gap = reward - float(path.baselines[row, step])
            log_prob = -float((deviation * noise[row, step]).square().sum()) / (2 * 0.1**2)
            expected += -0.3 * gap * log_prob + 0.7 * gap**2 / 2
    assert loss.item() == pytest.approx(expected / len(images), rel=1e-4)
    right = (path.logits[:, -1].argmax(-1) == labels).float().mean()
    assert float(task.metrics["reward"]) == pytest.approx(float(right))


def test_reinforce_moves_the_mean_towards_rewarded_locations():
    """Its gradient for a mean is -(R - b) (l - mean) / deviation^2, by the closed form."""
    task = task_of(reinforce_weight=1.0, baseline_weight=0.0)
    images, labels, first, noise, deviation = batch()
    path = task.model.look(images, first=first, noise=deviation * noise)
    means = path.means.detach().requires_grad_()
    changed = type(path)(path.locations, path.logits, means, path.baselines)
    task._policy_loss(changed, labels, noise, deviation).backward()
    reward = (path.logits[:, -1].argmax(-1) == labels).float()[:, None]
    expected = -((reward - path.baselines).detach()[..., None] * noise / deviation) / len(images)
    torch.testing.assert_close(means.grad, expected)


@pytest.mark.parametrize("policy", ["learned", "random", "center"])
def test_only_a_learned_policy_learns(policy):
    task = task_of({"policy": policy})
    images, labels, *_ = batch()
    first, noise = task._drawn(64, images.device)
    assert bool((first != 0).any()) == (policy != "center")
    task.loss((images, labels, first, noise, torch.tensor(0.2))).backward()
    learns = [each.grad is not None and bool((each.grad != 0).any()) for each in task.model.locator.parameters()]
    assert all(learns) if policy == "learned" else not any(learns)


def test_one_glimpse_has_no_policy_to_learn_and_belief_weight_teaches_every_answer():
    task = task_of({"num_glimpses": 1}, belief_weight=0.5)
    images, labels, first, _, deviation = batch()
    loss = task.loss((images, labels, first, torch.zeros(64, 0, 2), deviation))
    logits = task.model.look(images, first=first, noise=torch.zeros(64, 0, 2)).logits[:, -1]
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits, labels))
    plain, taught = task_of(), task_of(belief_weight=0.5)
    inputs = batch()
    path = plain.model.look(inputs[0], first=inputs[2], noise=inputs[4] * inputs[3])
    earlier = [torch.nn.functional.cross_entropy(path.logits[:, step], inputs[1]) for step in range(2)]
    gap = taught.loss(inputs) - plain.loss(inputs)
    torch.testing.assert_close(gap, 0.25 * (earlier[0] + earlier[1]))


def test_the_noise_falls_from_the_first_to_that_of_the_model(monkeypatch):
    task = task_of(first_noise=0.25)
    for done, expected in ((0.0, 0.25), (0.5, 0.15), (1.0, 0.05)):
        monkeypatch.setattr(task, "fraction_done", lambda step, done=done: done)
        assert task._noise() == pytest.approx(expected)


@pytest.mark.usefixtures("unchecked")
def test_a_learned_policy_beats_random_locations_by_ten_points(tmp_path):
    data = {"pieces": 2, "distortion": 0.2, "examples": 128 * 300, "held_out": 200, "test_examples": 500}
    model = {"image_size": 48, "glimpse_size": 8, "num_scales": 3, "hidden": 128, "glimpse_dim": 96}
    training = {"epochs": 1, "batch_size": 128, "learning_rate": 0.002}
    learned, random = (
        train(recipe_of(data, model | {"policy": policy}, training), out=tmp_path / policy, progress=False).metrics
        for policy in ("learned", "random")
    )
    assert learned["test_error"] < random["test_error"] - 10
    assert random["on_digit"] == random["random_on_digit"]


def test_a_run_goes_on_from_a_trained_model_and_reads_no_other_classes(tmp_path):
    first = train(recipe_of(), out=tmp_path / "first", progress=False)
    again = train(recipe_of({"pieces": 1}), out=tmp_path / "again", start_from=first.folder, progress=False)
    assert set(again.metrics) >= {"test_error", "on_digit", "random_on_digit", "center_on_digit", "random_path_error"}
    other = Glimpser(GlimpsesConfig(**MODEL), ["a", "b"])
    with pytest.raises(DataError, match=r"knows the classes \['a', 'b'\], and the images show digits"):
        train(recipe_of(), out=tmp_path / "no", start_from=other, progress=False)


def test_what_cannot_be_trained_is_explained(tmp_path):
    with pytest.raises(OptionError, match=r"Digits are grey: set --model.channels 1; got 3"):
        train(recipe_of(model={"channels": 3}), out=tmp_path, progress=False)
    with pytest.raises(OptionError, match="Digits of 28 x 28 pixels do not fit into images of 20 x 20"):
        train(recipe_of(model={"image_size": 20}), out=tmp_path, progress=False)
    with pytest.raises(DataError, match="train-images"):
        train(recipe_of({"folder": str(tmp_path)}), out=tmp_path / "run", progress=False)


def test_the_packaged_recipes_draw_what_they_promise(tmp_path):
    names = [name for name in recipe_names() if name.startswith("glimpse-")]
    assert set(names) == {
        "glimpse-mnist", "glimpse-translated", "glimpse-cluttered", "glimpse-cluttered-100", "glimpse-digits",
    }  # fmt: skip
    for name in names:
        recipe = read_recipe(name)
        assert recipe.system == "glimpse"
        assert recipe.data.pieces == {"glimpse-cluttered": 4, "glimpse-cluttered-100": 8, "glimpse-digits": 2}.get(
            name, 0
        )
        assert Glimpser(recipe.model, DIGITS).look(torch.zeros(1, 1, *[recipe.model.image_size] * 2)) is not None
    splits = GlimpsesExperiment(read_recipe("glimpse-digits"), tmp_path, progress=False).read_data()
    assert len(splits.valid) == 1000
