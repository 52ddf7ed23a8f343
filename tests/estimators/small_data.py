"""Sequences whose class and number are easy to learn, and estimators that learn them quickly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn.estimators import SequenceClassifier, SequenceRegressor

NAMES = np.array(["falling", "flat", "rising"])


def ragged(count: int = 48, seed: int = 0) -> tuple[list[NDArray[np.float64]], NDArray[Any], NDArray[np.float64]]:
    """Slopes of two columns with noise, in 5 to 8 steps; the name of each slope, and the slope."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(count) % 3
    slopes = kinds - 1 + 0.1 * rng.normal(size=count)
    steps = rng.integers(5, 9, count)
    X = [
        np.arange(t)[:, None] * s * [1.0, -2.0] + 0.1 * rng.normal(size=(t, 2))
        for t, s in zip(steps, slopes, strict=True)
    ]
    return X, NAMES[kinds], slopes


def classifier(**parameters: Any) -> SequenceClassifier:
    return SequenceClassifier(**{"hidden": 8, "updates": 40, "lr": 0.03, "random_state": 0, **parameters})


def regressor(**parameters: Any) -> SequenceRegressor:
    return SequenceRegressor(**{"hidden": 8, "updates": 60, "lr": 0.03, "random_state": 0, **parameters})
