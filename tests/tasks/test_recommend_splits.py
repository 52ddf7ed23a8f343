"""What is read and what is predicted: nothing leaks from validation and test into training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from slimrnn.data.interactions import Columns, Interactions, interactions_from
from slimrnn.data.tables import Table
from slimrnn.tasks.recommend_splits import (
    SPLITS,
    Histories,
    Windows,
    gaps_between,
    gaps_of,
    leave_one_out,
    temporal,
    train_counts,
    without_seen,
)


def log_of(rows: list[tuple[int, int, int]]) -> Interactions:
    frame = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    return interactions_from(Table(frame, str), Path("log.parquet"), Columns())


def read(windows: Windows) -> set[int]:
    """All events that the net sees as input."""
    return {
        int(event)
        for first, steps in zip(windows.first_S, windows.steps_S, strict=True)
        for event in range(first, first + steps)
    }


LOGS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 9)), min_size=4, max_size=60, unique=True
).map(log_of)
LENGTHS = st.integers(1, 8)


@given(log=LOGS, max_length=LENGTHS, is_temporal=st.booleans())
def test_nothing_leaks(log: Interactions, max_length: int, is_temporal: bool) -> None:
    splits = temporal(log, max_length, 0.2, 0.3) if is_temporal else leave_one_out(log, max_length)
    targets = {split: splits[split].targets().tolist() for split in SPLITS}
    for split in SPLITS:
        windows = splits[split]
        assert len(set(targets[split])) == len(targets[split])
        assert ((windows.steps_S >= 1) & (windows.steps_S <= max_length)).all()
        assert (windows.scored_S < windows.steps_S).all()
        users = log.users
        assert all(users[event] == users[event - 1] for event in targets[split])  # there is always something to go by
    trained = read(splits["train"]) | set(targets["train"])
    assert not trained & {*targets["valid"], *targets["test"]}
    assert not (trained | read(splits["valid"]) | set(targets["valid"])) & set(targets["test"])


@given(log=LOGS, max_length=LENGTHS)
def test_slices_of_time_do_not_overlap(log: Interactions, max_length: int) -> None:
    splits = temporal(log, max_length, 0.2, 0.3)
    assert log.times is not None
    times = [log.times[splits[split].targets()] for split in SPLITS]
    for before, after in ((times[0], times[1]), (times[1], times[2]), (times[0], times[2])):
        if len(before) and len(after):
            assert before.max() < after.min()


@given(log=LOGS)
def test_each_user_is_tested_on_the_last_event(log: Interactions) -> None:
    splits = leave_one_out(log, 100)
    ends, counts = log.starts[1:], np.diff(log.starts)
    assert splits["test"].targets().tolist() == (ends[counts >= 3] - 1).tolist()
    assert splits["valid"].targets().tolist() == (ends[counts >= 3] - 2).tolist()
    first = set(log.starts[:-1].tolist())
    rest = set(range(len(log.items))) - first - set(splits["test"].targets()) - set(splits["valid"].targets())
    assert set(splits["train"].targets().tolist()) == rest


def test_a_temporal_split_by_hand() -> None:
    """User 0 has events at all times; user 1 comes late, and its first event is only read."""
    log = log_of([(0, item, item) for item in range(8)] + [(1, 3, 8), (1, 5, 9)])
    splits = temporal(log, 3, 0.2, 0.2)
    assert [splits[split].targets().tolist() for split in SPLITS] == [[3, 4, 5], [6, 7], [9]]
    assert sorted(read(splits["valid"])) == [4, 5, 6]  # the last three before the last target
    assert sorted(read(splits["test"])) == [8]


def test_a_batch_by_hand() -> None:
    log = log_of([(0, 10, 0), (0, 11, 1), (0, 12, 8), (0, 13, 8), (1, 11, 0), (1, 10, 5), (1, 13, 6)])
    histories = Histories(log, leave_one_out(log, 500)["test"], gaps_of(log))
    batch = histories.fetch(np.array([1, 0]))
    assert batch.lengths is not None
    assert batch.weights is not None
    assert batch.lengths.tolist() == histories.lengths(np.array([1, 0])).tolist() == [2, 3]
    assert batch.inputs[:2, 0].tolist() == [[1, 0, 4], [0, 3, 5]]  # item, time gap, event
    assert batch.inputs[:, 1].tolist() == [[0, 0, 0], [1, 2, 1], [2, 4, 2]]
    assert batch.targets.T.tolist() == [[0, 3, 0], [1, 2, 3]]
    assert batch.weights.T.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert histories.fetch(np.arange(0)).inputs.shape == (1, 0, 3)


def test_time_gaps_are_powers_of_two() -> None:
    times = np.cumsum([100.0, 0.0, 0.5, 1.0, 2.0, 3.0, 86_400.0, 1e12])
    assert gaps_between(times).tolist() == [0, 1, 1, 2, 2, 3, 17, 31]
    assert gaps_between(times[:0]).tolist() == []


def test_items_are_counted_in_training_only_and_once() -> None:
    log = log_of([(0, 0, 0), (0, 1, 1), (0, 1, 2), (0, 2, 3), (0, 3, 4), (1, 0, 0), (1, 1, 1)])
    assert train_counts(log, leave_one_out(log, 500)["train"]).tolist() == [2, 3, 0, 0]
    assert train_counts(log, leave_one_out(log, 1)["train"]).tolist() == [1, 3, 0, 0]  # beyond the cut is not there


@pytest.mark.parametrize("event", [0, 2, 4])
def test_what_the_user_took_before_is_left_out_but_for_the_target(event: int) -> None:
    log = log_of([(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 1, 3), (1, 3, 0), (1, 1, 1)])
    targets = torch.from_numpy(log.items[[event + 1]].astype(np.int64))
    scores = torch.ones(1, 4)
    found = without_seen(scores, targets, torch.tensor([event]), log)[0]
    expected = {0: [-np.inf, 1, 1, 1], 2: [-np.inf, 1, -np.inf, 1], 4: [1, 1, 1, -np.inf]}[event]
    assert found.tolist() == expected
    assert scores.tolist() == [[1, 1, 1, 1]]
