"""Forecaster: forms, shapes, scores and files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from slimrnn.estimators import Forecaster

STEPS = np.arange(96)


def waves(count: int) -> list[NDArray[np.float64]]:
    """Series with a period of 8 that grow."""
    rng = np.random.default_rng(0)
    lengths = 96 - 3 * np.arange(count)
    return [
        np.sin(STEPS[:n] * np.pi / 4 + k) + 0.1 * STEPS[:n] + 0.05 * rng.normal(size=n) for k, n in enumerate(lengths)
    ]


SERIES = waves(4)


def forecaster(**parameters: Any) -> Forecaster:
    small = {"horizon": 4, "period": 8, "hidden": 8, "context": 16, "updates": 2, "batch_size": 8, "random_state": 0}
    return Forecaster(**{**small, **parameters})


def test_it_learns_more_than_the_naive_forecast() -> None:
    found = forecaster(updates=25, lr=0.03).fit([one[:-4] for one in SERIES])
    assert found.score(SERIES) > 0.5
    later = np.stack([one[-4:] for one in SERIES])
    assert found.score([one[:-4] for one in SERIES], later) == pytest.approx(found.score(SERIES), abs=1e-6)
    assert np.abs(found.predict() - later).mean() < 0.2
    quantiles = found.predict_quantiles()
    assert quantiles.shape == (4, 4, 3)
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    assert (quantiles[..., 1] == found.predict()).all()
    assert found.predict() == pytest.approx(found.predict([one[:-4] for one in SERIES]), abs=1e-5)


def test_all_forms_are_the_same_series() -> None:
    one, dates = SERIES[0], np.arange(96).astype("datetime64[D]")
    single = forecaster().fit(one)
    assert single.predict().shape == (4,)
    forms: list[tuple[dict[str, Any], Any]] = [
        ({}, one.tolist()),
        ({}, pandas.Series(one)),
        ({}, polars.DataFrame({"x": one})),
        ({"column": "x"}, pandas.DataFrame({"x": one, "text": "a"})),
        ({"column": ["x"], "time": "t"}, pandas.DataFrame({"x": one, "t": STEPS})[::-1]),
    ]
    for roles, given in forms:
        assert (forecaster(**roles).fit(given).predict() == single.predict()).all()
    assert forecaster(time="t").fit(polars.DataFrame({"x": one, "t": dates})).predict().shape == (4,)
    assert (forecaster().fit(one[None]).predict() == single.predict()[None]).all()
    long = pandas.DataFrame({"k": np.repeat([0, 1], 90), "x": np.concatenate([SERIES[0][:90], SERIES[1][:90]])})
    several = forecaster().fit(np.stack([SERIES[0][:90], SERIES[1][:90]]))
    assert (forecaster(sequence="k").fit(long).predict() == several.predict()).all()


def test_several_columns_and_others_beside_them() -> None:
    frame = polars.DataFrame({"a": SERIES[0], "b": -SERIES[0], "c": STEPS % 3})
    found = forecaster(column=("a", "b"), columns=["c"]).fit(frame)
    assert found.n_features_in_ == 3
    assert found.predict().shape == (4, 2)
    assert found.predict_quantiles(frame).shape == (4, 2, 3)
    assert found.predict(frame[["c", "b", "a"]]) == pytest.approx(found.predict())
    assert np.isfinite(found.score(frame))
    both = np.stack([SERIES[0], -SERIES[0]], -1)
    assert forecaster().fit([both, both[:50]]).predict().shape == (2, 4, 2)
    assert forecaster(column="0").fit([both]).predict().shape == (1, 4)


def test_it_is_an_estimator() -> None:
    assert clone(forecaster(period=(8, 16))).period == (8, 16)
    assert len(cross_val_score(forecaster(), SERIES, cv=2, error_score="raise")) == 2
    search = GridSearchCV(forecaster(), {"hidden": [2, 4]}, cv=2, error_score="raise").fit(SERIES)
    assert search.predict(SERIES).shape == (4, 4)


def test_it_comes_back_from_files(tmp_path: Path) -> None:
    dates = np.arange(96).astype("datetime64[h]")
    found = forecaster(time="t", quantiles=(0.25, 0.5)).fit(pandas.DataFrame({"x": SERIES[0], "t": dates}))
    found.save(tmp_path)
    for again in (Forecaster.load(tmp_path), pickle.loads(pickle.dumps(found))):
        assert (again.predict_quantiles() == found.predict_quantiles()).all()
        assert again.tail_.times is not None
        assert again.tail_.times[-1] == dates[-1]


def test_missing_values_are_neither_learned_nor_scored() -> None:
    holes = np.where(STEPS % 7 == 3, np.nan, SERIES[0])
    found = forecaster().fit(holes)
    assert np.isfinite(found.predict()).all()
    assert np.isfinite(found.score(holes))


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 10 steps for horizon=4 .* got 8 in series 1"):
        forecaster().fit([SERIES[0], SERIES[0][:8]])
    with pytest.raises(ValueError, match="must not see the future"):
        forecaster(bidirectional=True).fit(SERIES)
    with pytest.raises(ValueError, match="expected a column x to forecast, got 0"):
        forecaster(column="x").fit(SERIES)
    with pytest.raises(ValueError, match=r"0\.5 among them"):
        forecaster(quantiles=(0.1, 0.9)).fit(SERIES)
    with pytest.raises(ValueError, match="expected sequences as an array"):
        forecaster().fit(3)
    with pytest.raises(NotFittedError):
        forecaster().predict()
    found = forecaster().fit(SERIES)
    with pytest.raises(ValueError, match="expected series of more than 4 steps to score, got one of 4"):
        found.score([SERIES[0][:4]])
    with pytest.raises(ValueError, match="as predict gives them"):
        found.score(SERIES, SERIES[0])


def test_a_generator_is_a_list_of_series() -> None:
    found = forecaster().fit(one for one in SERIES)
    assert (found.predict() == forecaster().fit(SERIES).predict()).all()
    assert (found.predict(one for one in SERIES) == found.predict(SERIES)).all()
    assert forecaster().fit(value for value in SERIES[0]).predict().shape == (4,)


def test_the_median_is_that_of_the_fitted_quantiles() -> None:
    found = forecaster().fit(SERIES)
    before = found.predict()
    found.set_params(quantiles=(0.5, 0.6, 0.9))
    assert (found.predict() == before).all()
    found.set_params(quantiles=(0.01, 0.05, 0.1, 0.5))
    assert (found.predict() == before).all()


def test_a_failed_fit_leaves_a_forecaster_as_it_was() -> None:
    found = forecaster().fit(SERIES)
    before = found.predict()
    with pytest.raises(ValueError, match="expected series of at least"):
        found.fit(SERIES[0][:5])
    assert found.predict().shape == before.shape


def test_values_that_single_precision_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="expected values that differ in their first seven digits"):
        forecaster().fit([SERIES[0], 2e9 + SERIES[1]])
    with pytest.raises(ValueError, match=r"in x, got values around 2e\+09"):
        forecaster().fit(pandas.DataFrame({"x": 2e9 + SERIES[0]}))
