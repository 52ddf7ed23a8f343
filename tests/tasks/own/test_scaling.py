"""Columns are scaled by the training part alone."""

from __future__ import annotations

import numpy as np
import pytest

from own_cases import some_sequences
from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own import ClassifyTask
from slimrnn.tasks.own.scaling import Scaling, filled


def test_training_part_gets_mean_zero_and_deviation_one() -> None:
    sequences = some_sequences(gaps=False)
    scaling = Scaling.learned(sequences, np.arange(10))
    steps = sequences.values[: sequences.starts[10]]
    scaled = scaling(steps[:, None])
    np.testing.assert_allclose(scaled.mean((0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std((0, 1)), 1, atol=1e-5)


def test_other_parts_do_not_change_the_scaling() -> None:
    sequences = some_sequences()
    before = ClassifyTask.of(sequences)
    changed = sequences.values.copy()
    for split in ("valid", "test"):
        for index in before.parts[split]:
            changed[sequences.starts[index] : sequences.starts[index + 1]] *= 100
    after = ClassifyTask.of(Sequences(changed, sequences.starts, ("x", "y"), sequences.ids, sequences.labels))
    assert before.scaling.record() == after.scaling.record()


def test_constant_and_empty_columns_are_only_shifted() -> None:
    values = np.array([[5.0, np.nan, 1e8], [5.0, np.nan, 1e8]], dtype=np.float32)
    scaling = Scaling.learned(Sequences(values, np.array([0, 2]), ("a", "b", "c"), ("s",)), np.arange(1))
    assert scaling.scale.tolist() == [1, 1, 1]
    assert (scaling(values[:, None]) == 0).all()


def test_a_gap_takes_the_last_value_before_it() -> None:
    values = np.array([np.nan, 2, np.nan, np.nan, 3], dtype=np.float32)[:, None, None]
    assert filled(values).ravel().tolist() == [0, 2, 2, 2, 3]


def test_the_record_restores_it() -> None:
    scaling = Scaling.learned(some_sequences(), np.arange(5))
    again = Scaling.from_record(scaling.record())
    values = np.ones((3, 1, 2), dtype=np.float32)
    assert (again(values) == scaling(values)).all()
    with pytest.raises(ValueError, match="expected a mean and a scale for each of 2 columns"):
        Scaling.from_record(scaling.record() | {"mean": [1.0]})
