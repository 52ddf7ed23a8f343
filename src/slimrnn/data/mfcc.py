"""Mel-frequency cepstrum coefficients of speech, as KRU §4.5 uses them.

Frame t is the N = 400 samples (25 ms) from 160 t (10 ms) on of y_n = x_n − 0.97 x_(n−1), under a Hamming window w:

    P_k = |Σ_n w_n y_(160 t + n) exp(−2πi k n / 512)|² / 512          k = 0 … 256
    S_j = ln Σ_k F_jk P_k                                             j = 1 … 26
    c_i = √(2/26) Σ_j S_j cos(π i (j − ½) / 26)                       i = 1 … 12
    e   = ln Σ_k P_k
    Δ_t = Σ_(n = 1, 2) n (f_(t+n) − f_(t−n)) / (2 (1² + 2²))          f = (c, e); beyond the ends, the end repeated

F_j are triangles that rise from edge j − 1 to j and fall to j + 1; 28 edges lie at equal distances in
mel(f) = 2595 log₁₀(1 + f/700) from 0 to 8,000 Hz, each moved down to a whole k. Only whole frames count.

Shape suffixes: T frames, N samples of a frame, K frequencies, J filters, F features.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
WINDOW, HOP = 400, 160  # samples: 25 and 10 ms
FOURIER = 512
FILTERS, CEPSTRA = 26, 12
FEATURES = 2 * (CEPSTRA + 1)
EMPHASIS = 0.97
REACH = 2  # frames to each side in a derivative
SMALLEST = float(np.finfo(np.float64).eps)  # the logarithm of digital silence is that of this

Numbers = NDArray[np.float64]


def frames_in(samples: int) -> int:
    """Whole frames of so many samples."""
    return 0 if samples < WINDOW else 1 + (samples - WINDOW) // HOP


def mfcc(samples: NDArray[np.integer | np.floating]) -> Numbers:
    """Features (T, 26): 12 coefficients, the log energy, and the derivatives of these 13."""
    if samples.ndim != 1 or len(samples) < WINDOW:
        raise ValueError(f"expected at least {WINDOW} samples of one channel, got shape {samples.shape}")
    signal = samples.astype(np.float64)
    signal[1:] -= EMPHASIS * signal[:-1]
    frames_TN = np.lib.stride_tricks.sliding_window_view(signal, WINDOW)[::HOP]
    spectrum_TK = np.fft.rfft(frames_TN * np.hamming(WINDOW), FOURIER)
    power_TK = (spectrum_TK.real**2 + spectrum_TK.imag**2) / FOURIER
    logs_TJ = np.log(np.maximum(power_TK @ mel_filters().T, SMALLEST))
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


@lru_cache(maxsize=1)
def mel_filters() -> Numbers:
    """F, (J, K)."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, highest, FILTERS + 2) / 2595) - 1)
    left, middle, right = (np.floor((FOURIER + 1) * edges[first : first + FILTERS, None] / RATE) for first in range(3))
    k = np.arange(FOURIER // 2 + 1)
    filters: Numbers = np.maximum(0, np.minimum((k - left) / (middle - left), (right - k) / (right - middle)))
    return filters


@lru_cache(maxsize=1)
def _cosines() -> Numbers:
    """Rows 1 to 12 of the orthonormal cosine transform, (CEPSTRA, J)."""
    i, j = np.arange(1, CEPSTRA + 1)[:, None], np.arange(FILTERS)
    cosines: Numbers = np.sqrt(2 / FILTERS) * np.cos(np.pi * i * (j + 0.5) / FILTERS)
    return cosines
