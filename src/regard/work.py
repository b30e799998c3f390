"""Work that can be given up: long loops ask at each step whether anybody still waits for what they compute.

A server sets what is asked for the thread that answers; elsewhere nothing is asked, and nothing is given up.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_of_thread = threading.local()


class GivenUpError(Exception):
    """Nobody waits any longer for what was being computed."""


@contextmanager
def wanted(is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Give up the work of this thread in the block when `is_wanted` says no."""
    before = getattr(_of_thread, "is_wanted", None)
    _of_thread.is_wanted = is_wanted
    try:
        yield
    finally:
        _of_thread.is_wanted = before


def proceed() -> None:
    """Raise a GivenUpError where nobody waits for the work of this thread: called in each step of a long loop."""
    is_wanted = getattr(_of_thread, "is_wanted", None)
    if is_wanted is not None and not is_wanted():
        raise GivenUpError
