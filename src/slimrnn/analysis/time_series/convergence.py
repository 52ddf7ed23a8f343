"""Does Σ_k ‖Cor(h_t, h_{t+k})‖₂ converge (definition 1.1 of the factorized paper)? A verdict from one series.

A partial sum of estimated norms always grows, by the noise in each term, so the verdict does not come from the sum. It
compares two explanations of the spectrum, both by Whittle's likelihood with the criterion of Schwarz (BIC):

- short: ARMA(p, q), q ≤ 2, whose correlations are sums of p exponentials in the lag. Their sum converges.
- long: ARFIMA(p, d, q), q ≤ 1, with d > 0, whose correlations fall as k^(2d − 1). Their sum diverges.

Given d and the moving average, the best AR(p) of every order comes from the Levinson recursion on the autocovariances
of the filtered series, so both families are searched on a grid of filters. Beran, Bhansali & Ocker (1998) choose
orders so.

Shape suffixes: F frequencies, S series, M filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from slimrnn.analysis.time_series.series import Array, as_series

LEAST_STEPS = 256
EVIDENCE = 2.0  # a difference of BIC that counts as positive evidence (Kass & Raftery 1995)
RESOLVED = 20  # a decay is seen if the series is that many time constants long
FLOOR = 1e-9  # white noise added to a spectrum, or that of a sinusoid could not be modelled
LINE_LEVEL = 0.0001  # of the test for spectral lines, over all frequencies and series

Filter = tuple[float, tuple[float, ...]]  # d, and the roots θ of the moving average Π(1 − θL)

_FINE = (*(i / 20 for i in range(-19, 20) if i), 0.97, 0.985, 0.9925)
_COARSE = (0.3, 0.5, 0.7, 0.85, 0.93, 0.965, 0.985)
SHORT: tuple[Filter, ...] = (
    (0.0, ()),
    *((0.0, (root,)) for root in _FINE),
    *((0.0, roots) for roots in combinations_with_replacement(_COARSE, 2)),
)
_WITH_D: tuple[tuple[float, ...], ...] = ((), (-0.8,), (-0.5,), (0.3,), (0.5,), (0.7,), (0.85,), (0.95,))
LONG: tuple[Filter, ...] = tuple((i / 40, roots) for i in range(1, 41) for roots in _WITH_D)


@dataclass(frozen=True, eq=False)
class Convergence:
    """The verdict and what it rests on; `summary()` says it in words."""

    verdict: Literal["short", "long", "undecided"]
    evidence: float  #: BIC of long memory minus BIC of short memory: positive speaks for short
    d: float  #: of the best fit with long memory to the series that speaks most for it
    time_constant: float  #: the slowest exponential of the best fits with short memory, in steps
    lines: int  #: spectral lines: oscillations that do not decay at all
    steps: int

    def summary(self) -> str:
        if self.verdict == "short":
            return f"short: exponentials fit best, and the slowest falls by e in {self.time_constant:.3g} steps"
        if self.lines:
            return "long: an oscillation that does not decay"
        if self.verdict == "long" and self.evidence < -EVIDENCE:
            return f"long: a power law fits better than exponentials, with d about {self.d:.2f}"
        if self.verdict == "long":
            slow = f"long: the slowest exponential falls by e in {self.time_constant:.3g} steps"
            return f"{slow}, too slowly to be seen in {self.steps}"
        return "undecided: exponentials and a power law fit about as well"


def convergence(x: ArrayLike | Tensor) -> Convergence:
    """Whether the norms of the autocorrelations of x (T,) or (T, d) have a finite sum, as far as T steps can tell.

    For d > 1 the modes of a first-order autoregression of the principal components (at most T/20) are looked at, each
    turned back by its own frequency: under a unitary matrix the state never forgets, and yet each component may look
    like noise. The evidence of all modes is the mean of their Bayes factors e^(−ΔBIC/2).

    - "long" if the evidence is below −2, or a spectral line stands out, or the slowest exponential has a time constant
      of more than T/20 steps: then no decay is seen within the series.
    - "short" if the evidence is above 2, and none of these.
    - "undecided" otherwise.

    Trends and shifts of the level look like long memory, so give a trajectory after its warm-up."""
    series = as_series(x, LEAST_STEPS)
    series = (series - series.mean(0)) / series.std(0)
    whole, places = _modes(series)
    whole = whole + FLOOR * whole.mean(0)
    spectra = _one_sided(whole[(np.arange(len(whole))[:, None] + places) % len(whole), np.arange(len(places))])
    short, _, time_constants = _best(spectra, len(series), SHORT)
    long, d, _ = _best(spectra, len(series), LONG)
    differences = long - short
    lowest = differences.min()
    evidence = float(lowest - 2 * np.log(np.exp((lowest - differences) / 2).mean()))
    lines = _lines(whole)
    slowest = float(time_constants.max())
    verdict: Literal["short", "long", "undecided"] = "undecided"
    if evidence < -EVIDENCE or lines or slowest > len(series) / RESOLVED:
        verdict = "long"
    elif evidence > EVIDENCE:
        verdict = "short"
    return Convergence(verdict, evidence, float(d[differences.argmin()]), slowest, lines, len(series))


def _modes(series: Array) -> tuple[Array, NDArray[np.intp]]:
    """The spectra (T, S) of the modes of y_{t+1} = A y_t + ε, and the places of their frequencies, arg(eigenvalue).

    y are the principal components, made white; of two conjugate modes one is taken. A single component is its mode."""
    if series.shape[1] == 1:
        return np.abs(np.fft.fft(series, axis=0)) ** 2 / len(series), np.zeros(1, dtype=np.intp)
    scores, sizes, _ = np.linalg.svd(series, full_matrices=False)
    kept = min(int((sizes > 1e-6 * sizes[0]).sum()), len(series) // RESOLVED)
    y = scores[:, :kept] * len(series) ** 0.5
    values, left = np.linalg.eig(y[:-1].T @ y[1:] / len(series))  # Aᵀ, whose eigenvectors are the left ones of A
    one_of_two = values.imag >= 0
    modes = np.abs(np.fft.fft(y @ left[:, one_of_two], axis=0)) ** 2
    places = (np.angle(values[one_of_two]) * len(series) / (2 * np.pi)).round().astype(np.intp)
    return np.asarray(modes / modes.mean(0)), places


def _one_sided(spectra: Array) -> Array:
    """The mean of the frequencies j and −j, for j = 1 … ⌊T/2⌋."""
    half = len(spectra) // 2
    return np.asarray((spectra[1 : half + 1] + spectra[::-1][:half]) / 2)


def _lines(spectra: Array, neighbours: int = 12, gap: int = 3) -> int:
    """How many ordinates are too high for a spectrum that is smooth over a few frequencies.

    Divided by the mean of n others, an ordinate exceeds x with probability (1 + x/n)^−n. Frequencies within reach of 0,
    where a power law has its peak, are left out."""
    offsets = [sign * (gap + i) for i in range(neighbours) for sign in (-1, 1)]
    around = np.mean([np.roll(spectra, offset, axis=0) for offset in offsets], axis=0)
    n, reach = len(offsets), gap + neighbours
    limit = n * ((LINE_LEVEL / spectra.size) ** (-1 / n) - 1)
    return int((spectra[reach:-reach] > limit * around[reach:-reach]).sum())


def _best(spectra_FS: Array, steps: int, filters: tuple[Filter, ...]) -> tuple[Array, Array, Array]:
    """For each series the lowest BIC, its d, and the time constant of its autoregression."""
    frequencies = 2 * np.pi * np.arange(1, len(spectra_FS) + 1) / steps
    weights = np.where(frequencies < np.pi * (1 - 1e-9), 2.0, 1.0) / steps  # of j and −j, which are one at π
    order = int(10 * np.log10(steps))
    waves = np.cos(np.outer(np.arange(order + 1), frequencies)) * weights
    gains = np.stack([_gain(one, frequencies) for one in filters])
    covariances = np.stack([(waves * gain) @ spectra_FS for gain in gains])  # (M, order + 1, S)
    extra = np.array([_log_sum(one, steps) + (len(one[1]) + (one[0] > 0)) * np.log(steps) for one in filters])
    criteria = _levinson(covariances, steps)[0] + extra[:, None]  # (order + 1, M, S)
    series = range(spectra_FS.shape[1])
    places = [np.unravel_index(criteria[:, :, s].argmin(), criteria.shape[:2]) for s in series]
    d = np.array([filters[m][0] for _, m in places])
    times = [_time_constant(covariances[m : m + 1, : p + 1, s : s + 1], steps) for s, (p, m) in enumerate(places)]
    return criteria.min((0, 1)), d, np.array(times)


def _gain(one: Filter, frequencies: Array) -> Array:
    """What undoes the filter: |1 − e^iλ|^2d / Π|1 − θe^iλ|²."""
    d, roots = one
    gain = (2 * np.sin(frequencies / 2)) ** (2 * d)
    for root in roots:
        gain = gain / (1 - 2 * root * np.cos(frequencies) + root**2)
    return np.asarray(gain)


def _log_sum(one: Filter, steps: int) -> float:
    """Σ_j log f_j of the filter over all Fourier frequencies but 0; with 0 it would be 0, or about that."""
    d, roots = one
    return float(-2 * d * np.log(steps) - 2 * sum(np.log(1 - root) for root in roots))


def _levinson(covariances: Array, steps: int) -> tuple[Array, Array]:
    """−2 log likelihood + p log T for p = 0 … P (P + 1, M, S), and the last order's polynomial (M, P + 1, S)."""
    variance = covariances[:, 0].copy()
    polynomial = np.zeros_like(covariances)
    polynomial[:, 0] = 1
    criteria = [(steps - 1) * np.log(variance)]
    for p in range(1, covariances.shape[1]):
        reflection = -(polynomial[:, :p] * covariances[:, p:0:-1]).sum(1) / variance
        polynomial[:, 1 : p + 1] += reflection[:, None] * polynomial[:, :p][:, ::-1]
        variance = variance * (1 - reflection**2)
        at_0 = 2 * np.log(np.abs(polynomial[:, : p + 1].sum(1)))  # frequency 0 is left out, as in _log_sum
        criteria.append((steps - 1) * np.log(variance) + at_0 + p * np.log(steps))
    return np.array(criteria), polynomial


def _time_constant(covariances: Array, steps: int) -> float:
    """Of the slowest root of one autoregression; 0 without roots."""
    polynomial = _levinson(covariances, steps)[1][0, :, 0]
    largest = np.abs(np.roots(polynomial)).max(initial=0.0)
    return float(-1 / np.log(largest)) if largest > 0 else 0.0
