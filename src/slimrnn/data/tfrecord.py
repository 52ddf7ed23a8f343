"""TFRecord: of each record its length (8 bytes), a CRC of that (4), its bytes, and a CRC of these (4), little-endian.

The CRCs are masked CRC-32C. Records are found by their lengths alone, so that a large shard is quick to index, and each
can be read by itself."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.files import reading
from slimrnn.errors import DataError

HEADER, FOOTER = 12, 4
MASK = 0xA282EAD8


class BadRecord(DataError):
    """A record that cannot be used, while others of its file can."""


def find_records(path: Path) -> tuple[NDArray[np.int64], str]:
    """Where each record begins, with the end of the last; and what keeps us from reading on, if anything does.

    Only lengths are read. DataError if the file does not even begin as a TFRecord does."""
    offsets, problem = [0], ""
    with reading(path), path.open("rb", buffering=0) as file:
        size = path.stat().st_size
        while not problem and offsets[-1] < size:
            start = offsets[-1]
            try:
                end = start + HEADER + _length(file, start) + FOOTER
            except BadRecord as error:
                problem = str(error)
                break
            if end > size:
                problem = f"it breaks off at byte {size:,}, where a record goes on to byte {end:,}"
            else:
                offsets.append(end)
    if len(offsets) == 1 and problem:
        raise DataError(f"expected a TFRecord, got {path}: {problem}")
    return np.array(offsets, dtype=np.int64), problem


def read_record(path: Path, offset: int) -> bytes:
    """The record that begins there, if both its CRCs are right."""
    with reading(path), path.open("rb", buffering=0) as file:
        length = _length(file, offset)
        content = file.read(length + FOOTER)
    if len(content) < length + FOOTER:
        raise BadRecord(f"the record at byte {offset:,} of {path} breaks off")
    record = content[:length]
    if struct.unpack("<I", content[length:])[0] != masked_crc(record):
        raise BadRecord(f"the CRC of the record at byte {offset:,} of {path} is wrong")
    return record


def masked_crc(content: bytes) -> int:
    """CRC-32C, rotated by 15 bits and moved: a CRC of bytes that hold CRCs would be a weak one."""
    crc = _crc32c()(content)
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def _length(file: BinaryIO, offset: int) -> int:
    file.seek(offset)
    header = file.read(HEADER)
    if len(header) < HEADER:
        raise BadRecord(f"it breaks off at byte {offset + len(header):,}, in the length of a record")
    length, crc = struct.unpack("<QI", header)
    if crc != masked_crc(header[:8]):
        raise BadRecord(f"the CRC of the length at byte {offset:,} is wrong")
    return int(length)


@lru_cache(maxsize=1)
def _crc32c() -> Callable[[bytes], int]:
    try:
        value: Callable[[bytes], int] = importlib.import_module("google_crc32c").value
    except ModuleNotFoundError:
        raise DataError('expected the package google-crc32c, got none: pip install "slimrnn[data]"') from None
    return value
