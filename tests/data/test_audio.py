"""Audio files in both formats, as they are and as they should not be."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from real_data import needs_data
from slimrnn.data import DataError
from slimrnn.data.audio import read_audio
from speech import sphere, tone, write_riff

TONE = tone(1000)


def riff(samples: bytes, kind: int = 1, extra: bytes = b"", before: bytes = b"") -> bytes:
    """A WAVE file with chunks that the standard library does not write."""
    form = struct.pack("<HHIIHH", kind, 1, 16_000, 32_000, 2, 16) + extra
    chunks = (
        before + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    )
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.wav"


@pytest.mark.parametrize("order", ["01", "10"])
def test_sphere_of_both_byte_orders_is_read(path: Path, order: str) -> None:
    path.write_bytes(sphere(TONE, sample_byte_format=f"-s2 {order}"))
    assert np.array_equal(read_audio(path, 16_000), TONE)


@pytest.mark.parametrize("coding", ["", "-s3 pcm"])
def test_a_sphere_header_may_name_its_plain_coding(path: Path, coding: str) -> None:
    path.write_bytes(sphere(TONE, sample_coding=coding))
    assert np.array_equal(read_audio(path, 16_000), TONE)


def test_riff_is_read_whatever_the_file_is_called(tmp_path: Path) -> None:
    for name in ("a.sph", "a.WAV", "a"):
        write_riff(tmp_path / name, TONE)
        found = read_audio(tmp_path / name, 16_000)
        assert found.dtype == np.int16
        assert np.array_equal(found, TONE)


def test_riff_may_have_other_chunks_and_the_extensible_header(path: Path) -> None:
    extra = struct.pack("<HHIH", 22, 16, 4, 1) + bytes(14)  # 24 bytes on is the format that is meant
    path.write_bytes(riff(TONE.tobytes(), 0xFFFE, extra, before=b"LIST" + struct.pack("<I", 3) + b"abc\0") + b"id3 ")
    assert np.array_equal(read_audio(path, 16_000), TONE)


@needs_data
def test_real_files_are_read_as_libsndfile_reads_them() -> None:
    soundfile = pytest.importorskip("soundfile")
    for name in ("dr1-fvmh0/sa1.wav", "dr8-mbcg0/sa2.wav"):
        path = Path(os.environ["SLIMRNN_DATA"]) / "timit_sample" / name
        expected, rate = soundfile.read(path, dtype="int16")
        assert np.array_equal(read_audio(path, rate), expected)


FULL = sphere(TONE)
BAD = {
    "another format": (b"fLaC\0\0\0\x22" + bytes(40), "expected 'NIST_1A' of SPHERE or 'RIFF....WAVE' at byte 0 of"),
    "RIFF of no audio": (b"RIFF\x10\0\0\0AVI LIST", "expected 'NIST_1A' of SPHERE or 'RIFF....WAVE' at byte 0 of"),
    "empty file": (b"", "expected a SPHERE or RIFF file, got .* of 0 bytes"),
    "truncated SPHERE": (FULL[:-6], "is truncated: expected 1,000 samples up to byte 3,024, got 3,018 bytes"),
    "too long SPHERE": (FULL + b"ab", "is damaged: expected its end at byte 3,024, got 3,026"),
    "SPHERE of half a header": (FULL[:200], "is truncated: expected a header of 1,024 bytes, got 200"),
    "SPHERE without end of header": (
        FULL.replace(b"end_head", b"        "),
        "expected end_head in the 1,024 bytes of the header of",
    ),
    "SPHERE without size": (
        FULL.replace(b"   1024", b"      x"),
        "expected the size of the SPHERE header at byte 8 of",
    ),
    "SPHERE of no samples": (sphere(TONE[:0]), "expected samples in .* from byte 1,024 on, got 0"),
    "SPHERE without count": (
        sphere(TONE, sample_count=""),
        "expected a number for sample_count in the header of .*, got nothing",
    ),
    "SPHERE of a size in superscript": (
        FULL.replace(b"   1024", b"   10\xb24"),
        "expected the size of the SPHERE header at byte 8 of .*, got '10²4'",
    ),
    "SPHERE of a count in superscript": (
        sphere(TONE, sample_count="-i 1\xb9").replace("¹".encode(), b"\xb9"),
        "expected a number for sample_count in the header of .*, got '1¹'",
    ),
    "SPHERE of a count of many digits": (
        sphere(TONE, sample_count=f"-i {'9' * 600}"),
        "expected a number for sample_count in the header of .*, got '9{59}…$",
    ),
    "SPHERE in stereo": (
        sphere(TONE, channel_count="-i 2"),
        r"expected one channel \(channel_count 1\) in .*, got channel_count 2",
    ),
    "SPHERE of another rate": (
        sphere(TONE, sample_rate="-i 8000"),
        r"expected 16,000 samples a second \(sample_rate 16000\) in .*, got sample_rate 8000",
    ),
    "SPHERE of bytes": (sphere(TONE, sample_n_bytes="-i 1"), "expected 16-bit samples .* got sample_n_bytes 1"),
    "SPHERE of another order": (
        sphere(TONE, sample_byte_format="-s2 11"),
        "expected sample_byte_format 01 or 10 in .*, got '11'",
    ),
    "shortened SPHERE": (
        sphere(TONE, sample_coding="-s26 pcm,embedded-shorten-v2.00"),
        "got sample_coding 'pcm,embedded-shorten-v2.00': convert it by sph2pipe -f wav a.wav OUT",
    ),
    "truncated RIFF": (riff(TONE.tobytes())[:-1], "is truncated: expected 1,000 samples up to byte 2,044, got 2,043"),
    "RIFF that breaks off": (
        riff(b"")[:40],
        "is truncated: expected a chunk 'data' before its end at byte 40, got none",
    ),
    "RIFF of no samples": (riff(b""), "expected samples in .* from byte 44 on, got 0"),
    "RIFF of half samples": (riff(b"abc"), "expected 'data' of whole samples at byte 36 of .*, got 3 bytes"),
    "RIFF of floats": (riff(TONE.tobytes(), 3), r"expected plain samples \(format 1\) in .*, got format 3"),
    "RIFF without format": (
        b"RIFF\x10\0\0\0WAVEdata\x02\0\0\0ab",
        "expected a chunk 'fmt ' before 'data' at byte 12 of .*, got none",
    ),
    "RIFF of little format": (
        b"RIFF\x10\0\0\0WAVEfmt \x02\0\0\0ab",
        "expected 'fmt ' of at least 16 bytes at byte 12 of .*, got 2",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_audio(path, 16_000)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 2}, r"expected one channel \(channels 1\) in .*, got channels 2"),
        ({"rate": 8_000}, r"expected 16,000 samples a second \(rate 16000\) in .*, got rate 8000"),
        ({"width": 4}, r"expected 16-bit samples \(bits 16\) in .*, got bits 32"),
    ],
)
def test_riff_of_another_kind_is_refused(path: Path, options: dict[str, int], message: str) -> None:
    write_riff(path, TONE, **options)
    with pytest.raises(DataError, match=message):
        read_audio(path, 16_000)


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(DataError, match=f"cannot read {path}: No such file"):
        read_audio(path, 16_000)
