"""Files that are whole or not there, locks that a kill releases, and failures of the disk in one line.

Locks are the kernel's own (`lockf`). The package filelock takes `flock`, which a data loader's worker would inherit
and keep after its parent was killed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def disk_errors(error: type[Exception], doing: str, path: Path) -> Iterator[None]:
    """Raise `error` where the disk fails: "cannot read PATH: why"."""
    try:
        yield
    except OSError as failure:
        raise error(f"cannot {doing} {path}: {failure.strerror or failure}") from None


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name once all is on the disk, even if the machine stops in between.

    Other processes may write it at the same time. What a killed process leaves behind ends in .part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        if hasattr(os, "O_DIRECTORY"):  # Windows cannot open a directory
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def lock(file: IO[str], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where another process holds it and we do not wait."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
