"""Whether a change left all numbers of training alone: the first 50 losses of each recipe at two revisions of git.

python benchmarks/compare_losses.py OLD NEW [--recipes NAME ...] [--assert-equal]

A revision is a commit, a branch or a tag; `.` is the working tree. The small version of every packaged recipe that both
revisions have is trained for 50 updates with the code of each, on one thread of this machine, with the sizes and the
data that the working tree gives it. Prints where losses part for the first time, and by how much. With --assert-equal
the status is 1 unless every loss is equal to the last bit. All recipes take about two minutes.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRAINER = ROOT / "tests" / "helpers" / "losses.py"
Found = list[float] | str
"""The losses, or why there are none."""


def source_of(revision: str, folder: Path) -> Path:
    """The folder `src` of a revision, unpacked into a folder of its own."""
    if revision == ".":
        return ROOT / "src"
    folder.mkdir()
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True)  # noqa: S607
    if archive.returncode:
        raise SystemExit(f"{revision} is no revision with a folder src: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def recipes_in(source: Path) -> set[str]:
    return {path.stem for path in (source / "regard" / "recipes").glob("*.toml")}


def start(source: Path, names: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Begin to train the recipes with the code of a revision."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-P", str(TRAINER), str(folder), *names]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def difference(old: Found, new: Found) -> str:
    """Where the losses of two revisions part, or nothing."""
    if isinstance(old, str) or isinstance(new, str):
        failed = [f"{side}: {found}" for side, found in (("OLD", old), ("NEW", new)) if isinstance(found, str)]
        return "no losses; " + "; ".join(failed)
    apart = [step for step, (one, other) in enumerate(zip(old, new, strict=True), 1) if one != other]
    if not apart:
        return ""
    first = apart[0]
    there = f"{old[first - 1]!r} {new[first - 1]!r}"
    largest = max(abs(one - other) for one, other in zip(old, new, strict=True))
    return f"{len(apart)} of {len(old)} differ, from update {first}: {there}; {largest:.1e} at most"


def compare(old: Mapping[str, Found], new: Mapping[str, Found]) -> int:
    """Print a line for each recipe; how many differ."""
    different = {name: difference(old[name], new[name]) for name in old}
    for name, what in different.items():
        print(f"{name}: {what or 'equal'}")
    return sum(bool(what) for what in different.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="revision before the change")
    parser.add_argument("new", metavar="NEW", help="revision after it; . is the working tree")
    parser.add_argument("--recipes", nargs="+", metavar="NAME", help="which recipes (all that both revisions have)")
    parser.add_argument("--assert-equal", action="store_true", help="status 1 unless all losses are equal")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [source_of(revision, folder / side) for revision, side in ((given.old, "old"), (given.new, "new"))]
        old_names, new_names = map(recipes_in, sources)
        shared = sorted(old_names & new_names)
        if unknown := set(given.recipes or ()) - set(shared):
            parser.error(f"{', '.join(sorted(unknown))} is not in both revisions; they share {', '.join(shared)}")
        names = given.recipes or shared
        processes = [start(source, names, folder / f"runs-{number}") for number, source in enumerate(sources)]
        outputs = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            raise SystemExit("A training of recipes failed: see above.")
        old, new = (dict(map(json.loads, output.splitlines())) for output in outputs)
    different = compare(old, new)
    print(f"{len(names)} recipes, {different} that differ")
    if alone := sorted(old_names ^ new_names):
        print(f"Only in one of the revisions: {', '.join(alone)}")
    sys.exit(1 if different and given.assert_equal else 0)


if __name__ == "__main__":
    main()
