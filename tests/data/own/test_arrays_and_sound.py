"""Arrays of numpy, folders of sound, and rows of a pipe."""

from __future__ import annotations

import io
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slimrnn.data.mfcc import mfcc
from slimrnn.data.own_files import Roles, read_rows, read_sequences
from slimrnn.errors import DataError
from speech import tone

VALUES = np.arange(12, dtype=np.float64).reshape(2, 3, 2)


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def test_lengths_end_sequences(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[1, 1:] = np.inf  # padding may be anything
    found = read_sequences(saved(tmp_path, x=values, lengths=[3, 1], y=[4, 5], ids=["p", "q"], parts=["train", "test"]))
    assert found.values.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert (found.ids, found.parts, found.columns) == (("p", "q"), ("train", "test"), ("dim1", "dim2"))
    assert np.array(found.labels).tolist() == ["4", "5"]
    assert found.roles == Roles(label="y", columns=("dim1", "dim2"))


def test_without_lengths_missing_values_end_sequences(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, np.nan, 3], [4, np.nan, np.nan]], np.float32, order="F"))
    found = read_sequences(tmp_path / "a.npy")
    np.testing.assert_array_equal(found.values[:, 0], [1, np.nan, 3, 4])
    assert found.labels is None


def test_labels_of_steps(tmp_path: Path) -> None:
    roles = Roles(labels="step", numbers=True)
    found = read_sequences(saved(tmp_path, x=VALUES, lengths=[3, 1], y=[[1, 2, 3], [4, 0, 0]]), roles)
    assert np.array(found.labels).tolist() == [1, 2, 3, 4]
    assert np.array(read_sequences(saved(tmp_path, x=VALUES, y=np.arange(6)), roles).labels).tolist() == [*range(6)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [1, 2]}, r"expected one array of values \(values, x, X, data\) in .*, got y"),
        ({"x": [1, 2]}, r"expected x \(N, T\) or \(N, T, C\) in .*, got the shape \(2,\)"),
        ({"x": VALUES.astype(str)}, "expected numbers as x in .*, got <U"),
        ({"x": np.full((2, 3, 2), np.inf)}, "expected finite numbers of at most 3.4e.38 in .*, got x.0, 0, 0. = inf"),
        ({"x": VALUES, "lengths": [3, -1]}, r"expected lengths from 1 to 3 in .*, got lengths\[1\] = -1"),
        ({"x": VALUES, "lengths": [3.0, 1.0]}, "expected 2 whole numbers as lengths in .*, got float64"),
        ({"x": VALUES, "y": [1]}, r"expected 2 y in .*, got the shape \(1,\)"),
        ({"x": VALUES, "y": ["u", ""]}, r"expected y without gaps in .*, got y\[1\] = ''"),
        ({"x": VALUES, "ids": ["u", "u"]}, "expected different ids in .*, got 'u' more than once"),
        ({"x": VALUES, "parts": ["train", "often"]}, r"expected train, valid or test as parts\[1\] in .*, got 'often'"),
    ],
)
def test_what_is_wrong_is_named(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_sequences(saved(tmp_path, **arrays))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[1, 2], [3]], object), allow_pickle=True)
    with pytest.raises(DataError, match="got Python objects, which are never unpickled"):
        read_sequences(path)


def clip(path: Path, samples: np.ndarray[Any, Any], rate: int = 8_000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    for name, length in (("a.wav", 900), ("b.wav", 1300), ("spare.wav", 900)):
        clip(tmp_path / name, tone(length))
    (tmp_path / "labels.csv").write_text("file,label,split\nb.wav,no,test\na.wav,yes,train\n")
    return tmp_path


def test_sound_is_features_at_its_own_rate(clips: Path) -> None:
    found = read_sequences(clips)
    assert (found.ids, found.parts) == (("b.wav", "a.wav"), ("test", "train"))
    assert np.array(found.labels).tolist() == ["no", "yes"]
    np.testing.assert_array_equal(found[1], mfcc(tone(900), 8_000).astype(np.float32))
    assert (found.columns[0], found.columns[-1]) == ("c1@8000Hz", "d_energy@8000Hz")
    assert found.notes[1:] == (
        "features of 2 files at 8,000 samples a second, a step each 10 ms",
        "left out 1 file that labels.csv does not list",
    )
    (clips / "labels.csv").unlink()
    assert read_sequences(clips, found.roles, to_predict=True).ids == ("a.wav", "b.wav", "spare.wav")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("file,label\nc.wav,yes\n", "expected the file of line 2 of .*labels.csv, got no .*c.wav"),
        ("file,label\n../a.wav,yes\n", "expected names of files in .* in line 2 of .*labels.csv, got '../a.wav'"),
        ("file,label\na.wav,yes\na.wav,no\n", "expected each file once in .*, got 'a.wav' in lines 2 and 3"),
        ("file,label\na.wav,\n", "expected a label in line 2 of .*labels.csv, got ''"),
        ("name,label\na.wav,yes\n", "expected a column file in line 1 of .*labels.csv, got name, label"),
        ("file,label\na.wav\n", "expected 2 values in line 2 of .*labels.csv, got 1"),
    ],
)
def test_what_is_wrong_in_the_table_is_named(table: str, message: str, clips: Path) -> None:
    (clips / "labels.csv").write_text(table)
    with pytest.raises(DataError, match=message):
        read_sequences(clips)


def test_clips_have_one_rate_and_a_frame(clips: Path) -> None:
    clip(clips / "a.wav", tone(900), 16_000)
    with pytest.raises(DataError, match=r"expected 8,000 samples a second in .*a.wav, as in b.wav, got 16,000"):
        read_sequences(clips)
    clip(clips / "a.wav", tone(10))
    with pytest.raises(DataError, match=r"expected at least 200 samples in .*a.wav, a frame of 25 ms, got 10"):
        read_sequences(clips)


def test_rows_come_one_at_a_time() -> None:
    lines = iter(["id;b;a\n", "x;1;\n", '"y;z"; 2 ;3\n', "w;1;oops\n"])
    rows = read_rows(lines, ("a", "b"), ("id",))
    first = next(rows)
    assert (first.line, first.texts) == (2, ("x",))
    np.testing.assert_array_equal(first.values, [np.nan, 1])
    assert next(rows).texts == ("y;z",)
    with pytest.raises(DataError, match="expected a finite number as a in line 4 of the input, got 'oops'"):
        next(rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header with a in line 1 of the input, got nothing"),
        ("b\n1\n", "expected a column a in line 1 of the input, got b"),
        ("a,b\n1\n", "expected 2 values in line 2 of the input, got 1"),
        ("a,b\n1,2\n\n1,2\n", "expected 2 values in line 3 of the input, got a blank line"),
        ("a\ninf\n", "expected a finite number as a in line 2 of the input, got 'inf'"),
        ("a\n\0\n", "expected text in line 2 of the input, got a NUL byte"),
    ],
)
def test_what_is_wrong_in_rows_is_named(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_rows(io.StringIO(text), ("a",)))


def test_arrays_need_no_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert len(read_sequences(saved(tmp_path, x=VALUES))) == 2
    (tmp_path / "a.csv").write_text("id,a\nx,1\n")
    with pytest.raises(DataError, match="expected the package polars, got none"):
        read_sequences(tmp_path / "a.csv")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected different columns in .*, got 'a' more than once"):
        read_sequences(saved(tmp_path, values=VALUES, columns=["a", "a"]))
