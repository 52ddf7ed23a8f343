"""The IDX reader: every type, plain or compressed, whole or refused."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from slimrnn.data import DataError
from slimrnn.data.idx import TYPES, read_idx

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    code = next(code for code, kind in TYPES.items() if np.dtype(kind) == array.dtype.newbyteorder(">"))
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, code, array.ndim]) + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


def read(path: Path, content: bytes, dimensions: int) -> np.ndarray:
    path.write_bytes(content)
    return read_idx(path, dimensions)


@given(hnp.arrays(st.sampled_from(["u1", "i1", "i2", "i4", "f4", "f8"]), hnp.array_shapes(max_dims=3)), st.booleans())
def test_arrays_come_back(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, compressed: bool) -> None:
    content = gzip.compress(idx(array)) if compressed else idx(array)
    back = read(tmp_path_factory.getbasetemp() / "array", content, array.ndim)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected the magic number 0000 08 03 of IDX at byte 0 of .*, got none"),
        (b"\0\0\x08", "got 000008"),
        (b"\0\0\x07\3" + bytes(12), "got 00000703"),
        (b"\0\0\x08\1" + bytes(4), "got 00000801"),
        (b"PNG!", "got 504e4721"),
        (idx(IMAGES)[:9], "truncated: expected a header of 16 bytes, got 9"),
        (idx(IMAGES)[:-1], "truncated: expected numbers up to byte 31,376 of its content, got 31,375"),
        (
            idx(IMAGES) + b"\0",
            "(expected its end at byte 31,376 of its content|at most 31,376 bytes in the gzip file .*), got more",
        ),
        (b"\0\0\x08\3" + b"\xff" * 12, "truncated: expected numbers up to byte"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_wrong_contents_are_refused(tmp_path: Path, content: bytes, message: str, compressed: bool) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / "images", gzip.compress(content) if compressed else content, 3)


def test_a_truncated_gzip_file_is_named_with_the_offset(tmp_path: Path) -> None:
    whole = gzip.compress(idx(IMAGES))
    for end in (3, 5_000, len(whole) - 1):
        with pytest.raises(DataError, match=rf"images is a truncated gzip file: it breaks off at byte {end:,}$"):
            read(tmp_path / "images", whole[:end], 3)


def test_a_damaged_gzip_file_is_named_with_the_offset(tmp_path: Path) -> None:
    whole = gzip.compress(idx(IMAGES))
    for at in (9_000, len(whole) - 6):  # in the numbers and in the CRC
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        with pytest.raises(DataError, match=r"images is a damaged gzip file: .* between bytes [\d,]+ and [\d,]+$"):
            read(tmp_path / "images", bytes(damaged), 3)
    with pytest.raises(DataError, match=rf"expected its end at byte {len(whole):,}, got {len(whole) + 1:,}"):
        read(tmp_path / "images", whole + b"x", 3)


def test_a_gzip_bomb_is_not_unpacked_beyond_what_its_header_says(tmp_path: Path) -> None:
    bomb = gzip.compress(idx(IMAGES) + bytes(2**27), 9)
    with pytest.raises(DataError, match=r"expected at most 31,376 bytes in the gzip file .*images of [\d,]+, got more"):
        read(tmp_path / "images", bomb, 3)
    promises = b"\0\0\x08\3" + struct.pack(">3I", 60_000, 28_000, 28_000)
    with pytest.raises(DataError, match=r"truncated: expected numbers up to byte 47,040,000,000,016, got \d+ packed"):
        read(tmp_path / "images", gzip.compress(promises), 3)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*nowhere: No such file"):
        read_idx(tmp_path / "nowhere", 3)
