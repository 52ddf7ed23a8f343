"""One process at a time in a folder: known to the kernel, so that a kill leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def alone_in(folder: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the folder; wait while another process does."""
    with (folder / ".lock").open("a") as file:
        if fcntl is not None:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"another process is at work in {folder}: waiting for it")
                fcntl.lockf(file, fcntl.LOCK_EX)
        yield
