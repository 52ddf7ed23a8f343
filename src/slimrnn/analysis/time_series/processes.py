"""Gaussian processes whose memory is known, to try estimators on.

All are drawn exactly (no warm-up, no truncated moving average) by circulant embedding (Davies & Harte 1987): the
autocovariances of T + 1 lags, wrapped into a circle of 2T, have as Fourier transform the variances of independent
frequencies. None is negative for fractional Gaussian noise (Craigmile 2003), for autocovariances that decrease and
are convex, as ARFIMA's with d > 0 (Dietrich & Newsam 1997), for negative ones at all lags but 0, as ARFIMA's with d < 0
(Craigmile 2003), and for AR(1), where the sum can be written out.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from slimrnn.analysis.time_series.series import Array

Seed = int | np.random.Generator


def white_noise(steps: int, seed: Seed, series: int | None = None) -> Array:
    """Independent standard normal numbers (T,), or (T, series)."""
    return _generator(seed).standard_normal(_shape(steps, series))


def ar1(phi: float, steps: int, seed: Seed, series: int | None = None) -> Array:
    """x_t = φ x_{t−1} + ε_t with |φ| < 1 and standard normal ε, stationary from the first step."""
    return gaussian_process(ar1_autocovariances(phi, _steps(steps)), seed, series)


def fractional_gaussian_noise(hurst: float, steps: int, seed: Seed, series: int | None = None) -> Array:
    """The increments of fractional Brownian motion, of variance 1, with 0 < H < 1; H = ½ is white noise."""
    return gaussian_process(fgn_autocovariances(hurst, _steps(steps)), seed, series)


def arfima(d: float, steps: int, seed: Seed, series: int | None = None) -> Array:
    """ARFIMA(0, d, 0): (1 − L)^d x_t = ε_t with −½ < d < ½ and standard normal ε; d = 0 is white noise."""
    return gaussian_process(arfima_autocovariances(d, _steps(steps)), seed, series)


def ar1_autocovariances(phi: float, lags: int) -> Array:
    """γ(k) = φᵏ / (1 − φ²) for k = 0 … lags."""
    if not -1 < phi < 1:
        raise ValueError(f"expected φ between −1 and 1, got {phi}")
    return np.asarray(phi ** np.arange(_lags(lags) + 1.0) / (1 - phi**2))


def fgn_autocovariances(hurst: float, lags: int) -> Array:
    """γ(k) = ½ (|k + 1|^2H − 2 |k|^2H + |k − 1|^2H) for k = 0 … lags."""
    if not 0 < hurst < 1:
        raise ValueError(f"expected H between 0 and 1, got {hurst}")
    k = np.arange(2.0, _lags(lags) + 1)
    # the same, without the difference of large numbers that the definition is for large k
    far = k ** (2 * hurst) / 2 * (np.expm1(2 * hurst * np.log1p(1 / k)) + np.expm1(2 * hurst * np.log1p(-1 / k)))
    return np.concatenate([[1.0, 2 ** (2 * hurst - 1) - 1], far])[: lags + 1]


def arfima_autocovariances(d: float, lags: int) -> Array:
    """γ(0) = Γ(1 − 2d) / Γ(1 − d)² and γ(k) = γ(k − 1) (k − 1 + d) / (k − d) for k = 0 … lags (Hosking 1981)."""
    if not -0.5 < d < 0.5:
        raise ValueError(f"expected d between −0.5 and 0.5, got {d}")
    k = np.arange(1.0, _lags(lags) + 1)
    ratios = np.concatenate([[1.0], np.cumprod((k - 1 + d) / (k - d))])
    return np.asarray(math.gamma(1 - 2 * d) / math.gamma(1 - d) ** 2 * ratios)


def gaussian_process(autocovariances: Array, seed: Seed, series: int | None = None) -> Array:
    """T steps, or (T, series), of a stationary Gaussian process with mean 0 and the autocovariances of lags 0 … T."""
    given = np.asarray(autocovariances, dtype=np.float64)
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all():
        raise ValueError(f"expected finite autocovariances of shape (T + 1,), got shape {given.shape}")
    steps = len(given) - 1
    shape = _shape(steps, series)
    variances = np.fft.rfft(np.concatenate([given, given[-2:0:-1]])).real  # (T + 1,)
    if variances.min() < -1e-9 * variances.max():
        raise ValueError(f"expected autocovariances whose circulant is positive, got an eigenvalue {variances.min()}")
    columns = 1 if series is None else series
    real, imaginary = _generator(seed).standard_normal((2, steps + 1, columns))
    real[[0, -1]] *= 2**0.5  # the two frequencies that are real
    imaginary[[0, -1]] = 0
    size = np.sqrt(variances.clip(0) * steps)[:, None]
    return np.asarray(np.fft.irfft(size * (real + 1j * imaginary), n=2 * steps, axis=0)[:steps].reshape(shape))


def _shape(steps: int, series: int | None) -> tuple[int, ...]:
    if series is not None and operator.index(series) < 1:
        raise ValueError(f"expected at least 1 series, got {series}")
    return (_steps(steps),) if series is None else (_steps(steps), series)


def _steps(steps: int) -> int:
    if operator.index(steps) < 1:
        raise ValueError(f"expected at least 1 step, got {steps}")
    return steps


def _lags(lags: int) -> int:
    if operator.index(lags) < 0:
        raise ValueError(f"expected lags of at least 0, got {lags}")
    return lags


def _generator(seed: Seed) -> np.random.Generator:
    return np.random.default_rng(seed)
