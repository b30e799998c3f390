"""A job on a local Ray of two workers, one of them killed in the middle: every line exactly once."""

import os
import pickle
import subprocess
import sys

import pytest
from helpers.jobs import DieOnce, Upper

from regard.jobs.inputs import find_inputs
from regard.jobs.worker import Job

pytest.importorskip("ray", reason="the extra `ray` is not installed")

SCRIPT = """
import pickle, sys
from regard.jobs.job import run
if __name__ == "__main__":
    print(run(pickle.loads(bytes.fromhex(sys.argv[1])), engine="ray", workers=2))
"""


def test_a_killed_worker_of_ray_is_replaced_and_each_line_is_answered_once(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("".join(f"{name} {number}\n" for number in range(61)))
    predictor = Upper(DieOnce("b.txt 33", tmp_path / "flag"), log=tmp_path / "log")
    job = Job(predictor, tuple(find_inputs([str(tmp_path / "*.txt")])), tmp_path / "out")
    (tmp_path / "script.py").write_text(SCRIPT)
    # A process of its own, because Ray sets up logging, threads and signals of the process that it runs in.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", pickle.dumps(job).hex()],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Summary(files=2, lines=122, skipped_files=0, refused=0)" in done.stdout
    assert (tmp_path / "flag").exists()
    for name in ("a.txt", "b.txt"):
        assert (tmp_path / "out" / name).read_text() == (tmp_path / name).read_text().upper()
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 122
