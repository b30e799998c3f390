"""The folder of a run: what it holds, who may write to it, and what it remembers of how it was made."""

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard.errors import DataError, OptionError
from regard.files import check_replaceable, locked, remove_drafts, write_text
from regard.training.checkpoints import BEST, step_files
from regard.training.processes import count, fabric, is_first_process

RECIPE, RECORD, LOCK = "recipe.toml", "run.json", ".lock"
WRITTEN = (RECIPE, "checkpoints", "logs", "test.tsv", "valid.tsv")
"""What a run writes beside its model and run.json."""
PACKAGES = ("torch", "numpy", "tokenizers")


class RunFolder:
    """The model, logs/, checkpoints/, recipe.toml and run.json of one run.

    Only the first process of a training writes here: with several, the others neither lock nor check the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.model, self.logs, self.checkpoints = (self.path / name for name in ("model", "logs", "checkpoints"))
        self.recipe = self.path / RECIPE

    @property
    def holds_run(self) -> bool:
        """Whether a training has begun here."""
        return (self.path / RECORD).is_file() and (self.recipe.is_file() or bool(step_files(self.checkpoints)))

    @property
    def resume_command(self) -> str:
        """The command that resumes the run."""
        return f"regard train --resume --out {shlex.quote(str(self.path))}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse a second training into this folder while the block runs."""
        if not is_first_process():
            yield
            return
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is not a folder. Choose another with --out.")
        busy = f"Another training is writing to {self.path}. Wait for it, or choose another folder with --out."
        new = [path for path in (self.path / LOCK, self.path, *self.path.parents) if not path.exists()]
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / LOCK, refuse=busy))
            except OSError as error:
                raise DataError(
                    f"{self.path} cannot be written to: {error.strerror}. Choose another folder with --out."
                ) from error
            stack.callback(self._remove_if_empty, new)
            yield

    def _remove_if_empty(self, new: list[Path]) -> None:
        """Remove the lock, and the folders that were made for it, where a training that failed wrote nothing else."""
        if new[:1] == [self.path / LOCK] and [path.name for path in self.path.iterdir()] == [LOCK]:
            new[0].unlink()
            with suppress(OSError):  # a parent may hold something else by then
                for folder in new[1:]:
                    folder.rmdir()

    def check_free(self, *, overwrite: bool, refuse: Callable[[Path], str]) -> None:
        """Refuse a folder that holds a run, unless it is to be overwritten, and files that regard did not write.

        `refuse` says why an existing folder must not be replaced by the model.
        """
        if not is_first_process():
            return
        check_replaceable(self.model, refuse=refuse)
        theirs = [] if (self.path / RECORD).is_file() else [name for name in WRITTEN if (self.path / name).exists()]
        if theirs:
            raise DataError(
                f"{self.path} holds {', '.join(theirs)}, which no run of regard wrote and a run would replace. Choose "
                "another folder with --out."
            )
        if self.holds_run and not overwrite:
            raise OptionError(
                f"{self.path} already contains a run. Continue it: {self.resume_command}. Or replace it with "
                "--overwrite, or choose another folder with --out."
            )

    def begin(self) -> None:
        """Remove the run that is overwritten: only now that all is read and built, and a new one begins."""
        if is_first_process():
            if self.holds_run and self.model.is_dir():
                shutil.rmtree(self.model)
            for file in (self.checkpoints / BEST, *step_files(self.checkpoints), self.recipe, self.path / RECORD):
                file.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove what a killed run left half-written."""
        if is_first_process():
            # The folder may have been there before the run, with files of others.
            remove_drafts(self.path, (self.model.name, RECORD, *WRITTEN))
            remove_drafts(self.checkpoints)
            remove_drafts(self.path / "corpus")

    def record(self) -> dict[str, Any]:
        """What run.json says, or {} where there is none."""
        path = self.path / RECORD
        if not path.is_file():
            return {}
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}. Start again with --overwrite.") from error
        if not isinstance(stored, dict) or not all(isinstance(stored.get(name), dict) for name in ("data", "notes")):
            raise DataError(f"{path} does not describe a run: it needs data and notes. Start again with --overwrite.")
        return stored

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write run.json."""
        write_text(self.path / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def describe_run(*, seed: int, data: Mapping[str, str]) -> dict[str, Any]:
    """What made a run: the command, where it was started, the versions, the seed, and the checksums of its data."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]).replace("__main__.py", "regard", 1),
        "directory": str(Path.cwd()),
        "versions": {
            "regard": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            "lightning-fabric": fabric().__version__,
        },
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        "processes": count(),
        "threads": torch.get_num_threads(),
        "seed": seed,
        "data": dict(data),
    }


def changed_data(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences between the data of two records, in words."""
    first, second = before.get("data", {}), now.get("data", {})
    pairs = {name: (first.get(name), second.get(name)) for name in sorted({*first, *second})}
    return [
        f"{name} has the SHA-256 {(new or 'of nothing')[:10]}, and had {(old or 'that of nothing')[:10]}"
        for name, (old, new) in pairs.items()
        if old != new
    ]
