"""The files of a run. No pickle is ever read or written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch  # noqa: F401 -- here, and not when a run has its first weights to write
from torch import Tensor

from slimrnn._disk import disk_errors, whole_file
from slimrnn._tensor_files import packed, read
from slimrnn.errors import CheckpointError, RunDirectoryError

# One-line messages for failures of the disk: `with reading(path): ...`.
reading = partial(disk_errors, RunDirectoryError, "read")
writing = partial(disk_errors, RunDirectoryError, "write")


def read_text(path: Path) -> str:
    """A file's text, with a replacement character for bytes that are not UTF-8; line ends are not changed."""
    with reading(path):
        return path.read_bytes().decode(errors="replace")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a crash leaves the old file or the new one."""
    with writing(path), whole_file(path) as file:
        file.write(content)


def remove_leftovers(directory: Path) -> None:
    """Delete the temporary files that a process left which trained this run and was killed. Other directories in there
    may be runs of their own, which a process is writing to."""
    for path in (*directory.glob(".*.part"), *directory.glob("checkpoints/.*.part")):
        with writing(path):
            path.unlink(missing_ok=True)


def write_tensors(path: Path, kind: str, tensors: Mapping[str, Tensor], data: Any = None) -> None:
    """`kind` is the name of the format, `data` anything that JSON can hold."""
    write_whole(path, packed(kind, tensors, data)[0])


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], Any]:
    """The tensors and the data; CheckpointError if the file is not what `write_tensors` wrote."""
    return read(path, kind, CheckpointError)
