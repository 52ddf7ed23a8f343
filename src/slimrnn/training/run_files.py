"""The files of a run.

A tensor file is a safetensors file whose metadata holds a format's name, its version, plain data and a checksum.
No pickle is ever read or written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from slimrnn._disk import disk_errors, whole_file
from slimrnn._texts import shown
from slimrnn.errors import CheckpointError, RunDirectoryError

VERSION = "1"
# What safetensors and torch raise for headers that are wrong, types that torch does not have, and sizes that overflow.
_UNREADABLE = (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError)


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
    """Delete the temporary files of a process that was killed."""
    for path in directory.rglob(".*.part"):
        with writing(path):
            path.unlink()


def write_tensors(path: Path, kind: str, tensors: Mapping[str, Tensor], data: Any = None) -> None:
    """`kind` is the name of the format, `data` anything that JSON can hold."""
    held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    metadata = {"format": kind, "version": VERSION, "data": json.dumps(data)}
    write_whole(path, save(held, metadata | {"checksum": checksum(metadata, held)}))


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], Any]:
    """The tensors and the data; CheckpointError if the file is not what `write_tensors` wrote."""
    try:
        with safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
            _check_format(metadata, kind, path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except _UNREADABLE as error:
        raise CheckpointError(f"{path} is damaged or not a {kind} file: {error}") from None
    if metadata.pop("checksum", None) != checksum(metadata, tensors):
        raise CheckpointError(f"{path} is damaged: its checksum does not fit its content")
    return tensors, _parsed(metadata.get("data"), path)


def _check_format(metadata: Mapping[str, str], kind: str, path: Path) -> None:
    if metadata.get("format") != kind:
        raise CheckpointError(f"{path} is not a {kind} file of slimrnn")
    if metadata.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {str(metadata.get('version'))[:20]} of its format, expected {VERSION}"
        )


def _parsed(text: str | None, path: Path) -> Any:
    if text is None:
        raise CheckpointError(f"expected an entry data in the metadata of {path}, got none")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"expected JSON as data in the metadata of {path}, got {shown(text)}: {error}") from None


def checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Covers everything in a file except the checksum itself."""
    digest = hashlib.blake2b(json.dumps(dict(metadata), sort_keys=True).encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
