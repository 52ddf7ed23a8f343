"""TFRecord framing against tensorboard's writer, and every kind of damage to it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from slimrnn.data import DataError
from slimrnn.data.tfrecord import BadRecord, _crc32c, find_records, masked_crc, read_record
from video_shards import flip, write_shard

RECORDS = [b"first", b"", b"\0" * 300, bytes(range(256)) * 20]
STARTS = [0, 21, 37, 353, 5489]  # 16 bytes around each record


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return write_shard(tmp_path / "shard.tfrecord", RECORDS)


def test_records_of_tensorboards_writer_are_read(shard: Path) -> None:
    offsets, problem = find_records(shard)
    assert (offsets.tolist(), problem) == (STARTS, "")
    assert [read_record(shard, offset) for offset in STARTS[:-1]] == RECORDS


def test_the_crc_is_the_published_one() -> None:
    """The check value of CRC-32C, e3069283 for "123456789", masked by hand."""
    crc = 0xE3069283
    rotated = (crc >> 15) | (crc & 0x7FFF) << 17
    assert masked_crc(b"123456789") == (rotated + 0xA282EAD8) % 2**32


@pytest.mark.parametrize("offset", [37 + 12, 37 + 12 + 299, 353 - 1, 353 - 4])  # of the record, and of its CRC
def test_a_flipped_bit_in_a_record_spoils_it_alone(shard: Path, offset: int) -> None:
    flip(shard, offset, bit=3)
    offsets, problem = find_records(shard)
    assert (offsets.tolist(), problem) == (STARTS, "")
    with pytest.raises(BadRecord, match=f"the CRC of the record at byte 37 of {shard} is wrong"):
        read_record(shard, 37)
    assert [read_record(shard, STARTS[k]) for k in (0, 1, 3)] == [RECORDS[k] for k in (0, 1, 3)]


@pytest.mark.parametrize("offset", [353, 353 + 7, 353 + 8, 353 + 11])  # of the length, and of its CRC
def test_a_flipped_bit_in_a_length_hides_what_follows(shard: Path, offset: int) -> None:
    flip(shard, offset)
    offsets, problem = find_records(shard)
    assert offsets.tolist() == STARTS[:4]
    assert problem == "the CRC of the length at byte 353 is wrong"
    with pytest.raises(BadRecord, match="the CRC of the length at byte 353 is wrong"):
        read_record(shard, 353)


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        (5488, "it breaks off at byte 5,488, where a record goes on to byte 5,489"),
        (365, "it breaks off at byte 365, where a record goes on to byte 5,489"),
        (360, "it breaks off at byte 360, in the length of a record"),
    ],
)
def test_a_truncated_file_is_used_up_to_there(shard: Path, size: int, problem: str) -> None:
    shard.write_bytes(shard.read_bytes()[:size])
    offsets, found = find_records(shard)
    assert (offsets.tolist(), found) == (STARTS[:4], problem)


def test_a_record_that_broke_off_meanwhile_is_bad(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:400])
    with pytest.raises(BadRecord, match=f"the record at byte 353 of {shard} breaks off"):
        read_record(shard, 353)


@pytest.mark.parametrize("content", [b"PK\3\4 a zip file perhaps", b"short"])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.tfrecord"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"expected a TFRecord, got {path}: "):
        find_records(path)


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    offsets, problem = find_records(write_shard(tmp_path / "empty", []))
    assert (offsets.tolist(), problem) == ([0], "")
    assert offsets.dtype == np.int64


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"cannot read {tmp_path / 'none'}"):
        find_records(tmp_path / "none")


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    _crc32c.cache_clear()
    with pytest.raises(DataError, match=r'expected the package google-crc32c, got none: pip install "slimrnn\[data\]"'):
        masked_crc(b"")
