"""The adding task against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scoring import value

from slimrnn.tasks import AddingTask

SPLITS = ["train", "valid", "any", "half"]


@given(st.integers(2, 12), st.sampled_from(SPLITS), st.integers(0, 5))
def test_target_is_the_sum_of_two_marked_numbers(length: int, split: str, seed: int) -> None:
    batch = AddingTask(length).samples(split, seed).fetch(np.arange(9))
    assert tuple(batch.inputs.shape) == (length, 9, 2)
    for b in range(9):
        numbers, marks = batch.inputs[:, b].T.tolist()
        assert sorted(marks) == [0.0] * (length - 2) + [1.0, 1.0]
        assert all(0 <= number <= 1 for number in numbers)
        total = sum(number for number, mark in zip(numbers, marks, strict=True) if mark)
        assert batch.targets[b].tolist() == pytest.approx([total])


@pytest.mark.parametrize("length", [6, 7])
@pytest.mark.parametrize("split", SPLITS)
def test_markers_are_uniform_where_they_may_be(length: int, split: str) -> None:
    batch = AddingTask(length).samples(split, 0).fetch(np.arange(4000))
    first, second = (batch.inputs[:, :, 1].T.nonzero()[:, 1].reshape(-1, 2).T).tolist()
    half = length // 2
    pairs = {(i, j) for i in range(length) for j in range(length) if i < j}
    if split != "any":
        pairs = {(i, j) for i, j in pairs if i < half <= j}
    found, often = np.unique(list(zip(first, second, strict=True)), axis=0, return_counts=True)
    assert {tuple(pair) for pair in found.tolist()} == pairs
    assert np.abs(often - 4000 / len(pairs)).max() < 5 * np.sqrt(4000 / len(pairs))


@pytest.mark.parametrize("split", SPLITS)
def test_baseline_is_the_error_of_always_saying_one(split: str) -> None:
    task = AddingTask(4)
    batch = task.samples(split, 0).fetch(np.arange(20_000))
    loss = value(task.scores(torch.ones(20_000, 1), batch)["loss"])
    spread = np.sqrt(7 / 180 / 20_000)  # of the mean of (u + v − 1)², whose variance is 7/180
    assert abs(loss - task.baselines["always 1"]) < 5 * spread


def test_scores_are_squared_errors_and_the_share_of_close_sums() -> None:
    task = AddingTask(5)
    batch = task.samples("any", 0).fetch(np.arange(4))
    scores = task.scores(batch.targets + torch.tensor([[0.03], [-0.03], [0.05], [-0.5]]), batch)
    assert value(scores["loss"]) == pytest.approx((2 * 0.03**2 + 0.05**2 + 0.5**2) / 4, rel=1e-5)
    assert value(scores["accuracy"]) == 0.5
