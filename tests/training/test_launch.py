"""Several processes of one command: they find each other, end together, and pass signals on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from regard.errors import OptionError, TrainingError
from regard.training.launch import launch
from regard.training.processes import environment, joined
from regard.training.settings import Devices

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", f"import os, signal, sys, time; rank = int(os.environ['RANK']); {code}"]


def test_processes_are_told_who_they_are(tmp_path):
    names = ", ".join(f"os.environ[{name!r}]" for name in VARIABLES)
    assert launch(python(f"open(r'{tmp_path}/' + str(rank), 'w').write(' '.join(({names})))"), 3) == 0
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [each[:3] for each in found] == [[str(rank), str(rank), "3"] for rank in range(3)]
    assert len({tuple(each[3:]) for each in found}) == 1


def test_the_status_of_a_failed_process_is_that_of_the_command(monkeypatch):
    monkeypatch.setattr("regard.training.launch.GRACE_SECONDS", 0.2)
    assert launch(python("time.sleep(600 * (rank != 1)); sys.exit(3)"), 2) == 3


def test_a_killed_process_ends_the_others(monkeypatch):
    monkeypatch.setattr("regard.training.launch.GRACE_SECONDS", 0.2)
    with pytest.raises(TrainingError, match="Process 2 of 3 was killed by signal 9; all have ended"):
        launch(python("rank == 1 and os.kill(os.getpid(), signal.SIGKILL); time.sleep(600)"), 3)


def test_sigterm_reaches_every_process(tmp_path):
    """The processes end by themselves when they have saved their work."""
    handler = f"signal.signal(signal.SIGTERM, lambda *_: (open(r'{tmp_path}/' + str(rank), 'w'), sys.exit(143)))"
    code = f"{handler}; open(r'{tmp_path}/ready' + str(rank), 'w'); time.sleep(600)"
    parent = f"from regard.training.launch import launch; import sys; sys.exit(launch({python(code)!r}, 2))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen([sys.executable, "-c", parent], env=environment)
    until = time.monotonic() + 120
    while not all((tmp_path / f"ready{rank}").exists() for rank in (0, 1)) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
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
    with pytest.raises(OptionError, match="'fsdp' needs GPUs"), joined(Devices(2, strategy="fsdp")):
        pass
