"""SequenceRegressor: a number for each sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from slimrnn.data.sequences import Sequences
from slimrnn.estimators.labelled import LabelledEstimator
from slimrnn.estimators.reading import LARGEST
from slimrnn.tasks.own.regress import RegressTask


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceRegressor(RegressorMixin, LabelledEstimator):
    """Predict a number for each sequence: `SequenceRegressor().fit(X, y).predict(X)`, on the task `regress` of
    `slimrnn train`."""

    def _learned(self, y: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected numbers in y, got others: {error}") from None
        if not np.isfinite(numbers).all():
            raise ValueError(f"expected finite numbers in y, got {numbers[~np.isfinite(numbers)][0]}")
        if (large := np.abs(numbers) > LARGEST).any():
            raise ValueError(
                f"expected numbers up to {LARGEST:.2g} in size in y, got {numbers[large][0]:.3g}: rescale y"
            )
        return numbers, {}

    def _task(self, sequences: Sequences, seed: int) -> RegressTask:
        return RegressTask.of(sequences, sequences, valid_share=self._held_out, split_seed=seed)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """A number for each sequence, (N)."""
        output = self._answers(X)[:, 0].numpy()
        assert isinstance(self.task_, RegressTask)  # fit made it
        mean, scale = self.task_.target_scale
        answers: NDArray[np.float64] = output * scale + mean
        return answers

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R², the share of the variance of y that is explained."""
        answers = self.predict(X)
        return float(r2_score(self._true(X, y), answers, sample_weight=sample_weight))
