"""`make abuse`: thousands of wrong calls, commands, requests and files; the counts of how they ended."""

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from abuse import api, commands, configs, faults, routes
from abuse.cases import FINE
from abuse.machine import run_cases, table

GROUPS = {
    "library": api.cases,
    "commands": commands.cases,
    "config": configs.cases,
    "routes": routes.cases,
    "machine": faults.cases,
}


def main() -> int:
    """Run the cases, print the failures and the table; the status is 1 where a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only the cases whose names contain this")
    parser.add_argument("--group", default="", choices=["", *GROUPS], help="run only this group")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="run only every n-th case")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # of parts of torch that are in beta
    started = time.monotonic()
    chosen = {name: make for name, make in GROUPS.items() if asked.group in ("", name)}
    cases = [each for make in chosen.values() for each in make() if asked.only in each.name][:: asked.every]
    counts: Counter[tuple[str, str]] = Counter()
    for case, verdict in run_cases(cases, asked.workers):
        counts[case.group, verdict.kind] += 1
        if verdict.kind not in FINE:
            sys.stdout.write(f"{verdict.kind}: {case.name[:200]!r}: {verdict.detail!r}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{table(counts, chosen)}\n{len(cases):,} cases in {time.monotonic() - started:.0f} s\n")
    return any(kind not in FINE for _, kind in counts)


if __name__ == "__main__":
    sys.exit(main())
