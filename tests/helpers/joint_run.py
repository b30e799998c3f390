"""A small training in several processes, watched: `python tests/helpers/joint_run.py RECIPE OUT DEVICES NODES KILL_AT`.

Writes which examples each process took into OUT.examples, and the loss of each update into OUT.losses. The last process
is killed after KILL_AT updates, if that is not 0.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any


def watch(examples: Path, losses: Path, kill_at: int) -> None:
    """Write down what this process does, and have it killed."""
    from regard.data.batches import CostBatches
    from regard.training import processes
    from regard.training.divergence import Divergence

    run, update = CostBatches._run, Divergence.update

    def watched_run(self: Any, batches: Any, start: int) -> Any:
        for number, batch in enumerate(run(self, batches, start), start):
            if self._shuffle and not self.is_filler(number):
                with examples.open("a") as file:
                    file.write(f"{self._epoch} {number} {' '.join(map(str, batch))}\n")
            yield batch

    def watched_update(self: Any, loss: Any, step: int) -> None:
        if processes.is_first_process():
            with losses.open("a") as file:
                file.write(f"{step} {float(self.task.metrics['loss'])}\n")
        if step == kill_at and processes.rank() == processes.count() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        update(self, loss, step)

    CostBatches._run, Divergence.update = watched_run, watched_update


def main(recipe: str, out: str, devices: str, nodes: str, kill_at: str) -> None:
    """Start the processes, or be one of them."""
    from regard.errors import RegardError
    from regard.training.processes import launch
    from regard.training.settings import Devices

    chosen = Devices(int(devices), int(nodes))
    try:
        if "RANK" not in os.environ:
            sys.exit(launch([sys.executable, *sys.argv], chosen.devices))
        from regard.systems.run import train

        watch(Path(f"{out}.examples"), Path(f"{out}.losses"), int(kill_at))
        train(recipe, out=out, devices=chosen, progress=False)
    except RegardError as error:
        sys.stderr.write(f"regard: {error}\n")
        sys.exit(error.status)


if __name__ == "__main__":
    main(*sys.argv[1:])
