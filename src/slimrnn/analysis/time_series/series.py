"""What all measures of dependence ask of a time series."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Array = NDArray[np.float64]


def as_series(x: ArrayLike | Tensor, least: int) -> Array:
    """x (T,) or (T, d) as float64 (T, d): finite real numbers, at least `least` steps, no constant component."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        x = (x.double() if x.is_floating_point() else x.resolve_conj()).numpy()  # numpy has no bfloat16
    array = np.asarray(x)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"expected a series of real numbers, got {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise ValueError(f"expected a series of shape (T,) or (T, d), got {array.shape}")
    if len(array) < least:
        raise ValueError(f"expected a series of at least {least} steps, got {len(array)}")
    series = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
    if not np.isfinite(series).all():
        raise ValueError(f"expected finite numbers in the series, got {series[~np.isfinite(series)][0]}")
    spread, size = np.ptp(series, axis=0), np.abs(series).max(0)
    still = np.flatnonzero(spread <= 1e-12 * size)  # what rounding makes of a constant
    if still.size:
        raise ValueError(f"expected a series that varies, got a constant component {still[0]} of {series.shape[1]}")
    return series


def periodograms(series: Array) -> Array:
    """|Σ_t x_t e^{−iλ_j t}|² / (2πT) at λ_j = 2πj/T, j = 1 … ⌊T/2⌋, of each component; free of the mean."""
    return np.asarray(np.abs(np.fft.rfft(series - series.mean(0), axis=0)[1:]) ** 2 / (2 * np.pi * len(series)))


def check_between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"expected {name} from {low} to {high}, got {value}")
