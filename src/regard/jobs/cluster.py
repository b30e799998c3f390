"""Workers on a Ray cluster, by Ray Data: it spreads reading and answering over the machines, and repeats what fails.

Input files, output folder, model and regard itself must be found under the same names on all machines, as on a shared
file system. Workers write the chunks themselves; only reports of them travel back.
"""

import logging
import os
import pickle
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from regard.extras import require
from regard.jobs.chunks import Chunk
from regard.jobs.inputs import InputFile
from regard.jobs.worker import MAX_ATTEMPTS, Done, Job, Worker, gave_up

BLOCK_BYTES = 1
"""Size above which Ray closes a block of chunks; each chunk is to be a block, so that workers share small files."""


def run_on_ray(job: Job, files: list[InputFile], workers: int) -> Generator[Done, None, None]:
    """The chunks as they are answered, in any order, by a running Ray cluster or by one that is started here.

    With 0 workers, there is one for each GPU of the cluster, or else for each CPU core.
    """
    require("--engine ray", "ray")
    if not files:
        return
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # of messages that are Ray's own affair
    import ray
    import ray.data

    if not ray.is_initialized():
        ray.init(logging_level="error", log_to_driver=False, include_dashboard=False)
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what ends a job is raised below
    context = ray.data.DataContext.get_current()
    context.target_max_block_size, context.enable_progress_bars = BLOCK_BYTES, False
    resources = ray.cluster_resources()
    device = "GPU" if resources.get("GPU") else "CPU"
    workers = workers or max(1, int(resources[device]))
    share = min(1, resources[device] / workers)
    answered = (
        ray.data.from_items([{"file": pickle.dumps(file)} for file in files])
        # Reading takes little time, and must not wait for cores that the workers hold.
        .flat_map(partial(_read, job), num_cpus=0)
        .map(
            _RayWorker,
            fn_constructor_args=(job, str(Path.cwd())),
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=share if device == "CPU" else 0,
            num_gpus=share if device == "GPU" else 0,
        )
    )
    for row in answered.iter_rows():
        yield pickle.loads(row["done"])  # noqa: S301 - written by the workers of this job


def _read(job: Job, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    file = pickle.loads(row["file"])  # noqa: S301
    for chunk in job.outputs.read_chunks(file, job.predictor.chunk_size):
        yield {"chunk": pickle.dumps(chunk)}


class _RayWorker:
    """A worker, for chunks and reports as rows of a Ray data set.

    Ray gives a chunk to another worker when one dies, without end, so that attempts are counted in the output folder.
    """

    def __init__(self, job: Job, folder: str) -> None:
        os.chdir(folder)  # inputs may name files relative to where the command was run
        self._job, self._worker = job, Worker(job)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        chunk: Chunk = pickle.loads(row["chunk"])  # noqa: S301
        if not chunk.is_done and self._job.outputs.count_attempt(chunk) > MAX_ATTEMPTS:
            return {"done": pickle.dumps(gave_up(chunk, "memory may be exhausted"))}
        return {"done": pickle.dumps(self._worker(chunk))}
