"""Estimators in scikit-learn's manner: sequences in, `fit`, `predict`, `score`, `save` and `load`."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ModuleNotFoundError(
        'expected the package scikit-learn for slimrnn.estimators, got none: pip install "slimrnn[sklearn]"',
        name="sklearn",
    )

from slimrnn.estimators.classifier import SequenceClassifier
from slimrnn.estimators.forecaster import Forecaster
from slimrnn.estimators.regressor import SequenceRegressor

__all__ = ["Forecaster", "SequenceClassifier", "SequenceRegressor"]
