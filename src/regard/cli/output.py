"""Writing for whoever runs a command."""

import sys


def say(text: str) -> None:
    """One line to the standard output."""
    sys.stdout.write(text + "\n")
