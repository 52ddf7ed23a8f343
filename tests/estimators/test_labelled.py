"""SequenceClassifier and SequenceRegressor: what they learn, and what they keep."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from small_data import NAMES, classifier, ragged, regressor

import slimrnn
from slimrnn import Diagonal, LowRank
from slimrnn.estimators import SequenceClassifier, SequenceRegressor
from slimrnn.tasks import ClassifyTask
from slimrnn.training import in_memory

X, Y, SLOPES = ragged()
NEW, NEW_Y, NEW_SLOPES = ragged(seed=1)


def test_classes_are_learned() -> None:
    found = classifier().fit(X, Y)
    assert found.score(NEW, NEW_Y) == 1
    assert found.classes_.tolist() == sorted(NAMES)
    assert found.n_features_in_ == 2
    chances = found.predict_proba(NEW)
    assert chances.shape == (len(NEW), 3)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert (found.classes_[chances.argmax(1)] == found.predict(NEW)).all()
    assert found.history_[0]["update"] == 0
    assert found.history_[-1]["valid/loss"] < found.history_[0]["valid/loss"]


def test_numbers_are_learned() -> None:
    found = regressor().fit(X, 100 + 10 * SLOPES)
    assert found.score(NEW, 100 + 10 * NEW_SLOPES) > 0.9
    assert found.predict(NEW).shape == (len(NEW),)


def test_an_answer_does_not_depend_on_the_others() -> None:
    found = classifier(updates=5).fit(X, Y)
    alone = np.concatenate([found.predict_proba([one]) for one in NEW])
    np.testing.assert_allclose(alone, found.predict_proba(NEW), rtol=1e-5)


CLASSES: dict[str, list[Any]] = {
    "ints": [9, 10],
    "bools": [False, True],
    "texts": ["no", "yes"],
    "objects": ["no", "yes"],
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_of_any_type_come_back(kind: str) -> None:
    y = np.array(CLASSES[kind] * 24, dtype=object if kind == "objects" else None)
    found = classifier(updates=1).fit(X, y)
    assert found.classes_.tolist() == CLASSES[kind]
    assert found.predict(X).dtype == y.dtype


def test_the_same_seed_gives_the_same_net_and_touches_nobodys_random_numbers() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = classifier(updates=4).fit(X, Y)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(6)
    again, other = classifier(updates=4).fit(X, Y), classifier(updates=4, random_state=1).fit(X, Y)
    assert (first.predict_proba(X) == again.predict_proba(X)).all()
    assert not (first.predict_proba(X) == other.predict_proba(X)).all()
    drawn = classifier(updates=4, random_state=np.random.RandomState(0)).fit(X, Y)
    assert (classifier(updates=4, random_state=drawn.seed_).fit(X, Y).predict_proba(X) == drawn.predict_proba(X)).all()


def test_fitting_again_forgets_and_changes_no_parameter() -> None:
    found = classifier(updates=4)
    before = found.get_params()
    once = found.fit([one[:, :1] for one in X], Y == "flat").predict_proba([one[:, :1] for one in X])
    found.fit(X, Y)
    assert found.get_params() == before
    assert found.n_features_in_ == 2
    assert len(found.classes_) == 3
    assert (found.fit([one[:, :1] for one in X], Y == "flat").predict_proba([one[:, :1] for one in X]) == once).all()


def test_parameters_are_kept_as_they_are_given() -> None:
    structure = LowRank(2) + Diagonal()
    given = SequenceClassifier(structure=structure, settings={"model.pooling": "max"}, epochs=2)
    copy = clone(given)
    assert given.get_params()["structure"] is structure
    assert copy.get_params()["structure"] == structure
    assert copy.set_params(hidden=3, cell="lstm").get_params()["hidden"] == 3
    assert SequenceClassifier().get_params()["hidden"] is None
    assert "epochs=2" in repr(given)


def test_settings_reach_the_net() -> None:
    structure = LowRank(2, tied=True) + Diagonal()
    settings = {"model.pooling": "last", "optim.optimizer": "adam", "patience": 1}
    found = classifier(cell="lstm", structure=structure, layers=2, bidirectional=False, settings=settings)
    found.set_params(epochs=1.5, updates=None, batch_size=16, validation_fraction=0.2)
    found.fit(X, Y)
    assert isinstance(found.model_.rnn, slimrnn.LSTM)
    assert found.model_.rnn.structure == structure
    assert found.model_.rnn.num_layers == 2
    assert found.model_.readout.at == "last"
    assert found.n_iter_ == 4  # 39 for training, 16 in a batch
    text = classifier(structure="low-rank(2)+diagonal", updates=1).fit(X, Y)
    assert text.model_.rnn.structure == LowRank(2) + Diagonal()


def test_few_sequences_are_all_for_training_unless_a_fraction_is_given() -> None:
    assert classifier(updates=2).fit(X[:3], Y[:3]).n_iter_ == 2
    assert regressor(updates=2).fit(X[:2], SLOPES[:2]).n_iter_ == 2
    for given, share in ((None, 0), (0.3, 0.3)):
        task = classifier(updates=1, validation_fraction=given).fit(X, Y).task_
        assert isinstance(task, ClassifyTask)
        assert task.valid_share == share


def test_fit_is_quiet_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    classifier(updates=1).fit(X, Y)
    assert capsys.readouterr().out == ""
    classifier(updates=1, verbose=1).fit(X, Y)
    assert "GRU" in (told := capsys.readouterr().out)
    assert "valid" in told


def test_ctrl_c_is_passed_on_and_leaves_the_best_net(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = in_memory._LoopInMemory.evaluate

    def interrupted(loop: Any) -> bool:
        evaluate(loop)
        if loop.learner.update >= 10:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(in_memory._LoopInMemory, "evaluate", interrupted)
    found = classifier()
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, Y)
    assert found.ended_ == "interrupted"
    assert found.n_iter_ == 10
    assert len(found.predict(X)) == len(X)


def test_a_budget_ends_the_training() -> None:
    found = classifier(updates=100_000, budget=0.05).fit(X, Y)
    assert found.ended_ == "budget"
    assert found.n_iter_ < 100_000


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no label": (X, None, "expected y, a label for each sequence"),
    "too few labels": (X, Y[:-1], "expected y to have a label for each of 48 sequences, got 47"),
    "a missing label": (X, [*Y[:-1].tolist(), None], "got missing ones"),
    "one class": (X, ["a"] * 48, "expected at least two classes in y, got one class: 'a'"),
    "numbers as classes": (X, SLOPES, "Unknown label type"),
    "no sequences": ([], [], "expected at least one sequence"),
    "no steps": ([np.zeros((0, 2)), *X[1:]], Y, "at least one step as sequence 0, got shape (0, 2)"),
    "one sequence": (X[0][:, 0], Y, "a single sequence is X[None]"),
    "other columns": ([*X[:-1], X[-1][:, :1]], Y, "got 1 in sequence 47"),
    "texts": ([["a", "b"]] * 48, Y, "expected real numbers in sequence 0, got 'a'"),
    "infinite": ([*X[:-1], np.array([[0, 1], [2, np.inf]])], Y, "in sequence 47, step 1, column 1"),
    "too large": (np.full((48, 3), 1e300), Y, "in sequence 0, step 0, column 0"),
    "complex": (np.ones((48, 3), complex), Y, "expected real numbers in X"),
    "nothing of the kind": (3, Y, "expected sequences as an array (N, T) or (N, T, D)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_data_is_refused(what: str) -> None:
    given, y, told = REFUSED[what]
    with pytest.raises(ValueError, match=re.escape(told)):
        classifier().fit(given, y)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "cell": ({"cell": "gruu"}, "did you mean 'gru'?"),
    "structure": ({"structure": "low-rnk"}, "did you mean 'low-rank'?"),
    "hidden": ({"hidden": 0}, "hidden"),
    "updates": ({"updates": 0}, "expected updates to be at least 1, got 0"),
    "both": ({"epochs": 1}, "expected updates or epochs, got both"),
    "epochs": ({"updates": None, "epochs": -1}, "expected a positive number of epochs"),
    "too few to hold out": ({"validation_fraction": 0.01}, "with validation_fraction=0 all are for training"),
    "fraction": ({"validation_fraction": 2}, "expected validation_fraction from 0 to 0.9, got 2"),
    "weights": ({"class_weight": "even"}, "expected class_weight to be None or 'balanced', got 'even'"),
    "settings": ({"settings": {"model.poling": "last"}}, "did you mean 'pooling'?"),
    "no setting": ({"settings": {"model": 1}}, "expected a setting such as"),
    "no frame": ({"columns": ["a"]}, "expected columns only with a frame and sequence="),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused_when_fitting(what: str) -> None:
    parameters, told = WRONG[what]
    with pytest.raises(ValueError, match=re.escape(told)):
        classifier(**parameters).fit(X, Y)


def test_wrong_use_is_refused() -> None:
    for unfitted in (SequenceClassifier(), SequenceRegressor()):
        with pytest.raises(NotFittedError):
            unfitted.predict(X)
    with pytest.raises(TypeError, match="hiden"):
        SequenceClassifier(hiden=3)
    found = classifier(updates=1).fit(X, Y)
    with pytest.raises(ValueError, match="expected 2 columns, as in fit, got 1"):
        found.predict([one[:, 0] for one in X])
    with pytest.raises(ValueError, match="expected numbers in y"):
        regressor().fit(X, Y)
    with pytest.raises(ValueError, match="expected finite numbers in y, got inf"):
        regressor().fit(X, np.where(SLOPES > 0, np.inf, SLOPES))


def test_missing_values_are_filled() -> None:
    holes = [np.where(np.arange(one.size).reshape(one.shape) % 5 == 3, np.nan, one) for one in X]
    found = classifier().fit(holes, Y)
    assert np.isfinite(found.predict_proba(holes)).all()
    assert found.score(holes, Y) > 0.9


def test_balanced_classes_count_alike() -> None:
    rare = np.array(["rare" if index % 12 == 0 else "usual" for index in range(len(X))])
    noise = [np.random.default_rng(index).normal(size=(4, 1)) for index in range(len(X))]
    chances = {
        weight: classifier(updates=20, class_weight=weight).fit(noise, rare).predict_proba(noise)[:, 0].mean()
        for weight in (None, "balanced")
    }
    assert chances[None] < 0.3 < chances["balanced"]


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "slimrnn.estimators")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "slimrnn[sklearn]"')):
        importlib.import_module("slimrnn.estimators")


def test_it_is_an_attribute_of_the_package() -> None:
    assert vars(slimrnn).get("estimators", None) is sys.modules["slimrnn.estimators"]
    assert slimrnn.__getattr__("estimators").SequenceClassifier is SequenceClassifier
    with pytest.raises(AttributeError, match="has no attribute 'estimator'"):
        slimrnn.estimator  # type: ignore[attr-defined]  # noqa: B018


def test_a_failed_fit_leaves_a_classifier_as_it_was() -> None:
    found = classifier(updates=2).fit(X, Y)
    before = found.predict(X)
    for wrong in (["p"] * len(X), ["p", "q"] * (len(X) // 2)):
        with pytest.raises(ValueError, match="expected"):
            found.set_params(validation_fraction=2.0).fit(X, wrong)
    assert found.classes_.tolist() == NAMES.tolist()
    assert (found.predict(X) == before).all()


def test_numbers_that_single_precision_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected numbers up to 3\.4e\+38 in size in y, got 2e\+201: rescale y"):
        regressor().fit(X, [2e201, *SLOPES[1:]])
