"""Checkpoints: whole or not there at all, damage noticed, the one before it used, a full disk explained."""

import os
import shutil
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.killed_runs import PROCESSES, command_with_limit
from helpers.runs import same_parameters, small_recipe

import regard
from regard.errors import DataError, RegardWarning, TrainingError
from regard.files import DRAFT
from regard.systems.run import train
from regard.training.checkpoints import (
    FORMAT,
    damage,
    newest_checkpoint,
    read_checkpoint,
    step_files,
    write_checkpoint,
)
from regard.training.run_folder import RunFolder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 8 updates with its last two checkpoints, and the model."""
    folder = tmp_path_factory.mktemp("finished")
    return train(small_recipe("tape", folder / "data"), out=folder / "run", progress=False)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of that run, to be damaged."""
    shutil.copytree(finished.folder.parent, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def contents(step):
    return {"format": FORMAT, "state_dict": {"a": torch.full((1000,), float(step))}, "global_step": step}


@pytest.fixture
def two(tmp_path):
    for step in (3, 12):
        write_checkpoint(contents(step), tmp_path / f"step-{step}.ckpt")
    return tmp_path


DAMAGE = {
    "cut": lambda content: content[:-100],
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "junk": lambda content: b"junk" * 300,
    "a flipped bit of a parameter": lambda content: content.replace(b"\0\0@A" * 9, b"\0\0@@" * 9, 1),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_is_used(how, two):
    assert newest_checkpoint(two)[1]["global_step"] == 12
    path = two / "step-12.ckpt"
    before = path.read_bytes()
    path.write_bytes(DAMAGE[how](before))
    assert path.read_bytes() != before
    with pytest.raises(TrainingError, match=r"step-12\.ckpt cannot be used: "):
        read_checkpoint(path)
    with pytest.warns(RegardWarning, match=r"step-12\.ckpt cannot be used: .* Going on from step-3\.ckpt instead"):
        found, content = newest_checkpoint(two)
    assert (found.name, content["global_step"]) == ("step-3.ckpt", 3)
    (two / "step-3.ckpt").write_bytes(b"")
    with pytest.raises(TrainingError, match=r"No checkpoint is left to resume from.*step-12.*step-3.*--overwrite"):
        newest_checkpoint(two)


def test_a_flipped_bit_changes_nothing_or_is_noticed(two):
    """In the padding between parts it changes nothing."""
    path, random = two / "step-12.ckpt", np.random.default_rng(1)
    whole = path.read_bytes()
    noticed = 0
    for index in random.integers(0, len(whole), 300):
        content = bytearray(whole)
        content[index] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(content))
        try:
            found = read_checkpoint(path)
        except TrainingError:
            noticed += 1
            continue
        assert same_parameters(found["state_dict"], contents(12)["state_dict"])
        assert found["global_step"] == 12
    assert noticed > 200


def test_a_pickle_is_not_executed(tmp_path):
    class Wrong:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    torch.save({"state_dict": Wrong()}, tmp_path / "step-1.ckpt")
    with pytest.raises(TrainingError, match="holds more than parameters and plain values"):
        read_checkpoint(tmp_path / "step-1.ckpt")
    torch.save([1], tmp_path / "step-1.ckpt")
    with pytest.raises(TrainingError, match="is not a checkpoint of a training"):
        read_checkpoint(tmp_path / "step-1.ckpt")
    assert not (tmp_path / "harm").exists()


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(finished, run):
    newest, before = step_files(run.checkpoints)
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(RegardWarning, match=f"Going on from {before.name} instead"):
        resumed = train(out=run.path, resume=True, progress=False)
    assert same_parameters(resumed.model, finished.model)
    assert resumed.metrics["valid_bits"] == finished.metrics["valid_bits"]


def test_a_damaged_best_checkpoint_is_reported_and_the_newest_parameters_are_used(run):
    (run.checkpoints / "best.ckpt").write_bytes(b"")
    with pytest.warns(RegardWarning, match="The newest parameters are used instead of the best"):
        resumed = train(out=run.path, resume=True, progress=False)
    state = read_checkpoint(step_files(run.checkpoints)[0])["state_dict"]
    expected = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
    assert same_parameters(resumed.model, expected)


def test_checkpoints_are_written_where_they_belong_and_follow_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    before = os.umask(0o027)
    try:
        write_checkpoint(contents(1), tmp_path / "new" / "step-1.ckpt")
    finally:
        os.umask(before)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["step-1.ckpt"]
    assert stat.S_IMODE((tmp_path / "new" / "step-1.ckpt").stat().st_mode) == 0o640


def test_so_many_checkpoints_are_kept_as_the_recipe_says(tmp_path):
    recipe = small_recipe("tape", tmp_path / "data", keep_checkpoints=3)
    steps = train(recipe, out=tmp_path / "run", progress=False).metrics["steps"]
    kept = [path.name for path in step_files(tmp_path / "run" / "checkpoints")]
    assert kept == [f"step-{steps - number}.ckpt" for number in range(3)]


def test_a_write_that_is_killed_leaves_the_checkpoint_before_and_its_draft_is_removed(finished, run):
    newest = step_files(run.checkpoints)[0]
    draft = newest.rename(run.checkpoints / f".{newest.name}.k3dj_2x9{DRAFT}")
    draft.write_bytes(b"half")
    resumed = train(out=run.path, resume=True, progress=False)
    assert same_parameters(resumed.model, finished.model)
    assert not list(run.checkpoints.glob(f".*{DRAFT}"))


def test_a_full_disk_is_explained_and_the_run_goes_on_when_there_is_room(finished, run, tmp_path):
    """A limit on the size of files stands for the full disk: the write fails in the middle of the checkpoint."""
    newest, before = step_files(run.checkpoints)
    arguments = (newest.stat().st_size // 2, tmp_path / "said", "train", "--resume", "--out", str(run.path))
    newest.unlink()
    process = PROCESSES.Process(target=command_with_limit, args=arguments)
    process.start()
    process.join()
    written = (tmp_path / "said").read_text()
    assert process.exitcode == 1, written
    compiled = Path(regard.__file__).parent.rglob("*.pyc")
    assert not [path for path in compiled if path.stat().st_size == arguments[0]], "no module is cut off either"
    assert "Traceback" not in written
    said = written.splitlines()[-1]
    assert said.startswith(f"regard: The checkpoint {newest} cannot be written: File too large.")
    assert said.endswith(f"The last good checkpoint is {before}. To continue: {run.resume_command}")
    assert [path.name for path in step_files(run.checkpoints)] == [before.name]
    assert not damage(before)
    assert not list(run.checkpoints.glob(f".*{DRAFT}"))
    assert same_parameters(train(out=run.path, resume=True, progress=False).model, finished.model)


def test_a_folder_that_cannot_be_written_to_is_explained(tmp_path):
    (tmp_path / "file").write_text("mine")
    recipe = small_recipe("tape", tmp_path / "data")
    with pytest.raises(Exception, match="file is not a folder"):
        train(recipe, out=tmp_path / "file", progress=False)
    with pytest.raises(Exception, match="cannot be written to: Not a directory"):
        train(recipe, out=tmp_path / "file" / "run", progress=False)
    if Path("/sys/kernel").is_dir():  # which is read-only for everybody
        with pytest.raises(DataError, match=r"/sys/regard cannot be written to: .* Choose another folder with --out"):
            train(recipe, out="/sys/regard", progress=False)


def test_a_checkpoint_of_another_version_says_so(two):
    content = read_checkpoint(two / "step-12.ckpt")
    for older in (content | {"format": FORMAT + 1}, {name: content[name] for name in ("state_dict", "global_step")}):
        write_checkpoint(older, two / "step-12.ckpt")
        with pytest.raises(TrainingError, match=r"step-12\.ckpt was written by another version of regard, and only"):
            newest_checkpoint(two)


def test_warnings_are_given_once_for_each_problem(two):
    (two / "step-12.ckpt").write_bytes(b"")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        newest_checkpoint(two)
    assert len(caught) == 1
