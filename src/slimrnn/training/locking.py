"""Whether a process is training a run: known to the kernel, so that a kill leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from slimrnn.training.errors import RunDirectoryError
from slimrnn.training.files import writing

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the run; refuse if another process does."""
    with writing(directory):
        file = (directory / ".lock").open("a")
    with file:
        if not _take(file):
            raise RunDirectoryError(f"{directory} is in use: another process is training it")
        yield


def is_locked(directory: Path) -> bool:
    """Whether another process holds the run."""
    try:
        with (directory / ".lock").open("r+") as file:
            return not _take(file)
    except OSError:
        return False


def _take(file: IO[str]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock's, not inherited by the workers
    except BlockingIOError:
        return False
    return True
