"""Scores of forecasts, and the forecasts that everybody can make.

Shape suffixes: H steps ahead, Q quantiles, O origins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TINY = 1e-12


def pinball(forecasts: Tensor, targets: Tensor, quantiles: Sequence[float]) -> Tensor:
    """max(q e, (q − 1) e) with e = target − forecast: (..., H, Q) and (..., H) to the mean over Q, (..., H)."""
    levels = forecasts.new_tensor(quantiles)
    errors = targets.unsqueeze(-1) - forecasts
    return torch.maximum(levels * errors, (levels - 1) * errors).mean(-1)


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


def symmetric(errors: Tensor, forecasts: Tensor, targets: Tensor) -> Tensor:
    """2 |e| / (|forecast| + |target|), of which sMAPE is the mean."""
    return 2 * errors.abs() / (forecasts.abs() + targets.abs()).clamp_min(TINY)
