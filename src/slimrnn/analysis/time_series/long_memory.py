"""The exponent of long memory: a spectral density ~ λ^−2d at frequency 0, autocovariances ~ k^(2d − 1), H = d + ½.

d = 0 (H = ½) is short memory, 0 < d < ½ long memory, whose autocorrelations have no finite sum; −½ < d < 0 is
antipersistent, and d ≥ ½ is not stationary.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from slimrnn.analysis.time_series.processes import fractional_gaussian_noise
from slimrnn.analysis.time_series.series import Array, as_series, check_between, periodograms

LOWEST, HIGHEST = -0.5, 1.0  # where local Whittle looks for d
LEAST_STEPS = 64
LEAST_FREQUENCIES = 8


@dataclass(frozen=True, eq=False)
class LongMemory:
    """Estimates of d with their standard errors and confidence intervals; numbers for (T,), arrays (d,) for (T, d).

    `pooled` is one exponent for all components of a series (T, d). Its standard error takes the estimates of two
    components to be correlated as their squared coherence at low frequencies says: components that are copies of each
    other count once."""

    method: str
    d: Array
    error: Array
    level: float
    bandwidth: int  #: frequencies used (local Whittle, GPH), or window lengths (DFA)
    pooled: LongMemory | None = None

    @property
    def hurst(self) -> Array:
        return self.d + 0.5

    @property
    def low(self) -> Array:
        """The lower end of the interval for d."""
        return np.asarray(self.d - self._quantile * self.error)

    @property
    def high(self) -> Array:
        return np.asarray(self.d + self._quantile * self.error)

    @property
    def _quantile(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)


def local_whittle(x: ArrayLike | Tensor, bandwidth: int | None = None, level: float = 0.95) -> LongMemory:
    """The d in [−½, 1] that minimises log(Σ_j λ_j^2d I_j / m) − 2d Σ_j log λ_j / m over j = 1 … m (Robinson 1995).

    m is the `bandwidth`, by default ⌊T^0.65⌋. The standard error is 1/(2 √Σν²) with ν_j = log j − their mean, which
    tends to 1/(2√m) and is better for small m (Hurvich & Chen 2000); it holds for −½ < d < ¾. The pooled d minimises
    the sum of the components' functions."""
    series, m = _series_and_bandwidth(x, bandwidth)
    _check_level(level)
    spectra, logs = _low_spectra(series, m), np.log(np.arange(1, m + 1))
    centred = logs - logs.mean()
    error = 0.5 / np.sqrt((centred**2).sum())
    each, common = _minimum(spectra, centred, common=False), _minimum(spectra, centred, common=True)
    return _result("local Whittle", x, each, np.full(len(each), error), common[0], series, m, m, level)


def gph(x: ArrayLike | Tensor, bandwidth: int | None = None, level: float = 0.95) -> LongMemory:
    """The slope of log I_j against −2 log(2 sin(λ_j/2)), j = 1 … m (Geweke & Porter-Hudak 1983).

    m is the `bandwidth`, by default ⌊T^0.65⌋. The standard error is that of least squares with the known variance π²/6
    of a log periodogram; it tends to π/√(24m). The pooled d is the mean of the components'."""
    series, m = _series_and_bandwidth(x, bandwidth)
    _check_level(level)
    spectra = _low_spectra(series, m)
    regressor = -2 * np.log(2 * np.sin(np.pi * np.arange(1, m + 1) / len(series)))
    regressor -= regressor.mean()
    d = regressor @ np.log(spectra) / (regressor @ regressor)
    errors = np.full(len(d), np.pi / np.sqrt(6 * (regressor @ regressor)))
    return _result("GPH", x, d, errors, d.mean(), series, m, m, level)


def dfa(x: ArrayLike | Tensor, windows: Sequence[int] | None = None, order: int = 1, level: float = 0.95) -> LongMemory:
    """The slope α of log F(n) against log n, by least squares, and d = α − ½ (Peng et al. 1994); see `fluctuations`.

    `windows` are by default 16 lengths from 10 to T/4, evenly spread on the log scale. The errors of the F(n) are
    correlated, so the least squares' own standard error is far too small. It comes from a parametric bootstrap: the
    standard deviation of α over 500 drawings of fractional Gaussian noise as long as the series, with H = α to the
    nearest 0.1, from a fixed seed. The pooled d is the mean of the components'."""
    series = as_series(x, LEAST_STEPS)
    _check_level(level)
    lengths = _windows(windows, len(series), order)
    alpha = _slopes(_fluctuations(series, lengths, order), lengths)
    nearest = (10 * alpha).round().clip(1, 9) / 10
    errors = np.array([_dfa_error(len(series), float(hurst), lengths, order) for hurst in nearest])
    low = _default_bandwidth(len(series))
    return _result("DFA", x, alpha - 0.5, errors, alpha.mean() - 0.5, series, low, len(lengths), level)


def fluctuations(x: ArrayLike | Tensor, windows: Sequence[int], order: int = 1) -> Array:
    """F(n) of detrended fluctuation analysis for each window length n: (lengths,) or (lengths, d).

    The root mean square of what a polynomial of the given order leaves of the summed series in windows of n steps,
    which are counted from both ends, so that no step is left out (Kantelhardt et al. 2001)."""
    series = as_series(x, LEAST_STEPS)
    found = _fluctuations(series, _windows(windows, len(series), order), order)
    return found if np.ndim(x) == 2 else found[:, 0]


def _minimum(spectra: Array, centred_logs: Array, common: bool) -> Array:
    """Where the derivative of the objective is 0, by bisection: the objective is convex, since it is a log-sum-exp."""
    low, high = (np.full(1 if common else spectra.shape[1], end) for end in (LOWEST, HIGHEST))
    for _ in range(50):
        d = (low + high) / 2
        weights = np.exp(2 * d * centred_logs[:, None]) * spectra
        slope = centred_logs @ (weights / weights.sum(0))
        rising = (slope.mean(keepdims=True) if common else slope) > 0
        low, high = np.where(rising, low, d), np.where(rising, d, high)
    return np.asarray((low + high) / 2)


def _fluctuations(series: Array, windows: tuple[int, ...], order: int) -> Array:
    profile, columns = np.cumsum(series - series.mean(0), axis=0), series.shape[1]
    found = []
    for n in windows:
        count = len(series) // n
        ends = (profile[: count * n], profile[len(profile) - count * n :])
        pieces = np.concatenate([end.reshape(count, n, columns) for end in ends])
        trends = np.linalg.qr(np.vander(np.linspace(-1, 1, n), order + 1))[0]
        rest = pieces - trends @ (trends.T @ pieces)
        found.append(np.sqrt((rest**2).mean((0, 1))))
    return np.array(found)


def _slopes(fluctuation: Array, windows: tuple[int, ...]) -> Array:
    if not (fluctuation > 0).all():
        raise ValueError("expected fluctuations around the trends, got none")
    logs = np.log(windows) - np.log(windows).mean()
    return np.asarray(logs @ np.log(fluctuation) / (logs @ logs))


@lru_cache(maxsize=256)
def _dfa_error(steps: int, hurst: float, windows: tuple[int, ...], order: int) -> float:
    drawn = fractional_gaussian_noise(hurst, steps, seed=0, series=500)
    return float(_slopes(_fluctuations(drawn, windows, order), windows).std(ddof=1))


def _result(
    method: str,
    x: ArrayLike | Tensor,
    d: Array,
    errors: Array,
    common: float,
    series: Array,
    low: int,
    bandwidth: int,
    level: float,
) -> LongMemory:
    if np.ndim(x) == 1:
        return LongMemory(method, np.asarray(d[0]), np.asarray(errors[0]), level, bandwidth)
    alone = errors @ errors  # the variance of the sum, were the components independent
    together = np.sqrt(max(alone, errors @ _squared_coherence(series, d, low) @ errors)) / len(errors)
    pooled = LongMemory(method, np.asarray(common), np.asarray(together), level, bandwidth)
    return LongMemory(method, d, errors, level, bandwidth, pooled)


def _squared_coherence(series: Array, d: Array, frequencies: int) -> Array:
    """(d, d), over the lowest m frequencies, of the components made white there by λ^d; less its bias of about 1/m."""
    transformed = np.fft.rfft(series - series.mean(0), axis=0)[1 : frequencies + 1]
    white = transformed * np.arange(1, frequencies + 1)[:, None] ** d
    cross = np.abs(white.conj().T @ white) ** 2
    powers = np.sqrt(np.diag(cross))
    return np.asarray((cross / np.outer(powers, powers) - 1 / frequencies) / (1 - 1 / frequencies))


def _series_and_bandwidth(x: ArrayLike | Tensor, bandwidth: int | None) -> tuple[Array, int]:
    series = as_series(x, LEAST_STEPS)
    if bandwidth is None:
        return series, _default_bandwidth(len(series))
    check_between("a bandwidth", operator.index(bandwidth), LEAST_FREQUENCIES, (len(series) - 1) // 2)
    return series, bandwidth


def _low_spectra(series: Array, m: int) -> Array:
    spectra = periodograms(series)
    if (spectra[:m] <= 1e-24 * spectra.sum(0)).any():
        raise ValueError("expected power at every frequency of the bandwidth, got a periodogram of 0")
    return spectra[:m]


def _default_bandwidth(steps: int) -> int:
    return int(steps**0.65)


def _windows(windows: Sequence[int] | None, steps: int, order: int) -> tuple[int, ...]:
    check_between("an order of the trend", operator.index(order), 0, 5)
    if windows is None:
        windows = [int(n) for n in np.geomspace(10, steps // 4, 16).round()]
    lengths = tuple(sorted({operator.index(n) for n in windows}))
    if len(lengths) < 3:
        raise ValueError(f"expected at least 3 different window lengths, got {len(lengths)}")
    for n in lengths:
        check_between("window lengths", n, order + 3, steps // 2)
    return lengths


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, got {level}")
