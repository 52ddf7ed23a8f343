"""The forecasts that everybody can make: the last value, or that of a period ago.

Shape suffixes: H steps ahead, O origins.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimrnn.training.task import Indices

TINY = 1e-12
AT_A_TIME = 4096  # origins


class Known(Protocol):
    """Series by number."""

    @property
    def horizon(self) -> int: ...

    def one(self, series: int) -> NDArray[np.float64]: ...

    def gaps(self, series: int) -> NDArray[np.bool_]: ...


def naive(values: NDArray[np.float64], origins: NDArray[np.int64], horizon: int, period: int) -> NDArray[np.float64]:
    """The last known value at the same place of the period, (O, H); period 1: the last value. NaN where the series
    does not reach back as far."""
    ahead = np.arange(1, horizon + 1)
    places = origins[:, None] + ahead - period * (-(-ahead // period))
    return np.where(places >= 0, values[np.maximum(places, 0)], np.nan)


def naive_error(values: NDArray[np.float64], period: int) -> float:
    """Mean absolute difference over a period: the unit of MASE."""
    period = period if len(values) > period else 1
    differences = np.abs(values[period:] - values[:-period])
    known = differences[np.isfinite(differences)]
    return max(float(known.mean()), TINY) if len(known) else 1.0


def naive_scores(
    series: Known, first: Indices, last: Indices, units: NDArray[np.float64], period: int
) -> dict[str, float]:
    """MAE, MASE and sMAPE of the naive forecasts from all origins; missing values are not scored."""
    totals, count = np.zeros(3), 0
    for number in np.flatnonzero(last >= first).tolist():
        values, missing = series.one(number), series.gaps(number)
        for start in range(int(first[number]), int(last[number]) + 1, AT_A_TIME):
            places = np.arange(start, min(start + AT_A_TIME, int(last[number]) + 1))
            later = places[:, None] + np.arange(1, series.horizon + 1)
            guess = naive(values, places, series.horizon, period)
            guess = np.where(np.isfinite(guess), guess, values[places][:, None])
            truth, known = values[later], ~missing[later]
            errors = np.abs(truth - guess)
            relative = 2 * errors / np.maximum(np.abs(truth) + np.abs(guess), TINY)
            totals += [(value * known).sum() for value in (errors, errors / units[number], relative)]
            count += int(known.sum())
    return dict(zip(("mae", "mase", "smape"), (totals / max(count, 1)).tolist(), strict=True))
