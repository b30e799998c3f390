"""A run that is interrupted and resumed gives the parameters that it would have given without the interruption."""

import signal
from functools import cache

import pytest
import torch

from regard.systems.run import read_recipe, train
from regard.systems.translation.experiment import TranslationTask
from regard.training import checkpoints

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAIRS = [(" ".join(WORDS[i % 7 : i % 7 + 1 + i % 3]), " ".join(WORDS[i % 5 : i % 5 + 2])) for i in range(60)]
KINDS = {
    "rnnsearch": {},
    "average": {"average_decay": 0.9},
    "plateau": {"schedule": "plateau", "warmup": 0.1},
    "hard": {"average_decay": 0.9, "patience": 3},
}


@pytest.fixture(scope="module")
def recipe_of(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"{i} {source}\t{target}\n" for i, (source, target) in enumerate(PAIRS)))

    def make(kind: str, **options):
        data = {"pairs": str(path), "vocabulary": 60, "held_out": 4}
        model = {"embedding": 8, "hidden": 8, "align": "hard" if kind == "hard" else "softmax"}
        training = {"epochs": 3, "max_tokens": 40, "learning_rate": 0.01} | KINDS[kind] | options
        return read_recipe(None, {"data": data, "model": model, "train": training})

    return make


@pytest.fixture(scope="module")
def whole_run(recipe_of, tmp_path_factory):
    """A run without interruption, trained once for each kind, and its folder."""

    @cache
    def run(kind: str):
        folder = tmp_path_factory.mktemp(kind)
        return train(recipe_of(kind), out=folder, progress=False), folder

    return run


def interrupt_at(step: int, monkeypatch) -> None:
    """As if Ctrl-C were pressed while this step is computed."""
    training_step = TranslationTask.training_step

    def interrupted(self, batch, index):
        if self.global_step == step:
            monkeypatch.setattr(TranslationTask, "training_step", training_step)
            signal.raise_signal(signal.SIGINT)
        return training_step(self, batch, index)

    monkeypatch.setattr(TranslationTask, "training_step", interrupted)


def last(folder):
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)


def assert_same(first, second) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


@pytest.mark.parametrize("when", ["begin", "middle", "end"])
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_and_resumed_is_as_if_never_interrupted(kind, when, recipe_of, whole_run, tmp_path, monkeypatch):
    recipe = recipe_of(kind)
    whole, folder = whole_run(kind)
    an_epoch = whole.metrics["steps"] // 3
    assert an_epoch >= 6
    step = an_epoch + {"begin": 0, "middle": an_epoch // 2, "end": an_epoch - 1}[when]
    interrupt_at(step, monkeypatch)
    stopped = train(recipe, out=tmp_path / "parts", progress=False)
    assert stopped.metrics["steps"] == step + 1
    assert (whole.interrupted, stopped.interrupted) == (False, True)
    resumed = train(recipe, out=tmp_path / "parts", resume=True, progress=False)
    assert not resumed.interrupted
    assert resumed.metrics | {"tokens/s": 0} == whole.metrics | {"tokens/s": 0}
    assert_same(whole.model.to("cpu").state_dict(), resumed.model.to("cpu").state_dict())
    first, second = last(folder), last(tmp_path / "parts")
    assert_same(first["state_dict"], second["state_dict"])
    for name in ("epoch", "global_step", "plateau", "lr_schedulers"):
        assert first[name] == second[name], name


def test_a_run_that_is_killed_goes_on_from_its_checkpoint_within_the_epoch(recipe_of, tmp_path, monkeypatch):
    recipe = recipe_of("rnnsearch", checkpoint_minutes=1e-9)
    whole = train(recipe, out=tmp_path / "whole", progress=False)
    an_epoch = whole.metrics["steps"] // 3
    training_step = TranslationTask.training_step

    def killed(self, batch, index):
        if self.global_step == an_epoch + 3:
            raise MemoryError("killed")
        return training_step(self, batch, index)

    monkeypatch.setattr(TranslationTask, "training_step", killed)
    with pytest.raises(MemoryError, match="killed"):
        train(recipe, out=tmp_path / "parts", progress=False)
    monkeypatch.setattr(TranslationTask, "training_step", training_step)
    assert last(tmp_path / "parts")["global_step"] == an_epoch + 3
    resumed = train(recipe, out=tmp_path / "parts", resume=True, progress=False)
    assert_same(whole.model.to("cpu").state_dict(), resumed.model.to("cpu").state_dict())


def test_within_an_epoch_a_checkpoint_is_written_only_when_it_is_due(recipe_of, tmp_path, monkeypatch):
    written = []
    write = checkpoints.KeepLast._write
    monkeypatch.setattr(
        checkpoints.KeepLast,
        "_write",
        lambda self, trainer: written.append(trainer.global_step) or write(self, trainer),
    )
    steps = train(recipe_of("rnnsearch"), out=tmp_path / "run", progress=False).metrics["steps"]
    assert written == [steps // 3, 2 * steps // 3, steps]
