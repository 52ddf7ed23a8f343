"""Forecaster: the next values of series, with quantiles.

Shape suffixes: N series, H steps ahead, K columns to forecast, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimrnn.data.precision import Precision
from slimrnn.data.sequences import Sequences
from slimrnn.estimators.base import SequenceEstimator
from slimrnn.estimators.files import array_of, array_record
from slimrnn.estimators.reading import Given, read_series
from slimrnn.tasks.own.forecast import ForecastTask
from slimrnn.tasks.own.naive_forecasts import naive
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.windows import cuts
from slimrnn.training.config import Config
from slimrnn.training.task import Indices

if TYPE_CHECKING:
    from typing_extensions import Self

AT_A_TIME = 256  # series
TINY = 1e-12


@dataclass(frozen=True)
class WholeForecastTask(ForecastTask):
    """Forecasting without a test part: all steps are for training and validation."""

    @cached_property
    def cuts(self) -> dict[str, Indices]:
        lengths, ahead = np.repeat(self.sequences.lengths, len(self.targets)), self.horizon
        found = cuts(lengths + ahead, 0.0, self.valid_share, ahead)  # the test begins where the series ends
        least = 2 + ahead
        if (short := np.flatnonzero(found["valid"] < least)).size:
            needed = least + int((found["test"] - found["valid"])[short[0]])
            index = int(short[0]) // len(self.targets)
            raise ValueError(
                f"expected series of at least {needed} steps for horizon={ahead} and validation_fraction="
                f"{self.valid_share}, got {int(lengths[short[0]])} in series {index}"
            )
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class Forecaster(SequenceEstimator):
    """Forecast series: `Forecaster(horizon=24, period=24).fit(series).predict()`, on the task `forecast` of
    `slimrnn train`. One net learns from all series, and forecasts also those that it has not seen."""

    horizon: int = 12
    """number of steps ahead"""
    period: int | Sequence[int] | None = None
    """lengths of seasons in steps, such as (24, 168) for hours"""
    context: int | None = None
    """steps that a forecast reads; default: two of the longest period or horizon, at least 32"""
    quantiles: Sequence[float] = (0.1, 0.5, 0.9)
    """levels of predict_quantiles; 0.5 is the forecast itself"""
    column: str | Sequence[str] | None = None
    """columns to forecast; default: all that are read"""

    tail_: Sequences = field(init=False)
    """the last steps of the series that `fit` has seen, from which `predict` goes on"""
    single_: bool = field(init=False)
    """whether these were a single series"""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a net. X: numbers of one series, a list of series (T,) or (T, D), an array (N, T) or (N, T, D), or a
        frame of pandas or polars with a row for each step, which is one series unless `sequence` is given; NaN is a
        missing value. y is not used."""
        read = tuple(dict.fromkeys([*self._targets(), *(self.columns or ())]))
        check = Precision(by_sequence=True)
        given, single = read_series(X, sequence=self.sequence, time=self.time, columns=read or None, check=check)
        seed = self._begin()
        task = WholeForecastTask.of(
            given.sequences,
            valid_share=self._held_out,
            column=self._targets(),
            horizon=self.horizon,
            period=_several(self.period),
            context=self.context,
            quantiles=tuple(self.quantiles),
        )
        return self._train(task, given, seed, {"single_": single})

    def _keep(self, given: Given) -> None:
        self.tail_ = self._tail(given.sequences)

    def predict(self, X: Any = None) -> NDArray[np.float64]:
        """The next `horizon` values, the medians, of the series in X or, without it, of those that `fit` has seen:
        (N, H), (N, H, K) for several columns; without N for a single series."""
        found = self.predict_quantiles(X)
        answers: NDArray[np.float64] = found[..., self._task().quantiles.index(0.5)]
        return answers

    def predict_quantiles(self, X: Any = None) -> NDArray[np.float64]:
        """As `predict`, with an axis of quantiles at the end: (N, H, Q) or (N, H, K, Q)."""
        check_is_fitted(self)
        sequences, single = self._series(X)
        found_NHKQ = self._forecasts(sequences, sequences.lengths - 1)
        found = found_NHKQ[:, :, 0] if found_NHKQ.shape[2] == 1 else found_NHKQ
        return found[0] if single else found

    def score(self, X: Any, y: Any = None) -> float:
        """1 − MAE / MAE of the naive forecast, which is the last value or that of a period ago: 1 is perfect, 0 as good
        as naive. y are the values that follow X; without it, the last `horizon` steps of X are forecast."""
        check_is_fitted(self)
        sequences, _ = self._series(X)
        task = self._task()
        origins = sequences.lengths - 1 - (0 if y is not None else task.horizon)
        if (origins < 0).any():
            shortest = int(sequences.lengths.min())
            raise ValueError(f"expected series of more than {task.horizon} steps to score, got one of {shortest}")
        forecasts_NHK = self._forecasts(sequences, origins)[..., task.quantiles.index(0.5)]
        guesses_NHK, truth_NHK = self._naive(sequences, origins)
        if y is not None:
            truth_NHK = _matching(y, forecasts_NHK.shape)
        ours, theirs = (float(np.nanmean(np.abs(one - truth_NHK))) for one in (forecasts_NHK, guesses_NHK))
        return 1 - ours / max(theirs, TINY)

    # --- parts ------------------------------------------------------------------------------------------

    def _config(self, task: OwnTask) -> Config:
        config = super()._config(task)
        if config.model.bidirectional:
            raise ValueError("expected bidirectional=False, since a forecast must not see the future, got True")
        return config

    def _targets(self) -> tuple[str, ...]:
        return (self.column,) if isinstance(self.column, str) else tuple(self.column or ())

    def _task(self) -> ForecastTask:
        assert isinstance(self.task_, ForecastTask)  # fit made it
        return self.task_

    def _series(self, X: Any) -> tuple[Sequences, bool]:
        if X is None:
            return self.tail_, self.single_
        given, single = read_series(X, sequence=self.sequence, time=self.time, columns=self._known_columns(X))
        return self._known(given).sequences, single

    def _forecasts(self, sequences: Sequences, origins: Indices) -> NDArray[np.float64]:
        """From these steps of each, (N, H, K, Q)."""
        task = self._task()
        series, columns = task.series_of(sequences), len(task.targets)
        at, pieces = np.repeat(origins, columns), []
        for start in range(0, len(series), AT_A_TIME):
            numbers = np.arange(start, min(start + AT_A_TIME, len(series)))
            pieces.append(task.forecasts(self.model_, series, numbers, at[numbers]))
        return _by_column(np.concatenate(pieces), columns)

    def _naive(self, sequences: Sequences, origins: Indices) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Naive forecasts and what came, NaN where it is not known; both (N, H, K)."""
        task = self._task()
        series, columns, ahead = task.series_of(sequences), len(task.targets), task.horizon
        guesses, truth = np.empty((len(series), ahead)), np.full((len(series), ahead), np.nan)
        for number, origin in enumerate(np.repeat(origins, columns).tolist()):
            values = series.one(number)
            guess = naive(values, np.array([origin]), ahead, task.base)[0]
            guesses[number] = np.where(np.isfinite(guess), guess, values[origin])
            later = np.where(series.gaps(number), np.nan, values)[origin + 1 : origin + 1 + ahead]
            truth[number, : len(later)] = later
        return _by_column(guesses, columns), _by_column(truth, columns)

    def _tail(self, sequences: Sequences) -> Sequences:
        """As many steps as a forecast reads, with their times, which say where in a period they are."""
        task = self._task()
        kept = task.reads + max(task.period, default=0) + 1
        first = np.maximum(sequences.starts[:-1], sequences.starts[1:] - kept)
        steps = np.concatenate([np.arange(*pair) for pair in zip(first, sequences.starts[1:], strict=True)])
        times = sequences.times
        if times is None:  # as numbers of steps
            times = (np.arange(len(sequences.values)) - np.repeat(sequences.starts[:-1], sequences.lengths)).astype(
                float
            )
        starts = np.concatenate([[0], np.cumsum(sequences.starts[1:] - first)])
        return Sequences(sequences.values[steps], starts, sequences.columns, sequences.ids, times=times[steps])

    def _fitted(self) -> dict[str, Any]:
        tail = self.tail_
        assert tail.times is not None  # _tail made it
        arrays: dict[str, NDArray[Any]] = {"values": tail.values, "starts": tail.starts, "times": tail.times}
        record = {name: array_record(array) for name, array in arrays.items()}
        names = {"columns": list(tail.columns), "ids": list(tail.ids)}
        return super()._fitted() | {"single_": self.single_, "tail_": record | names}

    def _remember(self, fitted: Mapping[str, Any]) -> None:
        held = fitted["tail_"]
        values, starts, times = (array_of(held[name]) for name in ("values", "starts", "times"))
        tail = Sequences(values, starts, tuple(held["columns"]), tuple(held["ids"]), times=times)
        super()._remember({**fitted, "tail_": tail})


def _several(value: int | Sequence[int] | None) -> tuple[int, ...]:
    return () if value is None else (value,) if isinstance(value, int | np.integer) else tuple(value)


def _by_column(values: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    """Of all series, (N · K, H, ...), to (N, H, K, ...)."""
    return values.reshape(-1, columns, *values.shape[1:]).swapaxes(1, 2)


def _matching(y: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """What followed the series, of the shape (N, H, K), in any shape that `predict` gives."""
    truth = np.asarray(y, dtype=np.float64)
    if truth.shape not in (shape, shape[:2], shape[1:], shape[1:2]) or truth.size != np.prod(shape):
        raise ValueError(f"expected y to be the values that follow, as predict gives them, {shape}, got {truth.shape}")
    return truth.reshape(shape)
