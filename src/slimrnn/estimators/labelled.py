"""What classifier and regressor share: a label for each sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor

from slimrnn._texts import listed
from slimrnn.data.precision import Precision
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.estimators.base import SequenceEstimator
from slimrnn.estimators.long_frames import has_missing
from slimrnn.estimators.reading import Given, read
from slimrnn.tasks.own.outputs import outputs_of
from slimrnn.tasks.own.sequences_task import SequencesTask

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(kw_only=True, eq=False, repr=False)
class LabelledEstimator(SequenceEstimator):
    """One answer for each sequence."""

    frame: int | None = None
    """steps of the data that make one step of the net"""
    label: str | None = None
    """frames with a row for each step: the column of the label, which `fit` takes if there is no y"""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a net. X: an array (N, T) or (N, T, D), a list of arrays (T,) or (T, D), or a frame of pandas or
        polars; NaN is a missing value. y: a label for each sequence or, with a frame, for each row."""
        read_as = {"sequence": self.sequence, "time": self.time, "label": self.label}
        given = read(X, **read_as, columns=self.columns, check=Precision())
        labels, learned = self._learned(targets(given, y))
        sequences = replace(given.sequences, labels=labels, parts=None)
        seed = self._begin()
        return self._train(self._checked(self._task(sequences, seed)), given, seed, learned)

    def _learned(self, y: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        """Labels as the task has them, and attributes by name that it takes to translate them back."""
        raise NotImplementedError

    def _task(self, sequences: Sequences, seed: int) -> SequencesTask:
        """Whose test part, which nobody reads here, is all."""
        raise NotImplementedError

    def _checked(self, task: SequencesTask) -> SequencesTask:
        """A task whose parts have sequences."""
        try:
            task.parts  # noqa: B018 -- found here, and kept
        except DataError:
            if self.validation_fraction is None:
                return task.changed(valid_share=0.0)
            raise ValueError(
                f"expected enough sequences to hold out validation_fraction={self.validation_fraction} of them, got "
                f"{len(task.sequences)}: with validation_fraction=0 all are for training"
            ) from None
        return task

    def _answers(self, X: Any) -> Tensor:
        """The net's output for each sequence, (N, O), in double precision."""
        sequences = replace(self._read(X).sequences, labels=None)
        assert isinstance(self.task_, SequencesTask)  # fit made it
        found = list(outputs_of(self.task_, self.model_, sequences, np.arange(len(sequences))))
        order = np.argsort(np.concatenate([indices for indices, _, _ in found]))
        return torch.cat([output for _, output, _ in found]).double().cpu()[order]

    def _true(self, X: Any, y: Any) -> NDArray[Any]:
        """A label for each sequence, to compare answers with."""
        return targets(self._read(X), y)

    def _read(self, X: Any) -> Given:
        """Sequences with the columns that `fit` has seen."""
        check_is_fitted(self)
        columns = self.columns if self.sequence is None else self._known_columns(X)
        given = read(X, sequence=self.sequence, time=self.time, label=self.label, columns=columns)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and given.steps is not None and tuple(names) != given.steps:
            raise ValueError(
                f"expected the feature names that were passed during fit, in their order ({listed(names)}), got "
                f"{listed(given.steps)}"
            )
        return self._known(given)


def targets(given: Given, y: Any) -> NDArray[Any]:
    """A label for each sequence, from y or from the column of a frame; rows of a sequence must agree."""
    y = given.labels if y is None else y
    if y is None:
        raise ValueError("expected y, a label for each sequence, got none; with a frame, label= may name its column")
    labels: NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    if has_missing(labels):
        raise ValueError("expected a label for every sequence, got missing ones (None or NaN) in y")
    count = len(given.sequences)
    if len(labels) == count:
        return labels
    if given.rows is None or len(labels) != len(given.rows):
        rows = "" if given.rows is None else f", or for each of {len(given.rows)} rows"
        raise ValueError(f"expected y to have a label for each of {count} sequences{rows}, got {len(labels)}")
    first = np.unique(given.rows, return_index=True)[1]
    differing = np.flatnonzero(labels != labels[first][given.rows])
    if len(differing):
        name = given.sequences.ids[given.rows[differing[0]]]
        raise ValueError(f"expected one label in all rows of a sequence, got several in {name!r}")
    chosen: NDArray[Any] = labels[first]
    return chosen
