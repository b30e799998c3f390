"""The processes that train together: one for each GPU, or several on CPUs, on one machine or many.

They are started by `regard train --devices N`, by torchrun or by SLURM (srun), and all run the same command. The first
one prepares the data and writes all files.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor, distributed

from regard.errors import OptionError
from regard.training.settings import Devices

Value = TypeVar("Value")
PREPARATION = timedelta(days=2)
"""How long processes wait for the first one, which may have a large corpus to prepare."""
_groups: list[Any] = []
"""The group by which the joined processes exchange objects, if there are several."""


def check_devices(devices: Devices) -> None:
    """Raise an OptionError where this machine does not have the devices."""
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if num_gpus and devices.devices > num_gpus:
        raise OptionError(f"devices must be at most {num_gpus}, the GPUs of this machine; got {devices.devices}.")
    if devices.strategy == "fsdp" and not num_gpus:
        raise OptionError("strategy 'fsdp' needs GPUs, and torch finds none here. Use 'ddp'.")


def environment(devices: Devices) -> ClusterEnvironment | None:
    """What has started this process as one of several: `regard train` itself, torchrun or SLURM; None for nothing."""
    if {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= set(os.environ):
        return TorchElasticEnvironment()
    # A script that SLURM runs once may itself start several processes, and tasks of SLURM may each train on their own.
    if not SLURMEnvironment.detect() or int(os.environ["SLURM_NTASKS"]) != devices.count:
        return None
    try:
        return SLURMEnvironment()
    except RuntimeError as error:
        raise OptionError(f"SLURM has not started the processes of a training: {error}") from error


def is_first_process() -> bool:
    """Whether this is the only process of a training, or the first of several."""
    return int(getattr(rank_zero_only, "rank", 0)) == 0


def rank() -> int:
    """The number of this process among those that train together, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def count() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def device() -> torch.device:
    """The GPU of this process, or else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


@contextmanager
def joined(devices: Devices) -> Iterator[None]:
    """Join the other processes for the time of the block; one that trains alone has nothing to do."""
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
        # Lightning takes the number that a scheduler gives a task for its rank, also where each task trains on its own.
        rank_zero_only.rank = 0  # type: ignore[attr-defined]
        yield
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(started_by.local_rank())
    os.environ |= {"MASTER_ADDR": started_by.main_address, "MASTER_PORT": str(started_by.main_port)}
    backend = "nccl" if on_gpu else "gloo"
    distributed.init_process_group(backend, rank=started_by.global_rank(), world_size=devices.count)
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
def first_process_first() -> Iterator[None]:
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
