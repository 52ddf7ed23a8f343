"""Checksums, and files that are whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from slimrnn.data.errors import DataError

CHUNK = 2**20


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Failures of the disk in one line."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Failures of the disk in one line."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None


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


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which has its name once all is written; other processes may write it at the same time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
