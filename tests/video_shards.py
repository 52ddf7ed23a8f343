"""Shards of YouTube-8M for tests, after its published schema: no shard of its frame-level form is at hand.

Nothing here uses our reader: messages are encoded by hand, after protobuf's description of its wire format, and
tensorboard writes the records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

Bytes = NDArray[np.uint8]


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit says that more follow."""
    content = b""
    while number > 127:
        content += bytes([number & 127 | 128])
        number >>= 7
    return content + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A field that holds a message, a text or bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def entry(name: str, value: bytes) -> bytes:
    """Of a map, which is field 1 of its message."""
    return field(1, field(1, name.encode()) + field(2, value))


def bytes_feature(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def float_feature(values: Iterable[float]) -> bytes:
    return field(2, field(1, b"".join(struct.pack("<f", value) for value in values)))


def int_feature(values: Iterable[int]) -> bytes:
    return field(3, field(1, b"".join(map(varint, values))))


def video_record(labels: Sequence[int], means: Sequence[float], name: str = "abcd") -> bytes:
    """An Example."""
    features = entry("id", bytes_feature(name.encode())) + entry("labels", int_feature(labels))
    features += entry("mean_rgb", float_feature(means[:1024])) + entry("mean_audio", float_feature(means[1024:]))
    return field(1, features)


def frame_record(labels: Sequence[int], frames: Bytes, name: str = "abcd", key: str = "id") -> bytes:
    """A SequenceExample of (T, 1152) bytes, or (T, 1024) without audio."""
    context = entry(key, bytes_feature(name.encode())) + entry("labels", int_feature(labels))
    lists = entry("rgb", _list(frames[:, :1024]))
    if frames.shape[1] > 1024:
        lists += entry("audio", _list(frames[:, 1024:]))
    return field(1, context) + field(2, lists)


def some_frames(count: int, seed: int = 0) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, 1152), dtype=np.uint8)


def some_records(count: int, first: int = 0, most_frames: int = 9) -> list[bytes]:
    """Video i has i % most_frames + 1 frames, its number as id, and the labels i % 5 and 5 + i % 3."""
    numbers = range(first, first + count)
    return [frame_record([i % 5, 5 + i % 3], some_frames(i % most_frames + 1, i), str(i)) for i in numbers]


def write_shard(path: Path, records: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for record in records:
            writer.write(record)
    return path


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Damage one bit of a file."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 1 << bit
    path.write_bytes(content)


def _list(frames: Bytes) -> bytes:
    return b"".join(field(1, bytes_feature(frame.tobytes())) for frame in frames)
