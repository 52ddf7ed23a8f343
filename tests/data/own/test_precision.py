"""Values that single precision does not tell apart are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from slimrnn.data.own_files import Roles, read_sequences
from slimrnn.data.precision import Precision
from slimrnn.errors import DataError

WAVE = 20 * np.sin(np.arange(40.0))
TOLD = "expected values that differ in their first seven digits"


def write(folder: Path, kind: str, values: NDArray[np.float64]) -> Path:
    """One column, as a file of any kind."""
    path = folder / f"a.{kind}"
    texts = [repr(value) for value in values.tolist()]
    if kind == "npy":
        np.save(path, values[None])
    elif kind == "csv":
        path.write_text("\n".join(["x", *texts]))
    elif kind == "ts":
        path.write_text(f"@problemName p\n@timeStamps false\n@classLabel false\n@data\n{','.join(texts)}\n")
    else:
        heads = [f"@attribute a{n} numeric" for n in range(len(texts))]
        path.write_text("\n".join(["@relation r", *heads, "@data", ",".join(texts)]))
    return path


@pytest.mark.parametrize("kind", ["csv", "npy", "ts", "arff"])
def test_a_large_level_is_refused_and_a_usual_one_read(kind: str, tmp_path: Path) -> None:
    roles = Roles(labels="none")
    for level in (0.0, 1e6):
        found = read_sequences(write(tmp_path, kind, level + WAVE), roles)
        assert np.abs(found.values[:, 0] - (level + WAVE)).max() <= 1e-7 * level + 1e-5
    path = write(tmp_path, kind, 2e9 + WAVE)
    with pytest.raises(DataError, match=rf"{TOLD}.*around 2e\+09 with a deviation of 14: subtract a number"):
        read_sequences(path, roles)
    assert len(read_sequences(path, roles, to_predict=True)) == 1  # the scale is that of the training data


def test_constant_columns_are_no_problem(tmp_path: Path) -> None:
    rows = [f"{0.1 + 0.2!r},{k % 7}" if k % 2 else f"0.3,{k % 7}" for k in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *rows]))
    assert read_sequences(tmp_path / "a.csv", Roles(labels="none")).columns == ("x", "y")


def test_the_level_of_a_series_is_its_own_where_it_is_forecast() -> None:
    values, starts = np.concatenate([WAVE, 2e9 + WAVE])[:, None], np.array([0, 40, 80])
    for by_sequence in (True, False):
        found = Precision(by_sequence)
        found.add_all(values, starts)
        assert (found.problem(["x"]) is not None) == by_sequence


@pytest.mark.parametrize("by_sequence", [True, False])
def test_pieces_add_up(by_sequence: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2)) + np.array([1e7, 1e9])
    values[3, 0] = np.nan
    numbers = np.sort(rng.integers(0, 3, 60))
    whole, pieces = Precision(by_sequence), Precision(by_sequence)
    whole.add(values, numbers)
    for start in range(0, 60, 7):
        pieces.add(values[start : start + 7], numbers[start : start + 7])
    assert whole._sums is not None
    assert pieces._sums is not None
    np.testing.assert_allclose(pieces._sums, whole._sums, rtol=1e-6)
