"""Speech in files: 16-bit samples of one channel, in NIST SPHERE or RIFF (WAVE), whatever the files are called.

Two headers are no reason for a dependency: the package soundfile only checks this reader, in the tests.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import shown, whole_number
from slimrnn.data.files import reading
from slimrnn.errors import DataError

SPHERE, RIFF = b"NIST_1A\n", b"RIFF"
PCM, EXTENSIBLE = 1, 0xFFFE  # of a WAVE file's formats
BYTES = 2  # of a sample
LONGEST = 12  # digits of a number in a header
Samples = NDArray[np.int16]


def read_audio(path: Path, rate: int) -> Samples:
    """All samples of a file of that many a second; DataError where one is missing or the file is of another kind."""
    return _read(path, rate)[0]


def read_clip(path: Path) -> tuple[Samples, int]:
    """All samples of a file, and how many there are in a second."""
    return _read(path, None)


def _read(path: Path, rate: int | None) -> tuple[Samples, int]:
    with reading(path):
        content = path.read_bytes()
    if content.startswith(SPHERE):
        return _sphere(content, path, rate)
    if content.startswith(RIFF) and content[8:12] == b"WAVE":
        return _riff(content, path, rate)
    raise DataError(
        f"expected 'NIST_1A' of SPHERE or 'RIFF....WAVE' at byte 0 of {path}, got {content[:12]!r}"
        if content
        else f"expected a SPHERE or RIFF file, got {path} of 0 bytes"
    )


def _sphere(content: bytes, path: Path, rate: int | None) -> tuple[Samples, int]:
    """A header of so many bytes as its second line says, with a field a line, `name -type value`; then the samples."""
    size = content[8:16].strip().decode("latin-1")
    start = whole_number(size)
    if start is None or start < 16:
        raise DataError(f"expected the size of the SPHERE header at byte 8 of {path}, got {shown(size)}")
    if len(content) < start:
        raise DataError(f"{path} is truncated: expected a header of {start:,} bytes, got {len(content):,}")
    header, end, _ = content[:start].partition(b"end_head")
    if not end:
        raise DataError(f"expected end_head in the {start:,} bytes of the header of {path}, got none")
    fields = {}
    for line in header.decode("latin-1").splitlines()[2:]:
        name, _, rest = line.partition(" ")
        fields[name] = rest.partition(" ")[2].strip()
    coding = fields.get("sample_coding", "pcm")
    if coding != "pcm":
        raise DataError(
            f"expected plain samples in {path}, got sample_coding {shown(coding)}: "
            f"convert it by sph2pipe -f wav {path.name} OUT"
        )
    _check(path, "channel_count", _number(fields, "channel_count", path), 1, "one channel")
    found = _number(fields, "sample_rate", path)
    _check_rate(path, "sample_rate", found, rate)
    _check(path, "sample_n_bytes", _number(fields, "sample_n_bytes", path), BYTES, "16-bit samples")
    order = {"01": "<i2", "10": ">i2"}.get(fields.get("sample_byte_format", ""))
    if order is None:
        raise DataError(
            f"expected sample_byte_format 01 or 10 in {path}, got {shown(fields.get('sample_byte_format'))}"
        )
    count = _number(fields, "sample_count", path)
    if len(content) > start + BYTES * count:
        raise DataError(f"{path} is damaged: expected its end at byte {start + BYTES * count:,}, got {len(content):,}")
    return _samples(content, start, count, order, path), found


def _number(fields: dict[str, str], name: str, path: Path) -> int:
    value = fields.get(name)
    number = None if value is None else whole_number(value, LONGEST)
    if number is None:
        got = "nothing" if value is None else shown(value)
        raise DataError(f"expected a number for {name} in the header of {path}, got {got}")
    return number


def _riff(content: bytes, path: Path, rate: int | None) -> tuple[Samples, int]:
    """Chunks of a name, a size and as many bytes, padded to an even number: "fmt " first, then "data" among others."""
    known, offset = 0, 12
    while offset + 8 <= len(content):
        name, size = content[offset : offset + 4], struct.unpack_from("<I", content, offset + 4)[0]
        if name == b"fmt ":
            known = _format_rate(content[offset + 8 : offset + 8 + size], offset, path, rate)
        if name == b"data":
            if not known:
                raise DataError(f"expected a chunk 'fmt ' before 'data' at byte {offset:,} of {path}, got none")
            if size % BYTES:
                raise DataError(f"expected 'data' of whole samples at byte {offset:,} of {path}, got {size:,} bytes")
            return _samples(content, offset + 8, size // BYTES, "<i2", path), known
        offset += 8 + size + size % 2
    raise DataError(f"{path} is truncated: expected a chunk 'data' before its end at byte {len(content):,}, got none")


def _format_rate(chunk: bytes, offset: int, path: Path, rate: int | None) -> int:
    if len(chunk) < 16:
        raise DataError(f"expected 'fmt ' of at least 16 bytes at byte {offset:,} of {path}, got {len(chunk)}")
    kind, channels, found, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
    if kind == EXTENSIBLE and len(chunk) >= 26:
        kind = struct.unpack_from("<H", chunk, 24)[0]
    _check(path, "format", kind, PCM, "plain samples")
    _check(path, "channels", channels, 1, "one channel")
    _check_rate(path, "rate", found, rate)
    _check(path, "bits", bits, 8 * BYTES, "16-bit samples")
    return int(found)


def _check_rate(path: Path, name: str, got: int, wanted: int | None) -> None:
    if wanted is not None:
        _check(path, name, got, wanted, f"{wanted:,} samples a second")
    elif got < 1:
        raise DataError(f"expected samples in {path}, got {name} {got}")


def _check(path: Path, name: str, got: int, wanted: int, words: str) -> None:
    if got != wanted:
        raise DataError(f"expected {words} ({name} {wanted}) in {path}, got {name} {got}")


def _samples(content: bytes, start: int, count: int, order: str, path: Path) -> Samples:
    end = start + BYTES * count
    if len(content) < end:
        raise DataError(
            f"{path} is truncated: expected {count:,} samples up to byte {end:,}, got {len(content):,} bytes"
        )
    if count == 0:
        raise DataError(f"expected samples in {path} from byte {start:,} on, got 0")
    return np.frombuffer(content, order, count, start).astype(np.int16, copy=False)
