"""Checksums of files, and one-line messages for failures of the disk."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path

from slimrnn._disk import disk_errors
from slimrnn.errors import DataError

CHUNK = 2**20


# One-line messages for failures of the disk: `with reading(path): ...`.
reading = partial(disk_errors, DataError, "read")
writing = partial(disk_errors, DataError, "write")


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
