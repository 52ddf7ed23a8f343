"""Parsed forms: kept, found again, built again where they are damaged, and never in the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slimrnn.data import DataError, cache_directory, cached, data_directory, find_file, find_folder
from slimrnn.data.cache import Arrays


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw").write_text("1 2 3")
    return tmp_path / "raw"


class Builder:
    """Counts how often it had to work."""

    def __init__(self, raw: Path) -> None:
        self.raw, self.calls = raw, 0

    def __call__(self) -> Arrays:
        self.calls += 1
        numbers = np.array(self.raw.read_text().split(), dtype=np.int64)
        return {"numbers": numbers, "squares": numbers.astype(np.float32) ** 2}

    def get(self) -> Arrays:
        return cached("numbers-1", [self.raw], self)


def same(arrays: Arrays, numbers: list[int]) -> bool:
    right = {"numbers": np.array(numbers), "squares": np.array(numbers, dtype=np.float32) ** 2}
    return all(
        np.array_equal(arrays[name], right[name]) and arrays[name].dtype == right[name].dtype for name in right | arrays
    )


def kept() -> list[Path]:
    return list((cache_directory() / "parsed").iterdir())


def test_the_second_call_finds_what_the_first_built(raw: Path) -> None:
    builder = Builder(raw)
    assert same(builder.get(), [1, 2, 3])
    assert same(builder.get(), [1, 2, 3])
    assert builder.calls == 1
    assert [path.suffix for path in kept()] == [".npz"]


def test_other_contents_are_built_anew(raw: Path) -> None:
    builder = Builder(raw)
    builder.get()
    raw.write_text("1 2 4")
    assert same(builder.get(), [1, 2, 4])
    raw.write_text("1 2 3")
    assert same(builder.get(), [1, 2, 3])
    assert builder.calls == 2


@pytest.mark.parametrize("at", [0, 10, 150, 400, -200, -150, -100, -50, -10])
def test_a_damaged_file_is_built_again(raw: Path, at: int) -> None:
    builder = Builder(raw)
    builder.get()
    (path,) = kept()
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[at] ^= 0xFF
    for content in (bytes(damaged), whole[: len(whole) // 2], b""):
        path.write_bytes(content)
        assert same(builder.get(), [1, 2, 3])
    assert path.read_bytes() == whole
    assert builder.calls == 4


def test_every_flipped_bit_is_noticed(raw: Path) -> None:
    builder = Builder(raw)
    builder.get()
    (path,) = kept()
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 7):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert same(builder.get(), [1, 2, 3])
    assert builder.calls == 1 + len(range(0, 8 * len(whole), 7))


def test_a_cache_that_cannot_be_written_is_done_without(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where a directory should be")
    builder = Builder(raw)
    assert same(builder.get(), [1, 2, 3])
    assert same(builder.get(), [1, 2, 3])
    assert builder.calls == 2


def test_a_failure_to_build_keeps_nothing(raw: Path) -> None:
    raw.write_text("one two")
    with pytest.raises(ValueError, match="invalid literal"):
        Builder(raw).get()
    assert not (cache_directory() / "parsed").exists()


def test_missing_raw_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*nowhere: No such file"):
        Builder(tmp_path / "nowhere").get()


def test_where_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIMRNN_DATA", raising=False)
    assert data_directory() == tmp_path / "cache" / "slimrnn" / "data"
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path / "data"))
    assert data_directory() == tmp_path / "data"
    assert data_directory(tmp_path) == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/to/be/ignored")
    assert cache_directory() == Path.home() / ".cache" / "slimrnn"


def test_missing_files_are_named_with_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    with pytest.raises(
        DataError, match=rf"expected ptb\.train\.txt of ptb at {tmp_path}/ptb/ptb\.train\.txt, got none"
    ):
        find_file("ptb", "ptb.train.txt")
    with pytest.raises(DataError, match="put it there, or run slimrnn data get timit_sample"):
        find_folder("timit_sample")
    (tmp_path / "movielens/ml-1m").mkdir(parents=True)
    (tmp_path / "movielens/ml-1m/ratings.dat").touch()
    assert find_file("ml-1m", "ratings.dat") == find_folder("ml-1m") / "ratings.dat"
    with pytest.raises(DataError, match="got 'ml1m'; did you mean 'ml-1m'"):
        find_folder("ml1m")
