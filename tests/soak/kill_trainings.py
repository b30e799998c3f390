"""Kill trainings of every system at random moments, go on with them, and compare the end with that of runs in peace.

    python tests/soak/kill_trainings.py                  # 20 moments: about three minutes on two cores
    python tests/soak/kill_trainings.py --moments 200    # more

At each moment, a training is killed with SIGKILL after a random number of updates, in every second case while it
writes a checkpoint; often it is killed again when it goes on. The losses of all updates, the metrics and the parameters
must then be those of the same run without a kill, bit by bit. The exit status is 1 if any of them differs.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.killed_runs import read_losses, run_and_kill, run_to_the_end
from helpers.runs import SYSTEMS, comparable

from regard.files import checksum


def outcome(run: Path, losses: Path) -> tuple[object, ...]:
    metrics = json.loads((run / "model" / "metrics.json").read_text())
    return read_losses(losses), comparable(metrics), checksum(run / "model" / "model.safetensors")


def soak(kind: str, whole: tuple[object, ...], folder: Path, draw: random.Random) -> tuple[str, bool]:
    """Kill a training once or more; returns what was done, and whether its end is that of the whole run."""
    updates = len(whole[0])  # type: ignore[arg-type]
    losses, done = folder / "losses.txt", []
    place = 0
    while place < updates and len(done) < 3:
        place = draw.randint(place, updates)
        writing = draw.random() < 0.5
        killed = run_and_kill(kind, folder.parent / "data", folder / "run", losses, updates=place, writing=writing)
        done.append(f"{place}{' (writing)' if writing else ''}" if killed else "too late")
        if draw.random() < 0.5:
            break
    run_to_the_end(kind, folder.parent / "data", folder / "run", losses)
    return f"killed after {', '.join(done)} of {updates} updates", outcome(folder / "run", losses) == whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=20, help="how many trainings are killed (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (1)")
    options = parser.parse_args()
    draw, began, wrong = random.Random(options.seed), time.monotonic(), 0  # noqa: S311 - not for secrets
    wholes: dict[str, tuple[object, ...]] = {}
    with tempfile.TemporaryDirectory() as name:
        for moment in range(options.moments):
            kind = list(SYSTEMS)[moment % len(SYSTEMS)]
            home = Path(name) / kind.replace(" ", "-")
            if kind not in wholes:
                (home / "whole").mkdir(parents=True)
                run_to_the_end(kind, home / "data", home / "whole" / "run", home / "whole" / "losses.txt")
                wholes[kind] = outcome(home / "whole" / "run", home / "whole" / "losses.txt")
            (home / str(moment)).mkdir()
            said, same = soak(kind, wholes[kind], home / str(moment), draw)
            wrong += not same
            print(f"{moment + 1:3} {kind}: {said}: {'the same end' if same else 'ANOTHER END'}", flush=True)  # noqa: T201
    minutes = (time.monotonic() - began) / 60
    print(f"{options.moments} trainings, {wrong} with another end, {minutes:.1f} minutes")  # noqa: T201
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
