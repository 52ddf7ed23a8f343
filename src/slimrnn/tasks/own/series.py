"""Series of numbers, and what a net reads of them to forecast.

Shape suffixes: S steps of all sequences together, T time, B windows, H steps ahead, I input width, P periods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own.calendar import Clock, waves
from slimrnn.tasks.own.naive_forecasts import naive_error
from slimrnn.tasks.own.scaling import Scaling, filled
from slimrnn.tasks.own.windows import Windows
from slimrnn.training.task import Indices

FLAT = 1e-6  # a window whose deviation is below this share of its level counts as constant


@dataclass(frozen=True, eq=False)
class Series:
    """Every target column of every sequence is a series: number s is column s mod columns of sequence s div columns.
    The net reads one series at a time, with the other columns beside it."""

    sequences: Sequences
    targets: tuple[str, ...]
    horizon: int
    periods: tuple[int, ...]
    scaling: Scaling | None = None  #: of the other columns; none are read without

    def __len__(self) -> int:
        return len(self.sequences) * len(self.targets)

    @property
    def lengths(self) -> Indices:
        """Of each series."""
        return np.repeat(self.sequences.lengths, len(self.targets))

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """Of the targets, (S, columns): a missing value is the last one before it, or else the next, or 0."""
        values = self.sequences.values[:, [self.sequences.columns.index(name) for name in self.targets]]
        if not np.isfinite(values).all():
            for start, end in zip(self.sequences.starts, self.sequences.starts[1:], strict=False):
                known = np.isfinite(values[start:end])
                first = np.take_along_axis(values[start:end], known.argmax(0)[None], 0)
                carried = filled(values[start:end])
                before = np.maximum.accumulate(known) == 0
                values[start:end] = np.where(before, np.nan_to_num(first), carried)
        return values

    def one(self, series: int) -> NDArray[np.float64]:
        """The values of a series without gaps."""
        sequence, column = divmod(series, len(self.targets))
        start, end = self.sequences.starts[sequence : sequence + 2]
        return self.values[start:end, column].astype(np.float64)

    def gaps(self, series: int) -> NDArray[np.bool_]:
        """Which of its values are missing."""
        sequence, column = divmod(series, len(self.targets))
        return ~np.isfinite(self.sequences[sequence][:, self.sequences.columns.index(self.targets[column])])

    @cached_property
    def calendar(self) -> NDArray[np.float32]:
        """Sines and cosines of every step, (S, 2 P)."""
        pieces = [waves(self.clock(index).numbers(), self.periods) for index in range(len(self.sequences))]
        return np.concatenate(pieces)

    def clock(self, sequence: int) -> Clock:
        """The times of a sequence."""
        start, end = self.sequences.starts[sequence : sequence + 2]
        times = None if self.sequences.times is None else self.sequences.times[start:end]
        return Clock(times, int(end - start))

    def units(self, known: Indices) -> NDArray[np.float64]:
        """The unit of MASE of each series, from its first `known` steps."""
        period = self.periods[0] if self.periods else 1
        return np.array([naive_error(self.one(s)[: known[s]], period) for s in range(len(self))])

    @property
    def width(self) -> int:
        """Numbers that the net reads at a step."""
        others = 0 if self.scaling is None else len(self.scaling.columns)
        return 2 + sum(2 + min(self.horizon, period) for period in self.periods) + others

    # --- windows ----------------------------------------------------------------------------------------

    def inputs(self, windows: Windows) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
        """(T, B, I), and level and scale of each window, (B), which are those of the steps up to its first origin.

        A step has the value and its change; for each period the values of the steps ahead, one period ago; sines and
        cosines of the periods; other columns."""
        places_TB, level_B, scale_B = self._scaled(windows)
        now = self._at(windows, places_TB)
        parts = [(now - level_B) / scale_B, (now - self._at(windows, places_TB - 1)) / scale_B]
        for period in self.periods:
            for ahead in range(1, min(self.horizon, period) + 1):
                there = places_TB + ahead - period
                then = np.where(there >= 0, self._at(windows, there), now)
                parts.append((then - now) / scale_B)
        steps_TB = places_TB + self._starts(windows)
        stacked = [np.stack(parts, -1).astype(np.float32)]
        if self.periods:
            stacked.append(self.calendar[steps_TB])
        if self.scaling is not None:
            chosen = [self.sequences.columns.index(name) for name in self.scaling.columns]
            stacked.append(self.scaling(self.sequences.values[steps_TB][..., chosen]))
        return np.concatenate(stacked, -1), level_B, scale_B

    def ahead(self, windows: Windows, base: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """After each step the next values, NaN where they are missing, and the naive forecasts of period `base`:
        both (T, B, H)."""
        places_TB = self._places(windows)[..., None]
        h = np.arange(1, self.horizon + 1)
        later = places_TB + h
        before = later - base * (-(-h // base))
        guess = self._at(windows, np.where(before >= 0, before, places_TB))
        lengths = self.lengths[windows.series][:, None]
        truth = np.where(later < lengths, self._at(windows, later, gaps=True), np.nan)
        return truth, guess

    def _places(self, windows: Windows) -> NDArray[np.int64]:
        steps_T1 = np.arange(windows.steps.max(initial=1))[:, None]
        return windows.first + np.minimum(steps_T1, windows.steps - 1)

    def _scaled(self, windows: Windows) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        places_TB = self._places(windows)
        known_TB = np.arange(len(places_TB))[:, None] <= windows.read
        values = np.where(known_TB, self._at(windows, places_TB), 0.0)
        count = known_TB.sum(0)
        level = values.sum(0) / np.maximum(count, 1)
        scale = np.sqrt((np.square(values - level) * known_TB).sum(0) / np.maximum(count, 1))
        return places_TB, level, np.where(scale > FLAT * np.abs(level), scale, np.maximum(np.abs(level), 1.0))

    def _starts(self, windows: Windows) -> Indices:
        return self.sequences.starts[windows.series // len(self.targets)]

    def _at(self, windows: Windows, places: NDArray[np.int64], gaps: bool = False) -> NDArray[np.float64]:
        """Values of each window's series at these steps, (T, B) or (T, B, H); the first or last one beyond the ends."""
        lengths, starts = self.lengths[windows.series], self._starts(windows)
        columns = windows.series % len(self.targets)
        if places.ndim == 3:
            lengths, starts, columns = lengths[:, None], starts[:, None], columns[:, None]
        steps = starts + np.clip(places, 0, lengths - 1)
        if gaps:
            numbers = np.array([self.sequences.columns.index(name) for name in self.targets])
            found: NDArray[np.float64] = self.sequences.values[steps, numbers[columns]].astype(np.float64)
        else:
            found = self.values[steps, columns].astype(np.float64)
        return found
