"""The exceptions of regard. Each message repeats the offending value and says how to fix it."""

import errno
from typing import ClassVar

_ADVICE = {
    errno.ENOSPC: "Make room on the disk, or choose another folder.",
    errno.EDQUOT: "Make room, or choose another folder.",
    errno.EFBIG: "Files of that size are not allowed here; choose another folder, or raise the limit (ulimit -f).",
}
"""What to do where there is no room."""
MAX_MESSAGE = 2000
"""Characters of the message of an error."""


class RegardWarning(UserWarning):
    """Warns of a problem that does not stop the computation."""


class RegardError(Exception):
    """Any mistake that regard can explain."""

    status: ClassVar[int] = 2
    """The exit status of a command that ends with this error: 2 for a mistake of the user, 1 for a failure."""

    def __init__(self, message: str = "") -> None:
        # A damaged file may hold a name of a million letters, which is of no use in a message.
        super().__init__(message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]} …")


class ShapeError(RegardError, ValueError):
    """Tensors whose sizes do not fit together."""


class DtypeError(RegardError, TypeError):
    """A tensor of the wrong dtype, on another device, or no tensor at all."""


class MaskError(RegardError, ValueError):
    """A mask that does not say, for each query and key, whether it may attend."""


class NonFiniteError(RegardError, ValueError):
    """NaN or infinity where numbers were expected."""


class KernelError(RegardError, ValueError):
    """A kernel that was asked for by name but cannot serve this call."""


class OptionError(RegardError, ValueError):
    """A setting outside the values it may take."""


class ModelError(RegardError, ValueError):
    """A folder that does not hold the model it should."""


class DataError(RegardError, ValueError):
    """A file, folder or corpus that is missing, broken or not what was expected."""


class OutputError(RegardError, OSError):
    """A file that cannot be written; `errno` says why, as that of the OSError it comes from."""

    status = 1

    def __init__(self, path: object, reason: OSError) -> None:
        self.message = f"{path} cannot be written: {_reason(reason)}"
        super().__init__(self.message)
        self.errno, self.strerror = reason.errno, reason.strerror
        if reason.errno not in (*_ADVICE, errno.EIO):  # a name or a place that cannot be written to, not a failure
            self.__dict__["status"] = 2

    def __str__(self) -> str:
        return self.message  # an OSError would begin with its number


class TrainingError(RegardError, RuntimeError):
    """A training that cannot continue: its loss is not finite, or its checkpoints cannot be written."""

    status = 1


class WorkerError(RegardError, RuntimeError):
    """A worker process died and its work could not be reassigned."""

    status = 1


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}. {_ADVICE.get(error.errno or 0, 'Choose another name or folder.')}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things for a message: "1 file", "2,000 files"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
