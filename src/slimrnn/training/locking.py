"""Whether a process is training a run: known to the kernel, so that a kill leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slimrnn._disk import lock
from slimrnn.errors import RunDirectoryError
from slimrnn.training.run_files import writing

# Of this process. The kernel's locks are those of a process: to open a file and close it again releases them.
_held: set[Path] = set()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the run; refuse if another process, or another part of this one, does."""
    place = directory.resolve()
    if place in _held:
        raise RunDirectoryError(f"{directory} is in use: this process is training it")
    with writing(directory):
        file = (directory / ".lock").open("a")
    with file:
        if not lock(file):
            raise RunDirectoryError(f"{directory} is in use: another process is training it")
        _held.add(place)
        try:
            yield
        finally:
            _held.remove(place)


def is_locked(directory: Path) -> bool:
    """Whether a process, this one or another, holds the run."""
    if directory.resolve() in _held:
        return True
    try:
        with (directory / ".lock").open("r+") as file:
            return not lock(file)
    except OSError:
        return False
