"""Parsed forms of data, kept in the user's cache directory: the data directory may be read-only."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.directory import cache_directory
from slimrnn.data.files import checksum, whole_file

Arrays = dict[str, NDArray[np.generic]]


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
    """None where there is no such file, or it is damaged: every array in it has a CRC."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def _keep(path: Path, arrays: Arrays) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez(file, allow_pickle=False, **arrays)
