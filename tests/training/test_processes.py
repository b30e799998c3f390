"""Several processes of one command find each other, end together, and train what one would.

The losses are the same, each example is taken once, and any number of processes can go on with a run.
"""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import torch
from helpers.runs import small_recipe, watch_losses

from regard.errors import OptionError, TrainingError
from regard.systems.run import train
from regard.training.checkpoints import read_checkpoint, step_files
from regard.training.divergence import Divergence
from regard.training.processes import environment, fabric, joined, launch
from regard.training.recipes import recipe_toml
from regard.training.settings import Devices

SCRIPT = Path(__file__).parent.parent / "helpers" / "joint_run.py"
STEPS = 10


VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", f"import os, signal, sys, time; rank = int(os.environ['RANK']); {code}"]


def test_processes_are_told_who_they_are(tmp_path):
    names = ", ".join(f"os.environ[{name!r}]" for name in VARIABLES)
    assert launch(python(f"open(r'{tmp_path}/' + str(rank), 'w').write(' '.join(({names})))"), 3) == 0
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [each[:3] for each in found] == [[str(rank), str(rank), "3"] for rank in range(3)]
    assert len({tuple(each[3:]) for each in found}) == 1


def test_the_port_at_which_processes_meet_is_taken_before_they_start():
    """Another training that starts at the same time cannot be given it."""
    assert (
        launch(
            python(
                "import socket; sys.exit(socket.socket().connect_ex(('127.0.0.1', int(os.environ['MASTER_PORT']))))"
            ),
            1,
        )
        == 0
    )


def test_the_status_of_a_failed_process_is_that_of_the_command(monkeypatch):
    monkeypatch.setattr("regard.training.processes.GRACE_SECONDS", 0.2)
    assert launch(python("time.sleep(600 * (rank != 1)); sys.exit(3)"), 2) == 3


def test_a_killed_process_ends_the_others(monkeypatch):
    monkeypatch.setattr("regard.training.processes.GRACE_SECONDS", 0.2)
    with pytest.raises(TrainingError, match="Process 2 of 3 was killed by signal 9; all have ended"):
        launch(python("rank == 1 and os.kill(os.getpid(), signal.SIGKILL); time.sleep(600)"), 3)


def test_sigterm_reaches_every_process(tmp_path):
    """The processes end by themselves when they have saved their work."""
    handler = f"signal.signal(signal.SIGTERM, lambda *_: (open(r'{tmp_path}/' + str(rank), 'w'), sys.exit(143)))"
    code = f"{handler}; open(r'{tmp_path}/ready' + str(rank), 'w'); time.sleep(600)"
    parent = f"from regard.training.processes import launch; import sys; sys.exit(launch({python(code)!r}, 2))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen([sys.executable, "-c", parent], env=environment)
    until = time.monotonic() + 600
    while not all((tmp_path / f"ready{rank}").exists() for rank in (0, 1)) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(600) == 143
    assert all((tmp_path / str(rank)).exists() for rank in (0, 1))


@pytest.fixture
def variables(monkeypatch):
    for name in list(os.environ):
        if name in VARIABLES or name.startswith("SLURM"):
            monkeypatch.delenv(name)
    return monkeypatch.setenv


def test_who_started_a_process_is_known(variables):
    assert environment(Devices(2)) is None
    for name, value in {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_NAME": "train"}.items():
        variables(name, value)
    assert environment(Devices(2)) is None, "a script that SLURM started once may start processes itself"
    variables("SLURM_PROCID", "3")
    variables("SLURM_LOCALID", "1")
    found = environment(Devices(2, nodes=2))
    assert (found.world_size(), found.global_rank(), found.local_rank()) == (4, 3, 1)
    for name, value in {"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        variables(name, value)
    found = environment(Devices(1, nodes=2))
    assert (found.world_size(), found.global_rank(), found.local_rank()) == (2, 1, 0)


def test_too_few_or_too_many_processes_are_refused(variables):
    with (
        pytest.raises(OptionError, match=r"4 processes, but one process was started.*torchrun --nnodes 2"),
        joined(Devices(2, nodes=2)),
    ):
        pass
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        variables(name, value)
    with pytest.raises(OptionError, match=r"3 processes, but 2 processes were started"), joined(Devices(3)):
        pass
    with pytest.raises(OptionError, match=r"1 devices of 1 nodes are 1 processes, but 2 .*"), joined(Devices(1)):
        pass


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
        patch.setattr(Divergence, "update", logged_losses(losses))
        trained = train(folder / "recipe.toml", out=folder / "run", progress=False)
    assert trained.metrics["steps"] == STEPS
    return folder, trained, losses


def logged_losses(seen):
    original = Divergence.__dict__["update"]

    def watched(self, loss, step):
        seen[step] = float(self.task.metrics["loss"])
        original(self, loss, step)

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


@pytest.mark.parametrize("names", [("lightning_fabric",), ("lightning", "lightning_fabric"), ("lightning",), ()])
def test_fabric_is_taken_from_either_of_its_packages(names, monkeypatch):
    taken = "lightning_fabric" if "lightning_fabric" in names else "lightning.fabric"
    monkeypatch.setattr("regard.training.processes.find_spec", lambda name: name in names or None)
    for name in ("lightning", "lightning.fabric", "lightning_fabric"):
        found = ModuleType(name) if name.split(".")[0] in names else None
        monkeypatch.setitem(sys.modules, name, found)
    if names:
        assert fabric() is sys.modules[taken]
        return
    with pytest.raises(
        OptionError, match=r"Training needs the package lightning_fabric: pip install 'regard\[train\]'"
    ):
        fabric()


def test_each_task_of_slurm_may_train_alone(tmp_path, monkeypatch):
    names = {"NTASKS": 4, "PROCID": 3, "LOCALID": 3, "JOB_NAME": "sweep", "JOB_ID": 7, "NODEID": 0, "NNODES": 1}
    for name, value in names.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    trained = train(small_recipe("tape", tmp_path, epochs=1), out=tmp_path / "run", progress=False)
    written = {path.name for path in trained.folder.parent.iterdir()}
    assert {"model", "run.json", "recipe.toml", "checkpoints"} <= written
    assert (trained.folder.parent / "logs" / "metrics.csv").is_file()


def test_a_killed_process_ends_the_training_and_one_process_goes_on_with_it(alone, tmp_path, monkeypatch):
    folder, whole, losses = alone
    process = run_script(folder / "recipe.toml", tmp_path / "run", 2, 1, STEPS // 2 + 2)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 1, errors
    assert "Process 2 of 2 was killed by signal 9" in errors
    assert f"To continue: regard train --resume --out {tmp_path / 'run'}" in errors
    assert "Traceback" not in errors
    check_examples(Path(f"{tmp_path / 'run'}.examples"), num_examples=37, epochs=[0])
    lines = Path(f"{tmp_path / 'run'}.losses").read_text().splitlines()
    again = {int(step): float(loss) for step, loss in map(str.split, lines)}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["processes"] == 2
    monkeypatch.setattr(Divergence, "update", logged_losses(again))
    train(out=tmp_path / "run", resume=True, progress=False)
    assert again == pytest.approx(losses, abs=1e-4)
    assert sorted(again) == list(range(1, STEPS + 1))
    assert same(folder / "run", tmp_path / "run")
    check_metrics(tmp_path / "run", whole)


def test_two_processes_go_on_with_the_run_of_one(alone, tmp_path, monkeypatch):
    folder, whole, _ = alone
    with monkeypatch.context() as patch:
        patch.setattr(Divergence, "update", watch_losses({}, stop_at=3))
        with pytest.raises(MemoryError, match="killed"):
            train(folder / "recipe.toml", out=tmp_path / "run", progress=False)
    command = [sys.executable, "-m", "regard", "train", "--resume", "--out", tmp_path / "run", "--devices", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=600)
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
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    check_examples(Path(f"{tmp_path / 'run'}.examples"), num_examples=37, epochs=[0, 1])
    assert same(folder / "run", tmp_path / "run")
    check_metrics(tmp_path / "run", whole)
