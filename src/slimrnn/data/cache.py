"""Parsed forms of data, kept in the user's cache directory: the data directory may be read-only."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn._disk import whole_file
from slimrnn.data.directory import cache_directory
from slimrnn.data.files import checksum

Arrays = dict[str, NDArray[np.generic]]
DIGEST = 32  # bytes


def cached(name: str, raw_files: Sequence[Path], build: Callable[[], Mapping[str, NDArray[np.generic]]]) -> Arrays:
    """What `build` makes of the raw files: from the cache where these have not changed since, else built and kept.

    `name` says what is built, and changes when `build` does: "mnist-1". A damaged cache file is built again; where the
    cache cannot be written, nothing is kept."""
    path = cache_directory() / "parsed" / f"{name}-{_key(raw_files)}.npz"
    arrays = _load(path)
    if arrays is None:
        arrays = dict(build())
        _keep(path, arrays)
    return arrays


def _key(raw_files: Sequence[Path]) -> str:
    """Of the contents, in their order: the same files elsewhere give the same key."""
    checksums = [checksum(path, "blake2b") for path in raw_files]
    return hashlib.blake2b(" ".join(checksums).encode(), digest_size=16).hexdigest()


def _load(path: Path) -> Arrays | None:
    """None where there is no such file, or one bit of it has changed."""
    try:
        content = memoryview(path.read_bytes())
    except OSError:
        return None
    body, digest = content[:-DIGEST], content[-DIGEST:]
    if _digest(body) != digest:
        return None
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _keep(path: Path, arrays: Arrays) -> None:
    """With a digest at the end: zip's own checks miss damage to the sizes and to the list of its members."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(buffer.getbuffer())
            file.write(_digest(buffer.getbuffer()))


def _digest(content: memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()
