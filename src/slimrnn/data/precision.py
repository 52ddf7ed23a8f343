"""Whether single precision, in which nets compute, tells the values of a column apart.

Shape suffixes: R rows of a piece, D columns, N sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_A_TIME = 1 << 18  # steps whose double precision copies are held
LOST = 0.02  # rounding errors of this share of the deviation: about fifty different values are left
CONSTANT = 1e-12  # a deviation of this share of the level is a rounding error of double precision


class Precision:
    """Compares √(mean e²), where e = x − float32(x), with the standard deviation of x, for pieces one after the other:
    for each column or, where a net reads each series around its own level, for each column of each sequence."""

    def __init__(self, by_sequence: bool = False) -> None:
        self.by_sequence = by_sequence
        self._sums: NDArray[np.float64] | None = None  # (4, N, D): count, mean, squares around it, squared errors
        self._whole: list[NDArray[np.float64]] = []  # the same of sequences that came as a whole

    def add(self, values_RD: NDArray[np.float64], sequences_R: NDArray[np.integer] | None = None) -> None:
        """More rows, and the numbers of their sequences; without them, a whole sequence."""
        if not len(values_RD):
            return
        is_grouped = self.by_sequence and sequences_R is not None
        numbers_R = np.asarray(sequences_R if is_grouped else np.zeros(len(values_RD)), np.int64)
        known_RD = np.isfinite(values_RD)
        values_RD = np.where(known_RD, values_RD, 0.0)
        errors_RD = values_RD - values_RD.astype(np.float32)
        count = _sums(known_RD.astype(np.float64), numbers_R)
        mean = _sums(values_RD, numbers_R) / np.maximum(count, 1)
        squares = _sums(np.square((values_RD - mean[numbers_R]) * known_RD), numbers_R)
        sums = np.stack([count, mean, squares, _sums(np.square(errors_RD), numbers_R)])
        if self.by_sequence and sequences_R is None:
            self._whole.append(sums)
        else:
            self._merge(sums)

    def add_all(self, values_SD: NDArray[Any], starts: NDArray[np.int64]) -> None:
        """All sequences, one after the other; what is single already has lost nothing here."""
        if values_SD.dtype == np.float32:
            return
        for first in range(0, len(values_SD), AT_A_TIME):
            steps = np.arange(first, min(first + AT_A_TIME, len(values_SD)))
            self.add(values_SD[steps].astype(np.float64), np.searchsorted(starts, steps, side="right") - 1)

    def _merge(self, more: NDArray[np.float64]) -> None:
        """The mean and squares of both together."""
        if self._sums is None:
            self._sums = more
            return
        size = max(self._sums.shape[1], more.shape[1])
        one, other = (np.pad(sums, ((0, 0), (0, size - sums.shape[1]), (0, 0))) for sums in (self._sums, more))
        count, shift = one[0] + other[0], other[1] - one[1]
        share = other[0] / np.maximum(count, 1)
        squares = one[2] + other[2] + np.square(shift) * one[0] * share
        self._sums = np.stack([count, one[1] + shift * share, squares, one[3] + other[3]])

    def problem(self, columns: Sequence[str], wanted: Sequence[str] | None = None) -> str | None:
        """What to tell the user of the first of the wanted columns whose values are not told apart."""
        found = [*self._whole, *([] if self._sums is None else [self._sums])]
        if not found:
            return None
        count, mean, squares, errors = np.concatenate(found, 1)
        deviation, error = (np.sqrt(sums / np.maximum(count, 1)) for sums in (squares, errors))
        lost = (error > LOST * deviation) & (deviation > CONSTANT * np.abs(mean))
        lost &= np.array([wanted is None or name in wanted for name in columns])
        if not lost.any():
            return None
        n, d = (int(place) for place in np.argwhere(lost)[0])
        return (
            f"expected values that differ in their first seven digits, as single precision has, in {columns[d]}, got "
            f"values around {mean[n, d]:.9g} with a deviation of {deviation[n, d]:.2g}: subtract a number such as "
            f"{mean[n, d]:.9g} from the column, or leave it out"
        )


def _sums(values_RD: NDArray[np.float64], numbers_R: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each sequence, (N, D)."""
    if not numbers_R.any():
        sums: NDArray[np.float64] = values_RD.sum(0, keepdims=True)
    else:
        sums = np.stack([np.bincount(numbers_R, column) for column in values_RD.T], 1)
    return sums
