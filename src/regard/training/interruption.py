"""Ctrl-C and SIGTERM: the first one stops a training after the current batch, the second one at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Stops the training at once. Not an Exception, so that `except Exception` does not swallow it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Interruption:
    """Handles Ctrl-C and SIGTERM while its block runs, where Python allows it: in the main thread.

    In a block `deferred()`, the first signal is only noted in `signum`, for the training to `leave` when it is saved.
    Any other signal raises `Interrupted` wherever the program is.
    """

    def __init__(self) -> None:
        self.signum = 0
        """The signal that was received, or 0."""
        self._is_deferred = self._has_left = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            self._before = {signum: signal.signal(signum, self._handle) for signum in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Only note the first signal while the block runs, which ends when `leave` is called in it."""
        self._is_deferred = True
        try:
            yield
        except Interrupted:
            if not self._has_left:
                raise
        finally:
            self._is_deferred = False

    def leave(self) -> None:
        """Leave the deferred block, because everything is saved."""
        self._has_left = True
        raise Interrupted(self.signum or signal.SIGTERM)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A worker that was forked from this process: Ctrl-C reaches it too, but only its parent decides.
            if signum == signal.SIGTERM:
                os._exit(128 + signum)
            return
        if not self._is_deferred or self.signum:
            self.signum = signum
            raise Interrupted(signum)
        self.signum = signum
        name = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
        sys.stderr.write(f"\n{name}: stopping after this batch, to save the run. A second one stops it at once.\n")
