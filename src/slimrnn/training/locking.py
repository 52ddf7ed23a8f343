"""Whether a process is training a run: known to the kernel, so that a kill leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slimrnn._disk import lock
from slimrnn.errors import RunDirectoryError
from slimrnn.training.run_files import writing


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the run; refuse if another process does."""
    with writing(directory):
        file = (directory / ".lock").open("a")
    with file:
        if not lock(file):
            raise RunDirectoryError(f"{directory} is in use: another process is training it")
        yield


def is_locked(directory: Path) -> bool:
    """Whether another process holds the run."""
    try:
        with (directory / ".lock").open("r+") as file:
            return not lock(file)
    except OSError:
        return False
