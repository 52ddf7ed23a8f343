"""SequenceClassifier: a class for each sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from slimrnn._texts import shown
from slimrnn.data.sequences import Sequences
from slimrnn.estimators.files import array_of, array_record
from slimrnn.estimators.labelled import LabelledEstimator
from slimrnn.tasks.own.classify import ClassifyTask


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceClassifier(ClassifierMixin, LabelledEstimator):
    """Classify sequences: `SequenceClassifier().fit(X, y).predict(X)`, on the task `classify` of `slimrnn train`."""

    class_weight: str | None = None
    """ "balanced": rare classes count more in the loss, so that all classes count alike"""

    classes_: NDArray[Any] = field(init=False)
    """the classes in order, as columns of predict_proba"""

    def _learned(self, y: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes in y, got one class: {shown(classes[0].item())}")
        return numbers.reshape(-1).astype(str), {"classes_": classes}  # by number: classes may be of any type

    def _task(self, sequences: Sequences, seed: int) -> ClassifyTask:
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f"expected class_weight to be None or 'balanced', got {self.class_weight!r}")
        return ClassifyTask.of(
            sequences,
            sequences,
            valid_share=self._held_out,
            split_seed=seed,
            class_weights=self.class_weight == "balanced",
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes for each sequence, (N, C)."""
        chances: NDArray[np.float64] = self._answers(X).softmax(-1).numpy()
        return chances

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each sequence, (N)."""
        best = self.predict_proba(X).argmax(-1)
        answers: NDArray[Any] = self.classes_[best]
        return answers

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of sequences whose class is predicted."""
        answers = self.predict(X)
        return float(accuracy_score(self._true(X, y), answers, sample_weight=sample_weight))

    def _fitted(self) -> dict[str, Any]:
        return super()._fitted() | {"classes_": array_record(self.classes_)}

    def _remember(self, fitted: Mapping[str, Any]) -> None:
        super()._remember({**fitted, "classes_": array_of(fitted["classes_"])})
