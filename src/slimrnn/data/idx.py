"""IDX, the format of MNIST: two zeros, a type, the number of dimensions, their sizes, then the numbers, big-endian."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.compressed import GZIP, beginning, gunzip
from slimrnn.data.files import reading
from slimrnn.errors import DataError

LARGEST_RATIO = 1032  # of deflate
TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path, dimensions: int) -> NDArray[np.generic]:
    """The whole array of a file that is plain or compressed by gzip; DataError unless every byte is as it should be.

    Of a compressed file no more is unpacked than its header promises."""
    with reading(path):
        content = path.read_bytes()
    start = 4 + 4 * dimensions
    compressed = content.startswith(GZIP)
    header = (beginning(content, start) if compressed else content)[:start]
    if compressed and len(header) < start:
        header = gunzip(content, path, start, several=False)  # which tells what is wrong, if anything is
    kind, shape = _parse_header(header, dimensions, path)
    dtype = np.dtype(kind)
    end = start + math.prod(shape) * dtype.itemsize
    if compressed and end <= LARGEST_RATIO * len(content):
        content = gunzip(content, path, end, several=False)
    elif compressed:
        raise DataError(f"{path} is truncated: expected numbers up to byte {end:,}, got {len(content):,} packed bytes")
    if len(content) < end:
        raise DataError(
            f"{path} is truncated: expected numbers up to byte {end:,} of its content, got {len(content):,}"
        )
    if len(content) > end:
        raise DataError(f"{path} is damaged: expected its end at byte {end:,} of its content, got more")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _parse_header(header: bytes, dimensions: int, path: Path) -> tuple[str, tuple[int, ...]]:
    """The type of the numbers, and the sizes."""
    start = 4 + 4 * dimensions
    kind = TYPES.get(header[2]) if header[:2] == b"\0\0" and len(header) > 3 else None
    if kind is None or header[3] != dimensions:
        expected = f"0000 08 {dimensions:02x}"
        raise DataError(
            f"expected the magic number {expected} of IDX at byte 0 of {path}, got {header[:4].hex() or 'none'}"
        )
    if len(header) < start:
        raise DataError(f"{path} is truncated: expected a header of {start} bytes, got {len(header)}")
    return kind, struct.unpack(f">{dimensions}I", header[4:start])
