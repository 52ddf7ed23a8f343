"""Mel-frequency cepstrum coefficients of speech, as KRU §4.5 uses them. numpy has the FFT, so scipy is not needed.

Frame t is the N samples (25 ms) from M t (10 ms) on of y_n = x_n − 0.97 x_(n−1), under a Hamming window w. Both times
are rounded to whole samples, and D is the least power of two from N on; at 16 kHz, N = 400, M = 160 and D = 512:

    P_k = |Σ_n w_n y_(M t + n) exp(−2πi k n / D)|² / D                k = 0 … D/2
    S_j = ln Σ_k F_jk P_k                                             j = 1 … 26
    c_i = √(2/26) Σ_j S_j cos(π i (j − ½) / 26)                       i = 1 … 12
    e   = ln Σ_k P_k
    Δ_t = Σ_(n = 1, 2) n (f_(t+n) − f_(t−n)) / (2 (1² + 2²))          f = (c, e); beyond the ends, the end repeated

F_j are triangles that rise from edge j − 1 to j and fall to j + 1; 28 edges lie at equal distances in
mel(f) = 2595 log₁₀(1 + f/700) from 0 to half the sampling rate, each moved down to a whole k. Below 2,580 Hz two
edges fall on one k, and such a rate is refused. Only whole frames count.

Shape suffixes: T frames, N samples of a frame, K frequencies, J filters, F features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import check_count

WINDOW, HOP = 25, 10  # milliseconds
FILTERS, CEPSTRA = 26, 12
FEATURES = 2 * (CEPSTRA + 1)
EMPHASIS = 0.97
REACH = 2  # frames to each side in a derivative
SMALLEST = float(np.finfo(np.float64).eps)  # the logarithm of digital silence is that of this

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Framing:
    """How samples of a rate, in hertz, are cut into frames."""

    rate: int

    def __post_init__(self) -> None:
        check_count("rate", self.rate)

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return _rounded(WINDOW * self.rate, 1000)

    @property
    def hop(self) -> int:
        """Samples from a frame to the next."""
        return _rounded(HOP * self.rate, 1000)

    @property
    def fourier(self) -> int:
        """Points of the transform of a frame."""
        return int(2 ** max(0, self.window - 1).bit_length())

    def frames_in(self, samples: int) -> int:
        """Whole frames of so many samples."""
        return 0 if samples < self.window else 1 + (samples - self.window) // self.hop


def mfcc(samples: NDArray[np.integer | np.floating], rate: int) -> Numbers:
    """Features (T, 26) of samples that were taken `rate` times a second: 12 coefficients, the log energy, and the
    derivatives of these 13."""
    framing = Framing(rate)
    if samples.ndim != 1 or len(samples) < framing.window:
        raise ValueError(
            f"expected at least {framing.window:,} samples of one channel, a frame at {rate:,} Hz, "
            f"got shape {samples.shape}"
        )
    if samples.dtype.kind not in "iuf":
        raise TypeError(f"expected samples that are real numbers, got {samples.dtype}")
    filters_JK = mel_filters(rate)
    signal = samples.astype(np.float64)
    if not np.isfinite(signal).all():
        place = int(np.flatnonzero(~np.isfinite(signal))[0])
        raise ValueError(f"expected finite samples, got {signal[place]} at place {place:,}")
    signal[1:] -= EMPHASIS * signal[:-1]
    frames_TN = np.lib.stride_tricks.sliding_window_view(signal, framing.window)[:: framing.hop]
    spectrum_TK = np.fft.rfft(frames_TN * np.hamming(framing.window), framing.fourier)
    power_TK = (spectrum_TK.real**2 + spectrum_TK.imag**2) / framing.fourier
    logs_TJ = np.log(np.maximum(power_TK @ filters_JK.T, SMALLEST))
    energy_T = np.log(np.maximum(power_TK.sum(1), SMALLEST))
    static_TF = np.column_stack([logs_TJ @ _cosines().T, energy_T])
    return np.hstack([static_TF, derivative(static_TF)])


def derivative(values_TF: Numbers) -> Numbers:
    """The slope of the straight line that fits a value and its neighbours best."""
    frames = len(values_TF)
    padded = np.pad(values_TF, ((REACH, REACH), (0, 0)), mode="edge")
    slopes = np.zeros_like(values_TF)
    for n in range(1, REACH + 1):
        slopes += n * (padded[REACH + n : REACH + n + frames] - padded[REACH - n : REACH - n + frames])
    return slopes / (2 * sum(n * n for n in range(1, REACH + 1)))


@lru_cache(maxsize=4)
def mel_filters(rate: int) -> Numbers:
    """F, (J, K)."""
    points = Framing(rate).fourier
    highest = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, highest, FILTERS + 2) / 2595) - 1)
    places = np.floor((points + 1) * edges / rate)
    if np.diff(places).min() < 1:
        raise ValueError(
            f"expected a rate at which each of {FILTERS} filters has a frequency of its own, such as 8,000 Hz, "
            f"got {rate:,} Hz"
        )
    left, middle, right = (places[first : first + FILTERS, None] for first in range(3))
    k = np.arange(points // 2 + 1)
    filters: Numbers = np.maximum(0, np.minimum((k - left) / (middle - left), (right - k) / (right - middle)))
    return filters


def _rounded(number: int, divisor: int) -> int:
    """The nearest whole quotient; halves go up."""
    return (2 * number + divisor) // (2 * divisor)


@lru_cache(maxsize=1)
def _cosines() -> Numbers:
    """Rows 1 to 12 of the orthonormal cosine transform, (CEPSTRA, J)."""
    i, j = np.arange(1, CEPSTRA + 1)[:, None], np.arange(FILTERS)
    cosines: Numbers = np.sqrt(2 / FILTERS) * np.cos(np.pi * i * (j + 0.5) / FILTERS)
    return cosines
