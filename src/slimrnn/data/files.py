"""Checksums, and failures of the disk."""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager
from pathlib import Path

from slimrnn._disk import disk_errors
from slimrnn.data.errors import DataError

CHUNK = 2**20


def reading(path: Path) -> AbstractContextManager[None]:
    """Failures of the disk in one line."""
    return disk_errors(DataError, "read", path)


def writing(path: Path) -> AbstractContextManager[None]:
    """Failures of the disk in one line."""
    return disk_errors(DataError, "write", path)


def checksum(path: Path, kind: str) -> str:
    """In hexadecimal digits; `kind` is a name that hashlib knows, or "git": what git calls a file of that content."""
    with reading(path), path.open("rb") as file:
        if kind == "git":
            digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        else:
            digest = hashlib.new(kind, usedforsecurity=False)
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
