"""Checkpoints: written whole or not at all, the newest and the best kept, damaged ones noticed."""

import re
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.errors import RegardWarning, TrainingError
from regard.files import replacing
from regard.training.settings import TrainSettings

BEST = "best.ckpt"
"""The checkpoint with the best validation score; the others are step-N.ckpt."""
FORMAT = 1
"""The number of the format. Checkpoints of another one hold a model, but cannot be resumed from."""
_STEP = re.compile(r"step-(\d+)\.ckpt")


def step_files(folder: Path) -> list[Path]:
    """The checkpoints to resume from in a folder, the newest first."""
    return sorted(filter(_step_of, folder.glob("step-*.ckpt")), key=_step_of, reverse=True)


def _step_of(path: Path) -> int:
    """The number of updates before a checkpoint plus 1, so that the first counts as one too; 0 for another file."""
    match = _STEP.fullmatch(path.name)
    return int(match[1]) + 1 if match else 0


def write_checkpoint(content: dict[str, Any], path: Path) -> None:
    """Write a checkpoint under a temporary name in its own folder, flush it, and then rename it."""
    try:
        with replacing(path) as draft, draft.open("wb") as stream:
            torch.save(content, stream)
    except (OSError, RuntimeError) as error:
        # torch reports a failed write as a RuntimeError.
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OSError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise TrainingError(f"The checkpoint {path} cannot be written: {cause.strerror}.") from error


class KeepNewest:
    """Keeps the newest checkpoints, from which a training continues exactly as it would have without an interruption.

    `content` makes a checkpoint of this moment, in which every process takes part; only one of them `writes`.
    """

    def __init__(
        self, folder: Path, content: Callable[[], dict[str, Any]], settings: TrainSettings, *, writes: bool
    ) -> None:
        self.folder, self.settings, self._content, self._writes = folder, settings, content, writes
        self._written = time.monotonic()

    def is_due(self) -> bool:
        """Whether the interval between two checkpoints has passed."""
        return 0 < self.settings.checkpoint_minutes <= (time.monotonic() - self._written) / 60

    def write(self) -> None:
        """Write a checkpoint, and remove those that are older than the ones to keep."""
        content = self._content()
        if self._writes:
            write_checkpoint(content, self.folder / f"step-{content['global_step']}.ckpt")
            for old in step_files(self.folder)[self.settings.keep_checkpoints :]:
                old.unlink()
        self._written = time.monotonic()


def damage(path: Path) -> str:
    """What is wrong with a checkpoint file, or "" if it is whole.

    A checkpoint is a ZIP archive with a CRC-32 of each part, which torch writes but does not check when it reads.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            part = archive.testzip()
            return f"its part {part} is damaged" if part else ""
    except (
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        return f"it is not a complete file ({str(error) or type(error).__name__})"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, parameters and plain values only; a damaged one is a TrainingError."""
    reason = damage(path)
    if not reason:
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            if isinstance(content, dict) and "state_dict" in content:
                return content
            reason = "it is not a checkpoint of a training"
        except (OSError, RuntimeError, ValueError, KeyError, EOFError, AttributeError, TypeError, IndexError) as error:
            reason = f"it cannot be read ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        except Exception as error:
            # torch raises the UnpicklingError of a module that it chooses itself.
            if type(error).__name__ != "UnpicklingError":
                raise
            reason = "it holds more than parameters and plain values"
    raise TrainingError(f"{path} cannot be used: {reason}.")


def newest_checkpoint(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint that is whole, with its content; a newer one that is damaged is reported.

    None where there is no checkpoint at all, and a TrainingError where all of them are damaged, or where another
    version of regard has written them.
    """
    reasons: list[str] = []
    for path in step_files(folder):
        try:
            content = read_checkpoint(path)
        except TrainingError as error:
            reasons.append(str(error))
            continue
        if content.get("format") != FORMAT:
            raise TrainingError(
                f"{path} was written by another version of regard, and only that one can continue its training. Start "
                f"again with --overwrite, or train its model further with --from {path} and another --out."
            )
        if reasons:
            warnings.warn(f"{' '.join(reasons)} Going on from {path.name} instead.", RegardWarning, stacklevel=2)
        return path, content
    if reasons:
        raise TrainingError(f"No checkpoint is left to resume from. {' '.join(reasons)} Start again with --overwrite.")
    return None
