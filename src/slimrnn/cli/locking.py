"""Whether some process works on a run at this moment: known to the kernel, so that a kill leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from slimrnn.cli.errors import UsageError
from slimrnn.training.files import writing

try:
    import fcntl
except ImportError:  # Windows: no such locks, and two processes on one run are the user's affair
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the run; refuse if another process does."""
    with writing(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        file = _lock_file(directory).open("w")
    with file:
        if not _take(file):
            raise UsageError(f"expected a run that nobody works on, got {directory}, which another process is training")
        yield


def is_locked(directory: Path) -> bool:
    """Whether a process holds the run."""
    try:
        with _lock_file(directory).open("r") as file:
            return not _take(file)
    except OSError:
        return False


def _lock_file(directory: Path) -> Path:
    """Beside the run, whose directory has to be new when it begins."""
    return directory.with_name(f".{directory.name}.lock")


def _take(file: IO[str]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
