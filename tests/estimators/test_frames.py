"""All forms of sequences that estimators take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
from small_data import classifier, ragged

from slimrnn.data.sequences import Sequences
from slimrnn.estimators.reading import read

X, Y, _ = ragged(12)
ROLES: dict[str, Any] = {"sequence": "id", "time": "t"}


def table(shuffled: bool = False) -> dict[str, list[Any]]:
    """The sequences with a row for each step, named by numbers that are not in order."""
    names = [100 - index for index in range(len(X))]
    rows = [(names[i], t, *X[i][t], Y[i]) for i in range(len(X)) for t in range(len(X[i]))]
    if shuffled:
        heads = {row[0]: row for row in reversed(rows)}
        others = [row for row in rows if heads[row[0]] != row]
        rows = [*heads.values()][::-1] + [others[i] for i in np.random.default_rng(0).permutation(len(others))]
    return {name: [row[k] for row in rows] for k, name in enumerate(("id", "t", "a", "b", "kind"))}


def same(found: Sequences) -> bool:
    return len(found) == len(X) and all(np.allclose(one, x) for one, x in zip(found, X, strict=True))


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_long_frames_are_the_same_sequences(frame: Any) -> None:
    given = read(frame(table()), sequence="id", label="kind", columns=["a", "b"])
    assert same(given.sequences)
    assert given.sequences.ids[:2] == ("100", "99")
    assert given.sequences.columns == ("a", "b")
    assert given.labels is not None
    assert len(given.labels) == sum(map(len, X))
    assert same(read(frame(table(shuffled=True)), **ROLES).sequences)
    dated = frame({**table(), "t": np.array(table()["t"], dtype="datetime64[D]")})
    assert same(read(dated, **ROLES).sequences)


def test_arrays_and_lists_are_the_same_sequences() -> None:
    five = [one[:5] for one in X]
    whole = np.stack(five)
    nested = np.empty(len(X), dtype=object)
    nested[:] = five
    for given in (whole, whole.astype(np.float32), torch.from_numpy(whole), whole.tolist(), nested, tuple(five)):
        assert np.allclose(read(given).sequences.values, np.concatenate(five))
    one = [piece[:, 0] for piece in five]
    for given in (one, np.stack(one), pandas.DataFrame(one), [pandas.Series(piece) for piece in one]):
        assert np.allclose(read(given).sequences.values, np.concatenate(one)[:, None])
    found = read(X).sequences
    assert same(found)
    assert read(found).sequences is found


def test_missing_values_of_frames_are_nan() -> None:
    values = [1, None, 3]
    for frame in (
        polars.DataFrame({"id": [0, 0, 0], "a": values}),
        pandas.DataFrame({"id": [0, 0, 0], "a": pandas.array(values, dtype="Int64")}),
        pandas.DataFrame({"id": [0, 0, 0], "a": values}),
    ):
        assert np.array_equal(read(frame, sequence="id").sequences.values[:, 0], [1, np.nan, 3], equal_nan=True)


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_an_estimator_reads_frames(frame: Any) -> None:
    found = classifier(updates=5, label="kind", **ROLES).fit(frame(table()))
    plain = classifier(updates=5).fit(X, Y)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    assert (found.predict_proba(frame(table())) == plain.predict_proba(X)).all()
    assert found.score(frame(table())) == plain.score(X, Y)
    mixed = {name: table()[name] for name in ("b", "t", "a", "id")}
    assert (found.predict(frame(mixed)) == plain.predict(X)).all()
    rows = classifier(updates=5, columns=["a", "b"], **ROLES).fit(frame(table()), frame(table())["kind"])
    assert (rows.predict_proba(frame(table())) == plain.predict_proba(X)).all()
    with pytest.raises(ValueError, match="expected a column 'b'"):
        found.predict(frame({name: column for name, column in table().items() if name != "b"}))


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no such column": ({}, {"sequence": "ids"}, "did you mean 'id'?"),
    "no rows": ({"id": [], "t": [], "a": [], "b": [], "kind": []}, ROLES, "at least one row"),
    "texts": ({}, {**ROLES, "columns": ["kind"]}, "expected numbers in the column 'kind'"),
    "no numbers": ({"a": ["x"] * 3, "b": ["x"] * 3}, ROLES, "expected columns of numbers beside id, t"),
    "two at one time": ({"t": [0, 1, 1]}, ROLES, "got two with t 1 in '7'"),
    "no time": ({"t": [0.0, None, 2.0]}, ROLES, "expected the time of every row"),
    "times as texts": ({"t": ["x", "y", "z"]}, ROLES, "expected numbers or dates as 't'"),
    "no sequence": ({"id": ["u", None, "v"]}, ROLES, "expected the sequence of every row"),
    "infinite": ({"a": [0.0, 1.0, np.inf]}, ROLES, "in sequence 0, step 2, column 0"),
}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
@pytest.mark.parametrize("what", REFUSED)
def test_wrong_frames_are_refused(what: str, frame: Any) -> None:
    changed, roles, told = REFUSED[what]
    good = {"id": [7, 7, 7], "t": [0, 1, 2], "a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 2.0], "kind": ["u", "u", "u"]}
    with pytest.raises(ValueError, match=re.escape(told)):
        read(frame({**good, **changed}), **roles)


def test_rows_of_a_sequence_have_one_label() -> None:
    kinds = table()["kind"]
    with pytest.raises(ValueError, match="got several in '100'"):
        classifier(columns=["a", "b"], **ROLES).fit(pandas.DataFrame(table()), ["other", *kinds[1:]])
    with pytest.raises(ValueError, match=f"12 sequences, or for each of {len(kinds)} rows, got 3"):
        classifier(columns=["a", "b"], **ROLES).fit(pandas.DataFrame(table()), kinds[:3])


def test_names_of_columns_may_be_numbers() -> None:
    frame = pandas.DataFrame({0: table()["id"], 1: table()["t"], 2: table()["a"], 3: table()["b"]})
    given = read(frame, sequence="0", time="1")
    assert same(given.sequences)
    assert given.names == ("2", "3")


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pandas.DataFrame([[0, 1.0, 2.0], [0, 3.0, 4.0]], columns=["id", "a", "a"])
    with pytest.raises(ValueError, match="expected different names of columns in the frame, got 'a' more than once"):
        read(frame, sequence="id")


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_the_steps_of_a_wide_frame_keep_their_order(frame: Any) -> None:
    whole = np.stack([one[:5, 0] for one in X])
    wide = {f"t{step}": whole[:, step] for step in range(5)}
    found = classifier(updates=2).fit(frame(wide), Y)
    assert found.feature_names_in_.tolist() == [*wide]
    assert found.n_features_in_ == 1
    assert (found.predict_proba(frame(wide)) == found.predict_proba(whole)).all()
    with pytest.raises(ValueError, match=r"in their order \(t0, t1, t2, t3, t4\), got t4, t3, t2, t1, t0"):
        found.predict(frame({name: wide[name] for name in reversed(wide)}))
    unnamed = classifier(updates=2).fit(pandas.DataFrame(whole), Y)
    assert not hasattr(unnamed, "feature_names_in_")
