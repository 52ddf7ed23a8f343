"""Estimators as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from sklearn.exceptions import NotFittedError
from small_data import classifier, ragged, regressor

import slimrnn
from slimrnn import Diagonal, LowRank
from slimrnn.errors import SavedModelError
from slimrnn.estimators import SequenceClassifier, SequenceRegressor

X, Y, SLOPES = ragged()


def test_classifiers_come_back(tmp_path: Path) -> None:
    found = classifier(updates=3, structure=LowRank(2) + Diagonal(), settings={"model.pooling": "max"}).fit(X, Y)
    found.save(tmp_path / "net")
    again = SequenceClassifier.load(tmp_path / "net")
    assert (again.predict_proba(X) == found.predict_proba(X)).all()
    assert again.get_params() == found.get_params()
    assert again.classes_.dtype == found.classes_.dtype
    np.testing.assert_equal(again.history_, found.history_)
    assert not [path for path in (tmp_path / "net").iterdir() if path.suffix not in (".json", ".safetensors")]
    assert (again.fit(X, Y).predict_proba(X) == found.predict_proba(X)).all()
    again.save(tmp_path / "net")  # once more, in its place
    assert len(list((tmp_path / "net").iterdir())) == 3


def test_regressors_and_names_of_columns_come_back(tmp_path: Path) -> None:
    frame = polars.DataFrame({"id": np.repeat(np.arange(48), 5), "a": np.concatenate([one[:5, 0] for one in X])})
    seed = np.random.RandomState(0)
    found = regressor(updates=3, sequence="id", random_state=seed, columns=("a",)).fit(frame, SLOPES)
    found.save(tmp_path)
    again = SequenceRegressor.load(tmp_path)
    assert (again.predict(frame) == found.predict(frame)).all()
    assert again.feature_names_in_.tolist() == ["a"]
    assert again.random_state == found.seed_


def test_the_net_is_one_of_slimrnns_own(tmp_path: Path) -> None:
    found = classifier(updates=1).fit(X, Y)
    found.save(tmp_path)
    assert type(slimrnn.load(tmp_path)) is type(found.model_)


DAMAGE = ("format", "class", "weights", "task", "parameters", "data", "fitted", "history", "json")


def damaged(record: dict[str, Any], what: str) -> Any:
    changes: dict[str, dict[str, Any]] = {
        "format": {"format": "other"},
        "class": {"class": "SequenceRegressor"},
        "weights": {"weights": "weights-0.safetensors"},
        "task": {"task": {"name": "copy"}},
        "parameters": {"parameters": {"hiden": 3}},
        "data": {"data": {}},
        "fitted": {"fitted": {}},
        "history": {"fitted": record["fitted"] | {"history_": 3}},
    }
    return record | changes[what]


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_told(what: str, tmp_path: Path) -> None:
    classifier(updates=1).fit(X, Y).save(tmp_path)
    path = tmp_path / "estimator.json"
    record = json.loads(path.read_text())
    path.write_text("{" if what == "json" else json.dumps(damaged(record, what)))
    with pytest.raises(SavedModelError):
        SequenceClassifier.load(tmp_path)


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        classifier().save(tmp_path / "net")
    found = classifier(updates=1, settings={"model.input_structure": LowRank(2)}).fit(X, Y)
    with pytest.raises(TypeError, match="expected parameters and classes that are numbers and texts"):
        found.save(tmp_path / "net")
    assert not (tmp_path / "net").exists()
    with pytest.raises(SavedModelError, match="expected a saved estimator"):
        SequenceClassifier.load(tmp_path)
