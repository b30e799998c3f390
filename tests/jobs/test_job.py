"""Batch jobs: each line exactly once and in order, whatever is killed in the middle."""

import gzip
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.jobs import DieAlways, DieOnce, Refuse, Upper, fail

from regard.errors import DataError, WorkerError
from regard.jobs.inputs import find_inputs
from regard.jobs.job import Summary, run
from regard.jobs.worker import Job

COUNTS = {"a.txt": 41, "b.txt.gz": 23, "empty.txt": 0, "c.txt": 8}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name, count in COUNTS.items():
        content = "".join(f"{name} {number}\n" for number in range(count)).encode()
        (tmp_path / "in" / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return tmp_path


def job_of(folder: Path, predictor: Upper, **options: bool) -> Job:
    return Job(predictor, tuple(find_inputs([str(folder / "in" / "*")])), folder / "out", **options)


def read(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def check_outputs(folder: Path, change: tuple[str, str] = ("", "")) -> None:
    for name in COUNTS:
        assert read(folder / "out" / name) == read(folder / "in" / name).upper().replace(*change)
    assert not list((folder / "out" / ".regard").rglob("parts"))


def test_every_file_has_its_output_in_order(folder):
    predictor = Upper(log=folder / "log")
    done = run(job_of(folder, predictor), workers=2)
    assert done == Summary(files=4, lines=72, skipped_files=0, refused=0)
    check_outputs(folder)
    assert len((folder / "log").read_text().splitlines()) == 72
    assert sorted(path.name for path in (folder / "out").iterdir()) == [".regard", *sorted(COUNTS)]


def test_a_rerun_removes_the_chunks_that_a_killed_job_left(folder):
    run(job_of(folder, Upper()), workers=1)
    (left := folder / "out" / ".regard" / "files" / "a.txt" / "parts").mkdir()
    (left / "00000000").write_text("A\n")
    run(job_of(folder, Upper()), workers=1)
    check_outputs(folder)


def test_a_rerun_does_only_what_is_missing_or_has_changed(folder):
    run(job_of(folder, Upper()), workers=1)
    with (folder / "in" / "a.txt").open("a") as stream:
        stream.write("new\n")
    (folder / "out" / "c.txt").unlink()
    (folder / "in" / "d.txt").write_text("later\n")
    done = run(job_of(folder, Upper(log=folder / "log")), workers=1)
    assert done == Summary(files=3, lines=42 + 8 + 1, skipped_files=2, refused=0)
    check_outputs(folder)
    assert read(folder / "out" / "d.txt") == "LATER\n"
    assert len((folder / "log").read_text().splitlines()) == 51


def test_a_killed_worker_is_replaced_and_each_line_is_answered_once(folder, capfd):
    predictor = Upper(DieOnce("a.txt 17", folder / "flag"), log=folder / "log")
    done = run(job_of(folder, predictor), workers=2)
    assert (folder / "flag").exists()
    assert done.lines == 72
    check_outputs(folder)
    lines = (folder / "log").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 72
    assert "a worker died: signal 9 ended one, as when memory is exhausted" in capfd.readouterr().err


def test_lines_that_kill_every_worker_end_the_job_and_the_rest_is_kept(folder):
    with pytest.raises(WorkerError, match=r"b.txt.gz, lines 9 to 12: 3 workers died over these lines"):
        run(job_of(folder, Upper(DieAlways("b.txt.gz 10"))), workers=1)
    assert read(folder / "out" / "a.txt") == read(folder / "in" / "a.txt").upper()
    predictor = Upper(log=folder / "log")
    run(job_of(folder, predictor), workers=1)
    check_outputs(folder)
    assert (folder / "log").read_text().splitlines()[0] == "b.txt.gz 8"


def test_a_killed_job_continues_and_each_line_is_answered_once(folder):
    """A worker kills the process that runs the job; what was complete by then is not done again."""
    predictor = Upper(DieOnce("b.txt.gz 13", folder / "flag", parent=True), log=folder / "log")
    script = (
        "import pickle, sys; from regard.jobs.job import run\n"
        "if __name__ == '__main__': run(pickle.loads(bytes.fromhex(sys.argv[1])), workers=1)\n"
    )
    (folder / "script.py").write_text(script)
    command = [sys.executable, folder / "script.py", pickle.dumps(job_of(folder, predictor)).hex()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    killed = subprocess.run(command, env=environment, check=False, timeout=600)
    assert killed.returncode == -signal.SIGKILL
    assert (folder / "out" / "a.txt").exists()
    assert not (folder / "out" / "b.txt.gz").exists()
    done = run(job_of(folder, predictor), workers=2)
    assert done.skipped_files == 1
    check_outputs(folder)
    lines = (folder / "log").read_text().splitlines()
    # The worker itself lives on until it finds the pipe closed, and completes the chunk that it was answering.
    assert len(lines) - len(set(lines)) in (0, predictor.chunk_size)
    assert len(set(lines)) == 72


def test_a_job_that_continues_with_parts_of_another_size_answers_each_line_once(folder):
    with pytest.raises(WorkerError):
        run(job_of(folder, Upper(DieAlways("a.txt 17"))), workers=1)
    assert list((folder / "out" / ".regard" / "files" / "a.txt" / "parts").iterdir())
    run(job_of(folder, Upper(chunk_size=3)), workers=1)
    check_outputs(folder)


def test_an_input_that_is_refused_ends_the_job_or_is_left_out(folder, capsys):
    predictor = Upper(Refuse("a.txt 6"))
    with pytest.raises(DataError, match=r"a.txt, lines 5 to 8: 'a.txt 6' is not wanted"):
        run(job_of(folder, predictor), workers=2)
    assert not (folder / "out" / "a.txt").exists()
    done = run(job_of(folder, predictor, skip_errors=True), workers=2)
    assert done.refused == 1
    assert "left out: a.txt, line 7: 'a.txt 6' is not wanted." in capsys.readouterr().err
    check_outputs(folder, ("A.TXT 6\n", "?\n"))


def test_a_fault_of_a_worker_shows_its_traceback(folder):
    with pytest.raises(RuntimeError, match=r"(?s)A worker failed:.*ZeroDivisionError: a.txt 0"):
        run(job_of(folder, Upper(fail)), workers=1)


def test_other_settings_and_other_jobs_are_refused(folder, monkeypatch):
    job = job_of(folder, Upper())
    with job.outputs.claim({"upper": False}), pytest.raises(DataError, match="Another job is writing to"):
        run(job, workers=1)
    with pytest.raises(DataError, match=r"a job with other settings: upper False -> True"):
        run(job, workers=1)


def test_files_that_a_job_did_not_write_are_never_replaced(folder):
    (folder / "out").mkdir()
    (folder / "out" / "a.txt").write_text("mine\n")
    with pytest.raises(DataError, match=r"a.txt exists, and was not written by this job"):
        run(job_of(folder, Upper()), workers=1)
    assert (folder / "out" / "a.txt").read_text() == "mine\n"
    inputs = tuple(find_inputs([str(folder / "in" / "*")]))
    with pytest.raises(DataError, match="is both an input and an output"):
        run(Job(Upper(), inputs, folder / "in"), workers=1)


def test_parts_are_read_only_when_a_worker_is_free(folder):
    """Memory is bounded by the number of workers, not by the size of the files."""
    from regard.jobs.processes import run_processes

    job = job_of(folder, Upper())
    taken = []

    def chunks():
        for file in job.inputs:
            for chunk in job.outputs.read_chunks(file, 4):
                taken.append(chunk)
                yield chunk

    answered = run_processes(job, chunks(), workers=2)
    for done in range(1, 10):
        next(answered)
        assert len(taken) <= done + 2
    answered.close()
