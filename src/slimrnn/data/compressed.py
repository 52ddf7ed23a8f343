"""gzip files, of which no more is unpacked than there should be."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from slimrnn.errors import DataError

GZIP = b"\x1f\x8b"
RATIO = (
    100  # of what is unpacked to what is packed; texts of many like lines have some 30, and deflate has at most 1,032
)
ALWAYS = 2**26  # bytes that are unpacked whatever the ratio is
CHUNK = 2**12  # so near is damage located


def most_for(size: int) -> int:
    """Bytes that as many packed bytes may unpack to."""
    return max(ALWAYS, RATIO * size)


def gunzip(content: bytes, path: Path, most: int, *, several: bool = True) -> bytes:
    """What was compressed, all of it: lengths and CRCs are right. DataError for more than `most` bytes.

    Where there may be `several` gzip files one after the other, they are one, as gzip itself has it."""
    return b"".join(gunzipped(content, path, most, several=several))


def gunzipped(content: bytes, path: Path, most: int, size: int = 0, *, several: bool = True) -> Iterator[bytes]:
    """The same in pieces of at least `size` bytes, except the last: what is wrong is told when it is reached."""
    stream, parts, done, held = zlib.decompressobj(wbits=31), [], 0, 0
    offset = 0
    while offset < len(content):
        end = min(offset + CHUNK, len(content))
        try:
            piece = stream.decompress(content[offset:end], most + 1 - done)
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]
            raise DataError(f"{path} is a damaged gzip file: {reason} between bytes {offset:,} and {end:,}") from None
        parts.append(piece)
        done, held = done + len(piece), held + len(piece)
        if done > most:
            raise DataError(f"expected at most {most:,} bytes in the gzip file {path} of {len(content):,}, got more")
        if held > size > 0:
            yield b"".join(parts)
            parts, held = [], 0
        offset = end - len(stream.unused_data)
        if stream.eof and offset < len(content):
            if not several:
                raise DataError(
                    f"{path} is a damaged gzip file: expected its end at byte {offset:,}, got {len(content):,}"
                )
            if not content[offset:].strip(b"\0"):  # padding
                break
            stream = zlib.decompressobj(wbits=31)
    if not stream.eof:
        raise DataError(f"{path} is a truncated gzip file: it breaks off at byte {len(content):,}")
    yield b"".join(parts)


def beginning(content: bytes, count: int) -> bytes:
    """The first bytes of what was compressed; fewer where there are no more, or damage comes before."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, count)
    except zlib.error:
        return b""
