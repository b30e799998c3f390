"""Two processes train what one would: the same losses, each example once, and a run that any number can go on with."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from helpers.runs import small_recipe, watch_losses
from lightning.pytorch.utilities import rank_zero_only

from regard.systems.run import train
from regard.training.checkpoint_files import read_checkpoint, step_files
from regard.training.divergence import StopWhenDiverged
from regard.training.recipes import recipe_toml

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")
SCRIPT = Path(__file__).parent.parent / "helpers" / "joint_run.py"
STEPS = 10


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run of one process, with a batch of a single example, which two processes cannot divide."""
    folder = tmp_path_factory.mktemp("alone")
    recipe = small_recipe("translate", folder / "data", average_decay=0.9, learning_rate=0.03)
    with (folder / "data" / "pairs.tsv").open("a") as pairs:
        pairs.write(f"{'one two three ' * 9}\t{'four five ' * 9}\n")
    recipe = dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, bpe_dropout=0.0),
        model=dataclasses.replace(recipe.model, dropout=0.0, output_dropout=0.0),
    )
    (folder / "recipe.toml").write_text(recipe_toml(recipe))
    losses: dict[int, float] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StopWhenDiverged, "on_train_batch_end", logged_losses(losses))
        trained = train(folder / "recipe.toml", out=folder / "run", progress=False)
    assert trained.metrics["steps"] == STEPS
    return folder, trained, losses


def logged_losses(seen):
    original = StopWhenDiverged.__dict__["on_train_batch_end"]

    def watched(self, trainer, *args):
        seen[trainer.global_step] = float(trainer.callback_metrics["loss"])
        original(self, trainer, *args)

    return watched


def run_script(*arguments, prefix=(), **variables):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | variables
    command = [*prefix, sys.executable, SCRIPT, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def same(first, second):
    """Whether two runs ended with the same parameters, up to the order in which numbers were added."""
    states = [read_checkpoint(step_files(run / "checkpoints")[0])["state_dict"] for run in (first, second)]
    return all(torch.allclose(value, states[1][name], atol=2e-4) for name, value in states[0].items())


def check_metrics(run, whole):
    """BLEU is left out: the texts of a model that has learned nothing change with the last digit of a number."""
    metrics = json.loads((run / "model" / "metrics.json").read_text())
    for name in ("loss", "valid_loss", "steps", "epochs"):
        assert metrics[name] == pytest.approx(whole.metrics[name], abs=1e-3)


def check_examples(path, num_examples, epochs):
    """Each example once an epoch, and as many batches in each."""
    taken: dict[int, Counter[str]] = {}
    for line in path.read_text().splitlines():
        epoch, _, *indices = line.split()
        taken.setdefault(int(epoch), Counter()).update(indices)
    for epoch in epochs:
        assert taken[epoch] == Counter(map(str, range(num_examples)))


def test_each_task_of_slurm_may_train_alone(tmp_path, monkeypatch):
    names = {"NTASKS": 4, "PROCID": 3, "LOCALID": 3, "JOB_NAME": "sweep", "JOB_ID": 7, "NODEID": 0, "NNODES": 1}
    for name, value in names.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    monkeypatch.setattr(rank_zero_only, "rank", 3)  # as Lightning reads it from there when it is imported
    trained = train(small_recipe("tape", tmp_path, epochs=1), out=tmp_path / "run", progress=False)
    written = {path.name for path in trained.folder.parent.iterdir()}
    assert {"model", "run.json", "recipe.toml", "checkpoints"} <= written
    assert (trained.folder.parent / "logs" / "metrics.csv").is_file()


def test_a_killed_process_ends_the_training_and_one_process_goes_on_with_it(alone, tmp_path, monkeypatch):
    folder, whole, losses = alone
    process = run_script(folder / "recipe.toml", tmp_path / "run", 2, 1, STEPS // 2 + 2)
    _, errors = process.communicate(timeout=150)
    assert process.returncode == 1, errors
    assert "Process 2 of 2 was killed by signal 9" in errors
    assert f"To continue: regard train --resume --out {tmp_path / 'run'}" in errors
    assert "Traceback" not in errors
    check_examples(Path(f"{tmp_path / 'run'}.examples"), num_examples=37, epochs=[0])
    lines = Path(f"{tmp_path / 'run'}.losses").read_text().splitlines()
    again = {int(step): float(loss) for step, loss in map(str.split, lines)}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["processes"] == 2
    monkeypatch.setattr(StopWhenDiverged, "on_train_batch_end", logged_losses(again))
    train(out=tmp_path / "run", resume=True, progress=False)
    assert again == pytest.approx(losses, abs=1e-4)
    assert sorted(again) == list(range(1, STEPS + 1))
    assert same(folder / "run", tmp_path / "run")
    check_metrics(tmp_path / "run", whole)


def test_two_processes_go_on_with_the_run_of_one(alone, tmp_path, monkeypatch):
    folder, whole, _ = alone
    with monkeypatch.context() as patch:
        patch.setattr(StopWhenDiverged, "on_train_batch_end", watch_losses({}, stop_at=3))
        with pytest.raises(MemoryError, match="killed"):
            train(folder / "recipe.toml", out=tmp_path / "run", progress=False)
    command = [sys.executable, "-m", "regard", "train", "--resume", "--out", tmp_path / "run", "--devices", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Wrote") == 1, "only the first process speaks"
    assert same(folder / "run", tmp_path / "run")
    check_metrics(tmp_path / "run", whole)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["resumed"][0]["processes"] == 2
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("*.ckpt"))
    assert kept == ["best.ckpt", f"step-{STEPS}.ckpt", f"step-{STEPS - 1}.ckpt"]


@pytest.fixture
def hosts():
    """Two network namespaces that are joined by a cable, as two machines are."""
    names, address = [f"regard{os.getpid()}{side}" for side in "ab"], "10.77.0.{}/24"
    ip = shutil.which("ip")
    commands = [["netns", "add", name] for name in names]
    commands += [
        ["link", "add", names[0][-14:], "netns", names[0], "type", "veth", "peer", names[1][-14:], "netns", names[1]]
    ]
    for number, name in enumerate(names, 1):
        inside = ["-n", name]
        commands.append([*inside, "addr", "add", address.format(number), "dev", name[-14:]])
        commands += [[*inside, "link", "set", device, "up"] for device in (name[-14:], "lo")]
    try:
        for command in commands:
            if ip is None or subprocess.run([ip, *command], check=False, capture_output=True).returncode:
                pytest.skip("network namespaces cannot be made here")
        yield {name: name[-14:] for name in names}
    finally:
        for name in names if ip is not None else ():
            subprocess.run([ip, "netns", "del", name], check=False, capture_output=True)


def test_two_hosts_train_together(alone, tmp_path, hosts):
    folder, whole, _ = alone
    common = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29577"}
    processes = [
        run_script(
            folder / "recipe.toml",
            tmp_path / "run",
            1,
            2,
            0,
            prefix=["ip", "netns", "exec", name],
            **common | {"RANK": str(rank), "GROUP_RANK": str(rank), "GLOO_SOCKET_IFNAME": device},
        )
        for rank, (name, device) in enumerate(hosts.items())
    ]
    for process in processes:
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 0, errors
    check_examples(Path(f"{tmp_path / 'run'}.examples"), num_examples=37, epochs=[0, 1])
    assert same(folder / "run", tmp_path / "run")
    check_metrics(tmp_path / "run", whole)
