"""MNIST as it is, and as it should not be."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from real_data import needs_data
from slimrnn.data import CATALOGUE, DataError
from slimrnn.data.check import condition_of
from slimrnn.data.mnist import load_mnist


@needs_data
@pytest.mark.parametrize("name", ["mnist", "ptb", "tinyshakespeare", "timit_sample", "ml-1m-sequences", "yt8m_sample"])
def test_real_data_has_its_checksums_and_counts(name: str) -> None:
    assert condition_of(CATALOGUE[name], Path(os.environ["SLIMRNN_DATA"])).state == "complete"


@needs_data
def test_mnist_has_its_statistics() -> None:
    """The mean 0.1307 and the deviation 0.3081 that everybody normalises by."""
    images, digits = load_mnist("train")
    assert images.shape == (60_000, 28, 28)
    assert round(float(images.mean()) / 255, 4) == 0.1307
    assert round(float(images.std()) / 255, 4) == 0.3081
    assert np.bincount(digits).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert digits[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    images, digits = load_mnist("t10k")
    assert images.shape == (10_000, 28, 28)
    assert np.bincount(digits).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def put(folder: Path, images: np.ndarray, digits: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    for name, array in (("t10k-images-idx3-ubyte", images), ("t10k-labels-idx1-ubyte", digits)):
        header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        (folder / name).write_bytes(header + array.tobytes())


@pytest.mark.parametrize(
    ("count", "digit", "message"),
    [(10_000, 10, "expected digits in .*labels-idx1-ubyte, got 10"), (9_999, 1, "expected 10,000 × 28 × 28 bytes")],
)
def test_what_is_no_mnist_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, digit: int, message: str
) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    put(tmp_path / "mnist", np.zeros((count, 28, 28), np.uint8), np.full(count, digit, np.uint8))
    with pytest.raises(DataError, match=message):
        load_mnist("t10k")


def test_uncompressed_files_and_changed_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for digit in (3, 4):
        monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path / str(digit)))
        (tmp_path / str(digit)).mkdir()
        put(tmp_path / f"{digit}/mnist", np.zeros((10_000, 28, 28), np.uint8), np.full(10_000, digit, np.uint8))
        assert load_mnist("t10k")[1].tolist() == [digit] * 10_000
    assert len(list((tmp_path / "slimrnn/parsed").iterdir())) == 2
