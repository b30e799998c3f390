"""The devices and processes that train together: one for each GPU, or several on CPUs, on one machine or many.

They are started by `regard train --devices N`, by torchrun or by SLURM (srun), and all run the same command. The first
one prepares the data and writes all files.
"""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from regard.errors import OptionError, TrainingError
from regard.extras import require
from regard.training.settings import Devices

Value = TypeVar("Value")
PREPARATION = timedelta(days=2)
"""How long processes wait for the first one, which may have a large corpus to prepare."""
GRACE_SECONDS = 5.0
"""How long the other processes may take to end by themselves when one has failed, and then after SIGTERM."""
_groups: list[Any] = []
"""The group by which the joined processes exchange objects, if there are several."""
_rank = 0


def fabric(part: str = "") -> Any:
    """Fabric, or a module of it: the package lightning-fabric, or that part of the package lightning."""
    package = "lightning.fabric" if find_spec("lightning") and not find_spec("lightning_fabric") else "lightning_fabric"
    require("Training", package)
    logging.getLogger(package).setLevel(logging.WARNING)
    return import_module(package + part)


def connected(devices: Devices, precision: str, *, find_unused_parameters: bool) -> Any:
    """A Fabric: the device of this process, its precision, and how gradients are averaged over processes."""
    # A process that trains alone is no task of SLURM, whatever has started it.
    started_by = environment(devices) if devices.count > 1 else None
    strategies, environments = fabric(".strategies"), fabric(".plugins.environments")
    on_one = "auto" if devices.count == 1 else None
    connection = fabric().Fabric(
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=devices.devices,
        num_nodes=devices.nodes,
        strategy=on_one or strategies.DDPStrategy(find_unused_parameters=find_unused_parameters),
        precision=precision,
        plugins=[started_by or environments.LightningEnvironment()],
    )
    connection.launch()
    return connection


def check_devices(devices: Devices) -> None:
    """Raise an OptionError where this machine does not have the devices."""
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if num_gpus and devices.devices > num_gpus:
        raise OptionError(f"devices must be at most {num_gpus}, the GPUs of this machine; got {devices.devices}.")


def environment(devices: Devices) -> Any:
    """What has started this process as one of several: `regard train` itself, torchrun or SLURM; None for nothing."""
    environments = fabric(".plugins.environments")
    if {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= set(os.environ):
        return environments.TorchElasticEnvironment()
    # A script that SLURM runs once may itself start several processes, and tasks of SLURM may each train on their own.
    if not environments.SLURMEnvironment.detect() or int(os.environ["SLURM_NTASKS"]) != devices.count:
        return None
    try:
        return environments.SLURMEnvironment()
    except RuntimeError as error:
        raise OptionError(f"SLURM has not started the processes of a training: {error}") from error


def is_first_process() -> bool:
    """Whether this is the only process of a training, or the first of several."""
    return _rank == 0


def rank() -> int:
    """The number of this process among those that train together, from 0; it keeps it when they have parted."""
    return _rank


def count() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def device() -> torch.device:
    """The GPU of this process, or else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


@contextmanager
def joined(devices: Devices) -> Iterator[None]:
    """Join the other processes for the time of the block; one that trains alone has nothing to do."""
    global _rank
    _rank = 0
    check_devices(devices)
    started_by = environment(devices)
    started = 1 if started_by is None else started_by.world_size()
    if started != devices.count:
        those = "one process was" if started == 1 else f"{started} processes were"
        raise OptionError(
            f"{devices.devices} devices of {devices.nodes} nodes are {devices.count} processes, but {those} started. "
            f"Start the command, or your script, on each node: {torchrun_command(devices)}"
        )
    if started_by is None or devices.count == 1:
        yield
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(started_by.local_rank())
    os.environ |= {"MASTER_ADDR": started_by.main_address, "MASTER_PORT": str(started_by.main_port)}
    backend = "nccl" if on_gpu else "gloo"
    _rank = started_by.global_rank()
    distributed.init_process_group(backend, rank=_rank, world_size=devices.count)
    # Objects and waiting go over the network: NCCL would use the GPU, and give up after minutes.
    _groups.append(distributed.new_group(backend="gloo", timeout=PREPARATION))
    try:
        yield
    finally:
        _groups.clear()
        distributed.destroy_process_group()


def torchrun_command(devices: Devices) -> str:
    """How several nodes are started."""
    nodes = f"--nnodes {devices.nodes} --node-rank N --master-addr HOST " if devices.nodes > 1 else ""
    return f"torchrun {nodes}--nproc-per-node {devices.devices} -m regard train ..."


@contextmanager
def rank_zero_first() -> Iterator[None]:
    """Run the block in the first process and, when it is done there, in the others.

    Where the block fails in the first process, the others wait until they are ended.
    """
    if not is_first_process():
        _wait()
    yield
    if is_first_process():
        _wait()


def _wait() -> None:
    if count() > 1:
        distributed.barrier(_groups[0])


def from_first(make: Callable[[], Value]) -> Value:
    """What the first process makes, in all of them."""
    if count() == 1:
        return make()
    made: list[Any] = [make() if is_first_process() else None]
    distributed.broadcast_object_list(made, group=_groups[0])
    value: Value = made[0]
    return value


def gathered(value: Value) -> list[Value]:
    """The values of all processes, in order."""
    if count() == 1:
        return [value]
    found: list[Any] = [None] * count()
    distributed.all_gather_object(found, value, group=_groups[0])
    return found


def agreed(decision: bool) -> bool:
    """Whether any process decided so: all of them have to write, and to stop, together."""
    if not _groups:
        return decision
    # Over the network, since asking a GPU would wait for it.
    decided = torch.tensor(int(decision))
    distributed.all_reduce(decided, group=_groups[0])
    return bool(decided)


def is_loss_of_process(error: RuntimeError) -> bool:
    """Whether an error says that another process cannot be reached any more."""
    is_network = isinstance(error, distributed.DistError) or "gloo" in str(error) or "NCCL" in str(error)
    return count() > 1 and is_network


def summed(values: Tensor) -> Tensor:
    """The sum of a tensor over all processes."""
    if count() == 1:
        return values
    total = values.clone()
    distributed.all_reduce(total)
    return total


def launch(command: Sequence[str], count: int) -> int:
    """Run a command in `count` processes that find each other by the variables of torchrun; give its exit status.

    Ctrl-C reaches the processes themselves, and SIGTERM is passed on, so that they can save the training. When one
    fails, the others are ended; a TrainingError says which one was killed.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    common = {"OMP_NUM_THREADS": str(max(1, cores // count))} | os.environ
    # Held here from the start: a port that is only found could be taken before the first process binds it.
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    common |= {"MASTER_ADDR": store.host, "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    common |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    processes: list[subprocess.Popen[bytes]] = []
    with _signals_passed_on(processes):
        try:
            for rank in range(count):
                own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                processes.append(subprocess.Popen(command, env=common | own))  # noqa: S603 - the user's own command
            return _status(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _status(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    while None in (statuses := [process.poll() for process in processes]) and not any(statuses):
        time.sleep(0.1)
    failed = next((rank for rank, status in enumerate(statuses) if status), None)
    if failed is None:
        return 0
    status = processes[failed].returncode
    _end(processes)
    if status < 0:
        raise TrainingError(f"Process {failed + 1} of {len(processes)} was killed by signal {-status}; all have ended.")
    return status


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give the processes time to end, ask them to, and at last kill them."""
    for ask in (None, subprocess.Popen.terminate, subprocess.Popen.kill):
        for process in processes:
            if ask is not None and process.poll() is None:
                ask(process)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and None in [process.poll() for process in processes]:
            time.sleep(0.1)


@contextmanager
def _signals_passed_on(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ignore Ctrl-C, which the terminal sends to all processes, and pass on SIGTERM."""

    def pass_on(signum: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(signum)

    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, lambda *_: None)  # SIG_IGN would be inherited
    signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
