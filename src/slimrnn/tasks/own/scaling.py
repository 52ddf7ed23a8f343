"""Columns in comparable units: mean and standard deviation of the training part, and values for what is missing.

Shape suffixes: S steps of all sequences together, T time, B sequences, D columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.sequences import Sequences
from slimrnn.training.task import Indices

AT_A_TIME = 1 << 18  # steps whose double precision copy is held
CONSTANT = 1e-6  # deviations below this share of the largest value are rounding errors


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − mean) / scale, by column. A missing value becomes the last one before it, or else the mean."""

    columns: tuple[str, ...]
    mean: NDArray[np.float64]  #: (D)
    scale: NDArray[np.float64]  #: (D), 1 for constant columns

    @classmethod
    def learned(cls, sequences: Sequences, which: Indices) -> Scaling:
        """From these sequences only."""
        chosen = np.zeros(len(sequences), dtype=bool)
        chosen[which] = True
        steps_S = np.repeat(chosen, sequences.lengths)
        width = len(sequences.columns)
        count, total, largest = np.zeros(width), np.zeros(width), np.zeros(width)
        for values, known in _pieces(sequences.values, steps_S):
            count += known.sum(0)
            total += values.sum(0)
            largest = np.maximum(largest, np.abs(values).max(0, initial=0.0))
        mean = total / np.maximum(count, 1)
        squares = np.zeros(width)
        for values, known in _pieces(sequences.values, steps_S):
            squares += np.square((values - mean) * known).sum(0)
        deviation = np.sqrt(squares / np.maximum(count, 1))
        return cls(sequences.columns, mean, np.where(deviation > CONSTANT * largest, deviation, 1.0))

    def __call__(self, values_TBD: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scaled values without gaps; time comes first."""
        return filled(((values_TBD - self.mean) / self.scale).astype(np.float32))

    def record(self) -> dict[str, Any]:
        """For run.json."""
        return {"columns": list(self.columns), "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Scaling:
        """The inverse."""
        columns, mean, scale = tuple(map(str, record["columns"])), np.array(record["mean"]), np.array(record["scale"])
        if not mean.shape == scale.shape == (len(columns),):
            raise ValueError(f"expected a mean and a scale for each of {len(columns)} columns, got {mean.shape}")
        return cls(columns, mean.astype(np.float64), scale.astype(np.float64))


def filled(values_TBD: NDArray[np.float32]) -> NDArray[np.float32]:
    """The last value before a gap, or 0 where there is none."""
    known = np.isfinite(values_TBD)
    if known.all():
        return values_TBD
    steps = np.arange(len(values_TBD)).reshape(-1, *[1] * (values_TBD.ndim - 1))
    last = np.maximum.accumulate(np.where(known, steps, -1))
    carried = np.take_along_axis(values_TBD, np.maximum(last, 0), 0)
    return np.where(last >= 0, carried, np.float32(0))


def _pieces(values_SD: NDArray[np.float32], chosen_S: NDArray[np.bool_]) -> Any:
    """Chosen steps in double precision, zero where a value is missing, and which are not."""
    for start in range(0, len(values_SD), AT_A_TIME):
        piece = slice(start, start + AT_A_TIME)
        values = values_SD[piece][chosen_S[piece]].astype(np.float64)
        known = np.isfinite(values)
        yield np.where(known, values, 0.0), known
