"""A new system is its own parts plus one line in one table; everything else works with it without being edited.

The system of this file picks the largest of some numbers by attention: a score of each number, a softmax over them, and
the weighted average of the numbers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard.attention import align
from regard.cli import main
from regard.config import Checked, PositiveInt
from regard.data.batches import BatchLoader, CostBatches
from regard.data.splits import Splits
from regard.errors import ModelError, OptionError
from regard.systems.config import Options
from regard.systems.folder import Labels
from regard.systems.registry import MODULES, Declaration
from regard.systems.report import Measure, Report
from regard.systems.system import Result, System
from regard.training.experiment import Experiment
from regard.training.settings import TrainSettings
from regard.training.task import Task


@dataclass(frozen=True)
class PickerConfig(Checked):
    """The parts of a picker."""

    hidden: PositiveInt = 8
    """Units of the score."""


@dataclass(frozen=True)
class PickOptions(Options):
    """Options of `pick`."""

    digits: PositiveInt = 2
    """Digits after the point."""


@dataclass(frozen=True)
class Pick(Result):
    """The number that was picked."""

    value: float
    unit: str


class Picker(System[list[float], Pick, PickOptions]):
    """Picks the largest of some numbers."""

    kind = "pick"
    Config = PickerConfig
    assets: ClassVar[Mapping[str, Any]] = {"units": Labels}

    def __init__(self, config: PickerConfig, units: Sequence[str]) -> None:
        super().__init__(config)
        self.units = Labels(units)
        self.score = nn.Sequential(nn.Linear(1, config.hidden), nn.Tanh(), nn.Linear(config.hidden, 1))

    def forward(self, numbers: Tensor) -> regard.Attended:
        """The picked number of each row, and the attention."""
        keys = numbers.unsqueeze(-1)
        query = keys.new_zeros(len(numbers), 1, 1)
        return regard.attend(query, keys, score=lambda _, key: self.score(key).mT, align=align.softmax, weights=True)

    def costs(self, inputs: Sequence[Any]) -> list[int]:
        return [len(numbers) for numbers in inputs]

    pick = System.predict

    @classmethod
    def is_one(cls, given: Any) -> bool:
        return not isinstance(given[0], list | tuple)

    def parse(self, line: str, options: PickOptions) -> list[float] | None:
        return [float(number) for number in line.split()] or None

    def read_arguments(self, given: Sequence[str], *others: Any) -> list[Any] | None:
        return super().read_arguments([" ".join(given)] if given else [], *others)

    def as_text(self, result: Pick, options: PickOptions) -> str:
        return f"{result.value} {result.unit}"

    def predict_batch(self, inputs: Sequence[Sequence[float]], options: PickOptions) -> list[Pick]:
        results = []
        for numbers in inputs:
            context, weights = self(torch.tensor([list(numbers)], device=self.device))
            trace = regard.Trace.from_weights([str(number) for number in numbers], ["largest"], weights[0].cpu())
            results.append(Pick(round(float(context), options.digits), self.units[0], trace=trace))
        return results


@dataclass(frozen=True)
class PickerData(Checked):
    """Which numbers to learn from."""

    examples: PositiveInt = 256
    """How many lists of numbers."""
    unit: str = "metres"
    """What the numbers count."""


@dataclass(frozen=True)
class PickerTrain(TrainSettings):
    """How to train a picker."""

    batch_size: PositiveInt = 32
    """Lists in a batch."""


class PickerTask(Task):
    """The steps of training and validation."""

    def __init__(self, model: Picker, settings: PickerTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model = model

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        loss = self._error(batch)
        self.log("loss", loss.detach(), batch_size=len(batch))
        self.count(len(batch), index)
        return loss

    def validation_step(self, batch: Tensor, index: int) -> None:
        self.log("valid_closeness", -self._error(batch), batch_size=len(batch))

    def _error(self, batch: Tensor) -> Tensor:
        return (self.model(batch).context.flatten() - batch.amax(1)).square().mean()


class PickerExperiment(Experiment[Picker]):
    """Numbers in, a trained picker out."""

    Data = PickerData
    Train = PickerTrain
    score = "valid_closeness"

    def read(self) -> Splits[Tensor, Tensor]:
        numbers = torch.randn(self.recipe.data.examples, 5)
        return Splits(numbers[32:], numbers[:16], numbers[16:32])

    def build(self, splits: Any) -> Picker:
        return Picker(self.recipe.model, [self.recipe.data.unit])

    def task(self, model: Picker, splits: Any) -> tuple[Task, BatchLoader, BatchLoader]:
        def loader(rows: Tensor, shuffle: bool) -> BatchLoader:
            sizes = np.ones((len(rows), 1), dtype=np.int64)
            batches = CostBatches(sizes, max_cost=self.recipe.train.batch_size, shuffle=shuffle, seed=1)
            return BatchLoader(range(len(rows)), batches, collate_fn=lambda places: rows[torch.tensor(places)])

        train = loader(splits.train, True)
        task = PickerTask(model, self.recipe.train, self.recipe.train.epochs * len(train))
        return task, train, loader(splits.valid, False)

    def test(self, model: Picker, splits: Any) -> dict[str, Any]:
        return {"test_error": float((model(splits.test).context.flatten() - splits.test.amax(1)).abs().mean())}


@dataclass(frozen=True)
class PickTest(Checked):
    """What a picker is evaluated on."""

    count: PositiveInt = 100
    """How many lists of numbers."""


def evaluate(model: Picker, test_set: PickTest, *, name: str = "model") -> Report:
    numbers = torch.randn(test_set.count, 5, generator=torch.Generator().manual_seed(3)).tolist()
    errors = [abs(result.value - max(row)) for result, row in zip(model.pick(numbers), numbers, strict=True)]
    scores = {"mean error": Measure(sum(errors) / len(errors), "{:.3f}", model.units[0])}
    return Report(name, f"{len(numbers)} lists", scores)


SYSTEM = Declaration(
    summary="Pick the largest of some numbers.",
    inputs="numbers",
    about_inputs="The numbers.",
    example="regard pick --model {model} 1 2 3",
    headline={"test_error": "error {:.2f}"},
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "pick", __name__)  # the one line


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODULES, "pick", __name__)
        folder = tmp_path_factory.mktemp("picker")
        (folder / "recipe.toml").write_text('system = "pick"\n[train]\nepochs = 12\nlearning_rate = 0.1\n')
        return regard.train(folder / "recipe.toml", out=folder / "run", model={"hidden": 11}, progress=False)


def run(*tokens: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(tokens))
    return int(ended.value.code or 0)


def test_it_trains_and_is_saved_with_its_assets(trained):
    assert trained.metrics["test_error"] < 0.3
    stored = json.loads((trained.folder / "config.json").read_text())
    assert stored["system"] == "pick"
    assert stored["config"] == {"hidden": 11}
    assert json.loads((trained.folder / stored["assets"]["units"]).read_text()) == ["metres"]


def test_it_is_loaded_by_its_folder_and_answers_one_or_many(trained):
    model = regard.load(trained.folder)
    assert isinstance(model, Picker)
    one = model.pick([1.0, 3.0, 2.0])
    assert one.value == pytest.approx(3.0, abs=0.5)
    assert model.pick([[1.0, 3.0, 2.0], [0.0, -1.0]])[0].value == one.value
    assert [each.value for each in model.stream(iter([[1.0, 3.0, 2.0]] * 3), read_ahead=2)] == [one.value] * 3
    assert regard.view(one).figure() is not None
    with pytest.raises(ModelError, match="pick model, not a translate model"):
        regard.Translator.load(trained.folder)


def test_it_is_evaluated(trained):
    report = regard.evaluate(trained.folder, count=20)
    assert report["mean error"] < 0.3
    with pytest.raises(OptionError, match=r"there is no field 'cuont'. Did you mean 'count'\?"):
        regard.evaluate(trained.folder, cuont=20)


def test_its_configs_are_checked(tmp_path):
    with pytest.raises(OptionError, match=r"hidden must be a whole number, 1 or more; got 0"):
        regard.train(None, out=tmp_path, model={"hidden": 0})
    (tmp_path / "bad.toml").write_text('system = "pick"\n[data]\nexamples = "many"\n')
    with pytest.raises(OptionError, match=r"bad.toml \[data\]: examples must be a whole number, 1 or more; got 'many'"):
        regard.train(tmp_path / "bad.toml", out=tmp_path / "run")


def test_the_command_line_trains_evaluates_and_calls_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picker.toml").write_text('system = "pick"\n[train]\nepochs = 12\nlearning_rate = 0.1\n')
    assert run("train", "picker.toml", "--out", "run", "--data.unit", "miles") == 0
    assert "Try it: regard pick --model run/model 1 2 3" in capsys.readouterr().out
    assert run("evaluate", "run", "--count", "20", "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["mean error"]["note"] == "miles"
    assert run("pick", "--model", "run/model", "1", "3", "2", "--digits", "1") == 0
    assert capsys.readouterr().out.strip().endswith("miles")
    assert run("pick", "--model", "run", "1", "3", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trace"]["version"] == 3
    (tmp_path / "lines.txt").write_text("1 3 2\n\n0 4\n")
    assert run("pick", "--model", "run", "--input", "lines.txt", "--show", "-") == 0
    assert capsys.readouterr().out.count("miles") == 2
    assert run("pick", "--model", "run", "1", "2", "--show", "pick.html") == 0
    assert "largest" in (tmp_path / "pick.html").read_text()
    assert run("pick", "1") == 2
    assert "model" in capsys.readouterr().err
    assert run("pick", "--help") == 0
    assert "Pick the largest of some numbers." in capsys.readouterr().out
    assert run("recipes", "--fields", "pick") == 0
    assert "--data.unit" in capsys.readouterr().out
    assert run("pick", "--model", "run", "1", "--digits", "0") == 2
    assert "digits must be a whole number, 1 or more; got 0" in capsys.readouterr().err
