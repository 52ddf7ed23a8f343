"""Where in a period a step lies, and when the next steps will be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNITS = (("Y", 360, 370), ("M", 27, 32))  # of a calendar, with the days that one may have


class Clock:
    """Times of one series as whole numbers of steps, counted from a common origin where times are known."""

    def __init__(self, times: NDArray[Any] | None, count: int) -> None:
        self.count, self.times = count, times
        self.step: float = 1.0
        self.unit: str | None = None
        if times is None or len(times) < 2:
            self.times = None
            return
        if np.issubdtype(times.dtype, np.datetime64):
            seconds = times.astype("datetime64[ms]").astype(np.int64) / 1000
            self.step = float(np.median(np.diff(seconds))) or 1.0
            days = self.step / 86_400
            self.unit = next((u for u, low, high in UNITS if low < days < high and _counts(times, u)), None)
        else:
            self.step = float(np.median(np.diff(times))) or 1.0

    def numbers(self) -> NDArray[np.int64]:
        """The number of each step: of months or years, or of steps since 1970 or since 0."""
        if self.times is None:
            return np.arange(self.count)
        if self.unit is not None:
            return self.times.astype(f"datetime64[{self.unit}]").astype(np.int64)
        seconds = self.times
        if np.issubdtype(seconds.dtype, np.datetime64):
            seconds = seconds.astype("datetime64[ms]").astype(np.int64) / 1000
        return np.round(seconds.astype(np.float64) / self.step).astype(np.int64)

    def later(self, steps: int) -> list[str]:
        """The times of the next steps, as texts."""
        ahead = np.arange(1, steps + 1)
        if self.times is None:
            return [str(self.count - 1 + step) for step in ahead]
        last = self.times[-1]
        if self.unit is not None:
            return [str(time) for time in last.astype(f"datetime64[{self.unit}]") + ahead]
        if np.issubdtype(self.times.dtype, np.datetime64):
            moved = last.astype("datetime64[ms]") + (ahead * self.step * 1000).round().astype("timedelta64[ms]")
            return [str(time).removesuffix(".000") for time in moved]
        return [f"{float(last) + step * self.step:.12g}" for step in ahead]


def _counts(times: NDArray[Any], unit: str) -> bool:
    """Whether times go by months or years, not by a number of days that is about as long: no two in one month, and on
    one day of each, or with steps of different lengths."""
    found = times.astype(f"datetime64[{unit}]")
    steps = np.diff(times.astype("datetime64[ms]").astype(np.int64))
    if (np.diff(found.astype(np.int64)) < 1).any():
        return False
    days = (times.astype("datetime64[D]") - found.astype("datetime64[D]")).astype(np.int64)
    return bool((days == days[0]).all() or (steps % steps.min() != 0).any())


def waves(numbers: NDArray[np.int64], periods: tuple[int, ...]) -> NDArray[np.float32]:
    """Sine and cosine of each period, (steps, 2 · periods)."""
    angles = 2 * np.pi * (numbers[:, None] % np.array(periods, dtype=np.int64).reshape(1, -1)) / np.array(periods)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
