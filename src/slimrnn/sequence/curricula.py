"""Curricula of scheduled sampling (Bengio et al. 2015, §2.4): the forcing probability as a function of the update."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from slimrnn._checks import check_number, check_probability

Curriculum = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """ε = p."""

    probability: float = 1.0

    def __post_init__(self) -> None:
        check_probability("probability", self.probability)

    def __call__(self, update: int) -> float:
        return self.probability


@dataclass(frozen=True)
class LinearDecay:
    """ε = max(least, start − slope · update)."""

    slope: float
    start: float = 1.0
    least: float = 0.0

    def __post_init__(self) -> None:
        check_probability("start", self.start)
        check_probability("least", self.least)
        check_number("slope", self.slope)
        if self.slope < 0:
            raise ValueError(f"expected slope to be at least 0, got {self.slope}")

    def __call__(self, update: int) -> float:
        return max(self.least, self.start - self.slope * update)


@dataclass(frozen=True)
class ExponentialDecay:
    """ε = k ** update with k < 1."""

    k: float

    def __post_init__(self) -> None:
        check_number("k", self.k)
        if not 0 < self.k < 1:
            raise ValueError(f"expected k between 0 and 1, got {self.k}")

    def __call__(self, update: int) -> float:
        return float(self.k**update)


@dataclass(frozen=True)
class InverseSigmoidDecay:
    """ε = k / (k + exp(update / k)) with k ≥ 1: first slow, then fast, then slow; one half at update k ln k."""

    k: float

    def __post_init__(self) -> None:
        check_number("k", self.k)
        if self.k < 1:
            raise ValueError(f"expected k of at least 1, got {self.k}")

    @staticmethod
    def half_at(update: float) -> InverseSigmoidDecay:
        """The decay that is at one half after so many updates."""
        check_number("update", update)
        k = max(1.0, float(update))
        for _ in range(60):  # k ln k = update by Newton's steps; ln k + 1 is the slope
            k = max(1.0, k - (k * math.log(k) - update) / (math.log(k) + 1))
        return InverseSigmoidDecay(k)

    def __call__(self, update: int) -> float:
        exponent = update / self.k - math.log(self.k)  # the same, where exp(update / k) would be too large
        return math.exp(-exponent) / (1 + math.exp(-exponent)) if exponent > 0 else 1 / (1 + math.exp(exponent))
