"""Estimators inside scikit-learn: searches, pipelines, cross-validation, other processes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from small_data import classifier, ragged, regressor

from slimrnn import Diagonal, LowRank

X, Y, SLOPES = ragged()
WHOLE = np.stack([one[:5] for one in X])


def test_kinds() -> None:
    assert is_classifier(classifier())
    assert is_regressor(regressor())


def test_grid_search_finds_the_rate_that_learns() -> None:
    grid: dict[str, Any] = {"lr": [1e-6, 0.03], "structure": [LowRank(2) + Diagonal()]}
    search = GridSearchCV(classifier(), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_["lr"] == 0.03
    assert search.score(X, Y) > 0.9
    assert len(search.cv_results_["params"]) == 2


def test_cross_validation_of_ragged_lists_and_arrays() -> None:
    assert cross_val_score(classifier(), X, Y, cv=2, error_score="raise").min() > 0.8
    scorer = make_scorer(f1_score, average="macro")
    assert len(cross_val_score(classifier(updates=2), WHOLE, Y, cv=2, scoring=scorer, error_score="raise")) == 2
    assert cross_val_predict(classifier(updates=2), X, Y, cv=2, method="predict_proba").shape == (len(X), 3)
    assert len(cross_val_score(regressor(updates=2), WHOLE, SLOPES, cv=2, error_score="raise")) == 2


def test_cross_validation_of_a_long_frame_by_groups() -> None:
    rows = [(i, t, *X[i][t]) for i in range(len(X)) for t in range(len(X[i]))]
    frame = pandas.DataFrame(rows, columns=["id", "t", "a", "b"])
    found = classifier(sequence="id", time="t")
    labels = Y[frame["id"]]
    scores = cross_val_score(found, frame, labels, groups=frame["id"], cv=GroupKFold(2), error_score="raise")
    assert scores.mean() > 0.8


def test_pipelines() -> None:
    first = FunctionTransformer(lambda whole: whole[:, :, 0])
    pipeline = make_pipeline(first, StandardScaler(), classifier()).fit(WHOLE, Y)
    assert pipeline.score(WHOLE, Y) > 0.9
    steps = Pipeline([("net", regressor())]).set_params(net__hidden=4, net__updates=2)
    assert steps.fit(X, SLOPES)["net"].model_.rnn.hidden_size == 4


def test_pickle_keeps_the_net_and_no_data() -> None:
    found = classifier(updates=2, structure=LowRank(2)).fit(X * 50, np.tile(Y, 50))
    content = pickle.dumps(found)
    again = pickle.loads(content)
    assert (again.predict_proba(X) == found.predict_proba(X)).all()
    assert again.get_params() == found.get_params()
    assert len(content) < 60_000  # the data are 130,000 bytes


def test_two_processes() -> None:
    found = [cross_val_score(classifier(updates=3), X, Y, cv=2, n_jobs=jobs, error_score="raise") for jobs in (1, 2)]
    assert np.array_equal(*found)
