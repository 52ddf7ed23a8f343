"""IDX, the format of MNIST: two zeros, a type, the number of dimensions, their sizes, then the numbers, big-endian."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.errors import DataError
from slimrnn.data.files import reading

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
CHUNK = 2**12  # so near is damage located


def read_idx(path: Path, dimensions: int) -> NDArray[np.generic]:
    """The whole array of a file that is plain or compressed by gzip; DataError unless every byte is as it should be."""
    with reading(path):
        content = path.read_bytes()
    if content.startswith(GZIP):
        content = gunzip(content, path)
    start = 4 + 4 * dimensions
    kind = TYPES.get(content[2]) if content[:2] == b"\0\0" and len(content) > 3 else None
    if kind is None or content[3] != dimensions:
        expected = f"0000 08 {dimensions:02x}"
        raise DataError(
            f"expected the magic number {expected} of IDX at byte 0 of {path}, got {content[:4].hex() or 'none'}"
        )
    if len(content) < start:
        raise DataError(f"{path} is truncated: expected a header of {start} bytes, got {len(content)}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    dtype = np.dtype(kind)
    end = start + math.prod(shape) * dtype.itemsize
    if len(content) < end:
        raise DataError(
            f"{path} is truncated: expected numbers up to byte {end:,} of its content, got {len(content):,}"
        )
    if len(content) > end:
        raise DataError(f"{path} is damaged: expected its end at byte {end:,} of its content, got {len(content):,}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def gunzip(content: bytes, path: Path) -> bytes:
    """What was compressed, all of it: length and CRC at the end are right."""
    stream, parts = zlib.decompressobj(wbits=31), []
    for offset in range(0, len(content), CHUNK):
        try:
            parts.append(stream.decompress(content[offset : offset + CHUNK]))
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]
            end = min(offset + CHUNK, len(content))
            raise DataError(f"{path} is a damaged gzip file: {reason} between bytes {offset:,} and {end:,}") from None
        if stream.eof:
            end = min(offset + CHUNK, len(content)) - len(stream.unused_data)
            if end < len(content):
                raise DataError(
                    f"{path} is a damaged gzip file: expected its end at byte {end:,}, got {len(content):,}"
                )
            return b"".join(parts)
    raise DataError(f"{path} is a truncated gzip file: it breaks off at byte {len(content):,}")
