"""How far back gradients reach: ‖∂s_T/∂s_t‖ and ‖∂loss_T/∂x_t‖ against the lag T − t.

The lecture ("The Challenge of Long-Term Dependencies") and the factorized paper (Prop. 1.1) say that these norms fall
exponentially in most nets; here they are measured, by vector-Jacobian products only. The products are scaled back on
the way, so that the result is right far below the smallest number: norms are given as natural logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import check_choice, check_number

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reach:
    """Norms of a Jacobian against the lag, for every sequence of the batch.

    What depends on a norm takes `norm="frobenius"` or "spectral" (the largest singular value). Over several sequences
    it is that of the root mean square of their norms."""

    layer: str  #: the LayerView's name, or the kind of the layers
    of: str  #: "∂h_T/∂h_t" and the like
    lags: NDArray[np.int64]  #: (K): T − t
    log_frobenius: Array  #: (K, B): natural logarithms; −inf for 0, NaN beyond a sequence's first step
    log_spectral: Array | None  #: the same; None for estimates
    probes: int | None  #: random vectors of an estimate, None where exact
    relative_error: Array | None  #: (K, B): standard error of an estimate's square, divided by the square

    def curve(self, norm: str = "frobenius") -> Array:
        """ln of the root mean square over the sequences, (K)."""
        return _root_mean_square(self._logs(norm))

    def norms(self, norm: str = "frobenius") -> Array:
        """The curve as numbers, which far back may be 0."""
        result: Array = np.exp(self.curve(norm))
        return result

    def memory_length(self, threshold: float = 0.01, norm: str = "frobenius") -> float:
        """The effective memory: the lag at which the curve falls for the last time below `threshold` times its largest
        value. Between two lags the logarithm is taken as linear, so that ρ^lag gives ln threshold / ln ρ exactly.
        Infinite where the curve is not below it at the largest lag: the memory is longer than what was measured."""
        check_number("threshold", threshold)
        if not 0 < threshold < 1:
            raise ValueError(f"expected a threshold between 0 and 1, got {threshold}")
        curve = self.curve(norm)
        if np.all(curve == -np.inf):
            return 0.0
        level = float(np.max(curve)) + math.log(threshold)
        last = int(np.flatnonzero(curve >= level)[-1])
        if last == len(curve) - 1:
            return math.inf
        above, below = float(curve[last]), float(curve[last + 1])
        part = 0.0 if below == -math.inf else (above - level) / (above - below)
        return float(self.lags[last]) + part * float(self.lags[last + 1] - self.lags[last])

    def half_life(self, norm: str = "frobenius") -> float:
        """The memory length at one half."""
        return self.memory_length(0.5, norm)

    def per_step(self, norm: str = "frobenius") -> float:
        """By which factor the curve changes in a step, in the mean from the first lag to the last where it is not 0;
        its logarithm is the largest Lyapunov exponent over this time."""
        curve = self.curve(norm)
        known = np.flatnonzero(curve > -np.inf)
        if len(known) < 2:
            return 0.0
        first, last = known[[0, -1]]
        return math.exp((curve[last] - curve[first]) / (self.lags[last] - self.lags[first]))

    def summary(self, threshold: float = 0.01) -> str:
        """One line of text."""
        factor, longest = self.per_step(), int(self.lags[-1])
        half, memory = self.half_life(), self.memory_length(threshold)
        return (
            f"{self.layer} {self.of}: {factor:.4g} per step, half-life {_steps(half, longest)}, "
            f"above {threshold:g} of its peak for {_steps(memory, longest)}"
        )

    def _logs(self, norm: str) -> Array:
        check_choice("norm", norm, ["frobenius", "spectral"])
        if norm == "frobenius":
            return self.log_frobenius
        if self.log_spectral is None:
            raise ValueError("expected norm='frobenius', which random probes estimate, got 'spectral'")
        return self.log_spectral


def _root_mean_square(logs_KB: Array) -> Array:
    with np.errstate(divide="ignore"):
        known = ~np.isnan(logs_KB)
        largest = np.max(np.where(known, logs_KB, -np.inf), axis=1)
        shift = np.where(np.isfinite(largest), largest, 0.0)
        squares = np.where(known, np.exp(2 * (np.where(known, logs_KB, -np.inf) - shift[:, None])), 0.0)
        result: Array = shift + 0.5 * np.log(squares.sum(1) / known.sum(1))
    return result


def _steps(lag: float, longest: int) -> str:
    return f"more than {longest} steps" if lag == math.inf else f"{lag:.4g} steps"
