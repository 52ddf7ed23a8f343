"""numpy's files, read with care: no pickles, and no more memory than a file of this size can fill."""

from __future__ import annotations

import ast
import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import shown
from slimrnn.data.files import reading
from slimrnn.data.unpack import DAMAGED, check_promised
from slimrnn.errors import DataError

MAGIC = b"\x93NUMPY"
LONGEST = 10_000  # bytes of a header
KEYS = {"descr", "fortran_order", "shape"}


def read_npy(path: Path) -> NDArray[Any]:
    """One array."""
    with reading(path), path.open("rb") as file:
        size = path.stat().st_size
        return _array(file, size, str(path))


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays by name."""
    try:
        with reading(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
            file.seek(0)
            if not file.read(2) == b"PK":  # zipfile would read an archive behind anything else
                raise DataError(f"expected b'PK' at byte 0 of {path}, got something else: it is no .npz file")
            entries = archive.infolist()
            check_promised(len(entries), sum(entry.file_size for entry in entries), path)
            names = [entry.filename.removesuffix(".npy") for entry in entries]
            if len(set(names)) < len(names):
                raise DataError(f"expected different names in {path}, got {shown(names)}")
            arrays = {}
            for name, entry in zip(names, entries, strict=True):
                with archive.open(entry) as member:
                    arrays[name] = _array(member, entry.file_size, f"{path}, {shown(entry.filename)}")
            return arrays
    except DAMAGED as error:
        raise DataError(f"{path} is damaged, or no .npz file: {shown(str(error), 200)[1:-1]}") from None


def _array(file: IO[bytes], size: int, place: str) -> NDArray[Any]:
    dtype, fortran, shape, start = _header(file, place)
    count = math.prod(shape)
    if size - start != count * dtype.itemsize:
        raise DataError(
            f"expected {count * dtype.itemsize:,} bytes after the header for {dtype} {shape} in {place}, "
            f"got {size - start:,}"
        )
    content = bytearray(size - start)
    view, done = memoryview(content), 0
    while done < len(content):
        read = file.readinto(view[done : done + 2**24])  # type: ignore[attr-defined]
        if not read:
            raise DataError(f"{place} is truncated: expected {len(content):,} bytes, got {done:,}")
        done += read
    if file.read(1):
        raise DataError(f"expected the end of {place} after {size:,} bytes, got more")
    flat = np.frombuffer(content, dtype)
    return flat.reshape(shape[::-1]).transpose() if fortran else flat.reshape(shape)


def _header(file: IO[bytes], place: str) -> tuple[np.dtype[Any], bool, tuple[int, ...], int]:
    """Type, order, shape, and where the numbers begin."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != MAGIC or start[6:] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise DataError(f"expected {MAGIC!r} and a version at the beginning of {place}, got {shown(start)}")
    width = 2 if start[6] == 1 else 4
    size = int.from_bytes(file.read(width), "little")
    if size > LONGEST:
        raise DataError(f"expected a header of at most {LONGEST:,} bytes in {place}, got {size:,}")
    raw = file.read(size)
    try:
        entries = ast.literal_eval(raw.decode("latin-1").strip(" \n"))
        dtype = np.dtype(entries["descr"]) if isinstance(entries["descr"], str) else None
        shape, fortran = entries["shape"], entries["fortran_order"]
        right = set(entries) == KEYS and isinstance(fortran, bool) and len(raw) == size and isinstance(shape, tuple)
        right = right and len(shape) <= 32 and all(type(n) is int and 0 <= n < 2**48 for n in shape)
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError, AttributeError, IndexError):
        dtype, right = None, False
    if dtype is None or not right or dtype.itemsize == 0:
        raise DataError(f"expected the header of an array of numbers or texts in {place}, got {shown(raw)}")
    if dtype.hasobject:
        raise DataError(f"expected numbers or texts in {place}, got Python objects, which are never unpickled")
    return dtype, fortran, shape, 8 + width + size
