"""How strongly a series depends on its past: ‖Cor(h_t, h_{t+k})‖₂ and its sum (definition 1.1 of the factorized paper).

Cor(h_t, h_{t+k}) is the matrix of the correlations between each component and each component k steps later. The paper
calls a process short-range dependent if the sum of the norms over all lags is finite; see `convergence` for a verdict.
"""

from __future__ import annotations

import operator
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from slimrnn.analysis.time_series.processes import Seed
from slimrnn.analysis.time_series.series import Array, as_series, check_between

LEAST_STEPS = 16
FEW_LAGS = 128
SHUFFLES = 8
SHUFFLED_LAGS = 32
THREADS = 4  # at most, each with correlations of its own in memory


@dataclass(frozen=True, eq=False)
class AutocorrelationNorms:
    """Norms for the lags k = 0 … K, and their partial sums, with bands that cover each true value with `level`.

    At lag 0 the norm is that of the correlations between the components, 1 for one component and at most d."""

    lags: Array
    norms: Array
    noise: Array  #: the mean norm of the same values in random order: the norm is at least 0, so it never averages to 0
    norms_low: Array  #: the bands are NaN without resamples
    norms_high: Array
    sums_low: Array
    sums_high: Array
    level: float
    block: int

    @property
    def sums(self) -> Array:
        """Σ_{j ≤ k} ‖Cor(h_t, h_{t+j})‖₂; it grows by the noise of each term even if the true sum does not."""
        return np.asarray(np.cumsum(self.norms))

    @property
    def sums_above_noise(self) -> Array:
        """The same of the norms less the noise: level, on average, for white noise."""
        return np.asarray(np.cumsum(self.norms - self.noise))


def autocorrelation_norms(
    x: ArrayLike | Tensor,
    lags: int | None = None,
    *,
    resamples: int = 200,
    block: int | None = None,
    level: float = 0.95,
    seed: Seed = 0,
) -> AutocorrelationNorms:
    """The norms of the autocorrelations of a stationary series x (T,) or (T, d) for the lags up to `lags`.

    By default `lags` is 256, or T/4 if that is less. Covariances are sums over the pairs that exist, divided by T.

    The bands come from a bootstrap of circular moving blocks, by default of 4 T^(1/3) steps, of the pairs
    (x_t, x_{t+k}), t being resampled and the pairs left whole (Künsch 1989; Politis & Romano 1992). Half their width is
    the `level` quantile of ‖Ĉ* − Ĉ‖₂, or of its partial sums: as |‖C‖ − ‖Ĉ‖| ≤ ‖Ĉ − C‖, they hold at norms near 0,
    too, and are wide rather than narrow for d > 1. No bootstrap of blocks is right under long memory, where the
    bands are too narrow. `resamples=0` leaves them out: each costs as much as the norms themselves."""
    series = as_series(x, LEAST_STEPS)
    steps = len(series)
    lags = min(256, steps // 4) if lags is None else operator.index(lags)
    check_between("lags", lags, 1, steps - 1)
    block = min(steps, int(np.ceil(4 * steps ** (1 / 3)))) if block is None else operator.index(block)
    check_between("a block", block, 1, steps)
    if operator.index(resamples) < 0 or 0 < resamples < 20:
        raise ValueError(f"expected 0 resamples or at least 20, got {resamples}")
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, got {level}")
    random = np.random.default_rng(seed)
    correlations = _correlations(series, np.ones(steps), lags)
    norms = _norms(correlations)
    noise = _noise(series, lags, random)
    drawn = [random.integers(steps, size=-(-steps // block)) for _ in range(resamples)]

    def error(starts: NDArray[np.int64]) -> Array:
        return _norms(_correlations(series, _weights(steps, block, starts), lags) - correlations)

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:  # numpy lets others run meanwhile
        errors = list(pool.map(error, drawn))
    around = _band(norms, errors, level)
    around_sums = _band(np.cumsum(norms), np.cumsum(errors, axis=-1), level)
    return AutocorrelationNorms(np.arange(lags + 1.0), norms, noise, *around, *around_sums, level, block)


def _correlations(series: Array, weights: Array, lags: int) -> Array:
    """(lags + 1, d, d): entry i, j at k is the weighted correlation of component i with component j, k steps later."""
    centred = series - np.average(series, axis=0, weights=weights)
    squares = weights @ centred**2
    if not np.all(squares > 0):
        raise ValueError(
            "expected a series that varies throughout, got one that stands still for so long that a resample of blocks "
            "has no variance: leave such steps out, take longer blocks, or resamples=0"
        )
    centred = centred / np.sqrt(squares)
    earlier = weights[:, None] * centred
    steps, width = series.shape
    if width > 1 and lags <= FEW_LAGS:  # matrix products are quicker
        return np.stack([earlier[: steps - k].T @ centred[k:] for k in range(lags + 1)])
    size = 1 << (steps + lags - 1).bit_length()  # holds the series and `lags` zeros, so that nothing wraps around
    before, after = (np.fft.rfft(side, n=size, axis=0) for side in (earlier, centred))
    found = np.empty((lags + 1, width, width))
    for i in range(width):  # one row at a time, or all frequencies of all pairs would be in memory
        found[:, i] = np.fft.irfft(before[:, i : i + 1].conj() * after, n=size, axis=0)[: lags + 1]
    return found


def _norms(matrices: Array) -> Array:
    if matrices.shape[-1] == 1:
        return np.abs(matrices[:, 0, 0])
    largest = np.linalg.eigvalsh(matrices.swapaxes(1, 2) @ matrices)[:, -1]  # much quicker than singular values
    return np.asarray(np.sqrt(largest.clip(0)))


def _noise(series: Array, lags: int, random: np.random.Generator) -> Array:
    """The mean of a few shuffled series over lags, among which the norms differ by the share of pairs only."""
    used, steps = min(lags, SHUFFLED_LAGS), len(series)
    shuffled = [_norms(_correlations(random.permutation(series), np.ones(steps), used))[1:] for _ in range(SHUFFLES)]
    pairs = np.sqrt(1 - np.arange(lags + 1) / steps)
    noise = np.mean(np.array(shuffled) / pairs[1 : used + 1]) * pairs
    noise[0] = 0  # the correlations at lag 0 are not noise
    return np.asarray(noise)


def _weights(steps: int, block: int, starts: NDArray[np.int64]) -> Array:
    """How often each step is drawn, 1 on average, by blocks that go on at the start when they meet the end."""
    drawn = (starts[:, None] + np.arange(block)).ravel()[:steps] % steps
    return np.bincount(drawn, minlength=steps).astype(np.float64)


def _band(values: Array, errors: list[Array] | Array, level: float) -> tuple[Array, Array]:
    width = np.quantile(errors, level, axis=0) if len(errors) else np.full_like(values, np.nan)
    return (values - width).clip(0), values + width
