"""What `make soak` runs: one part after the other, each bounded in time, then what came of them.

    python tests/soak                                    # all parts: about half an hour on two cores
    python tests/soak kill-trainings call-models         # some of them

The exit status is 1 if a part failed or took longer than it may.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PYTHON = sys.executable


@dataclass(frozen=True)
class Part:
    """A command with a limit of time."""

    meaning: str
    command: tuple[str, ...]
    minutes: float
    """It is ended, and counts as failed, when it takes longer; on two cores it takes about half of that."""


PARTS = {
    "kill-trainings": Part(
        "20 trainings of all systems are killed at random moments and go on exactly",
        (PYTHON, "tests/soak/kill_trainings.py"),
        10,
    ),
    "call-models": Part(
        "memory after 2,000 calls of each system is what it was after 200",
        (PYTHON, "tests/soak/call_models.py"),
        12,
    ),
    "repeat-recipes": Part(
        "a small version of every recipe trains to the same parameters twice, with no worker and with two",
        (PYTHON, "tests/soak/repeat_recipes.py"),
        10,
    ),
    "turing-machines": Part(
        "neural Turing machines with hostile settings stay finite",
        (PYTHON, "benchmarks/turing_soak.py", "--minutes", "10"),
        15,
    ),
    "serve": Part(
        "64 clients for two minutes get answers, and memory does not grow",
        ("env", "REGARD_SOAK_SECONDS=120", PYTHON, "-m", "pytest", "-q", "tests/serving/test_command.py"),
        6,
    ),
    "serve-rolling": Part(
        "two servers behind one address restart one after the other; 1,000 clients get their answers",
        (PYTHON, "tests/soak/serve_rolling.py"),
        25,
    ),
}


def run(part: Part) -> str:
    """Run a part; what went wrong, or nothing."""
    process = subprocess.Popen(part.command, cwd=ROOT, start_new_session=True)
    try:
        status = process.wait(60 * part.minutes)
    except BaseException as ended:
        os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
        process.wait()
        if not isinstance(ended, subprocess.TimeoutExpired):
            raise
        return f"did not end within {part.minutes:g} minutes"
    return f"ended with status {status}" if status else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which parts: {', '.join(PARTS)} (all)")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    os.environ["PYTHONUNBUFFERED"] = "1"
    report, failed = [], False
    for name in chosen:
        print(f"== {name}: {PARTS[name].meaning}", flush=True)  # noqa: T201
        began = time.monotonic()
        wrong = run(PARTS[name])
        failed = failed or bool(wrong)
        report.append(f"{name}: {wrong or 'held'} ({(time.monotonic() - began) / 60:.1f} minutes)")
    print("==", *report, sep="\n")  # noqa: T201
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
