"""The copy task against its definition, one sequence at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scoring import value
from torch import Tensor

from slimrnn.tasks import CopyTask
from slimrnn.training import Batch

SMALL = st.builds(
    CopyTask,
    length=st.integers(1, 6),
    symbols=st.integers(1, 4),
    width=st.integers(1, 4),
    variable_length=st.booleans(),
    variable_lag=st.booleans(),
)


def tokens(batch: Batch) -> list[list[int]]:
    """What is read, a list of classes per sequence."""
    assert torch.equal(batch.inputs.sum(-1), torch.ones(batch.inputs.shape[:2]))
    rows: list[list[int]] = batch.inputs.argmax(-1).T.tolist()
    return rows


def written(read: list[int], symbols: int) -> list[int]:
    """The definition: blanks until the delimiter, after it the symbols, and blanks again."""
    blank, delimiter = symbols, symbols + 1
    where = read.index(delimiter)
    remembered = [token for token in read[:where] if token < symbols]
    answer = [blank] * (where + 1) + remembered
    return answer + [blank] * (len(read) - len(answer))


@given(SMALL, st.integers(0, 5))
def test_targets_are_what_the_definition_says(task: CopyTask, seed: int) -> None:
    batch = task.samples("train", seed).fetch(np.arange(20))
    assert tuple(batch.inputs.shape) == (task.length + 2 * task.width, 20, task.symbols + 2)
    assert batch.targets.T.tolist() == [written(read, task.symbols) for read in tokens(batch)]


@given(SMALL, st.integers(0, 5))
def test_inputs_are_symbols_then_a_delay_then_the_delimiter(task: CopyTask, seed: int) -> None:
    blank, delimiter = task.symbols, task.symbols + 1
    for read in tokens(task.samples("train", seed).fetch(np.arange(20))):
        where = read.index(delimiter)
        count = sum(token < blank for token in read)
        lag = where + 1 - count
        assert all(token < blank for token in read[:count])
        assert read[count:] == [blank] * (lag - 1) + [delimiter] + [blank] * (len(read) - where - 1)
        assert 1 <= count <= task.width if task.variable_length else count == task.width
        assert 1 <= lag <= task.length if task.variable_lag else lag == task.length


def test_all_lengths_lags_and_symbols_occur() -> None:
    task = CopyTask(7, variable_length=True, variable_lag=True)
    read = np.array(tokens(task.samples("train", 0).fetch(np.arange(2000))))
    counts = (read < 8).sum(1)
    lags = (read == 9).argmax(1) + 1 - counts
    for drawn, values in ((counts, range(1, 11)), (lags, range(1, 8)), (read[read < 8], range(8))):
        found, often = np.unique(drawn, return_counts=True)
        assert found.tolist() == list(values)
        assert np.abs(often - drawn.size / len(found)).max() < 5 * np.sqrt(drawn.size / len(found))


def guess(task: CopyTask, batch: Batch, present: list[float]) -> Tensor:
    """Log probabilities of a net that sees a symbol with the given chance in the steps after the delimiter."""
    blank = torch.full((task.output_size,), -math.inf)
    blank[task.symbols] = 0.0
    output = blank.expand(*batch.targets.shape, -1).clone()
    for b, read in enumerate(tokens(batch)):
        start = read.index(task.symbols + 1) + 1
        for place, chance in enumerate(present):
            output[start + place, b, : task.symbols] = math.log(chance / task.symbols) if chance else -math.inf
            output[start + place, b, task.symbols] = math.log1p(-chance) if chance < 1 else -math.inf
    return output


@pytest.mark.parametrize("task", [CopyTask(9), CopyTask(12, variable_lag=True), CopyTask(3, symbols=5, width=4)])
def test_memoryless_is_the_loss_of_guessing_symbols(task: CopyTask) -> None:
    batch = task.samples("valid", 0).fetch(np.arange(30))
    scores = task.scores(guess(task, batch, [1.0] * task.width), batch)
    assert value(scores["loss"]) == pytest.approx(task.baselines["memoryless"], rel=1e-6)


def test_papers_figure() -> None:
    assert CopyTask(1000).baselines == {"memoryless": pytest.approx(10 * math.log(8) / 1020)}
    assert CopyTask(500, variable_lag=True).baselines == {"memoryless": pytest.approx(10 * math.log(8) / 520)}


def test_variable_length_baselines_are_mean_losses_over_all_lengths() -> None:
    task = CopyTask(3, symbols=5, width=4, variable_length=True)
    samples = task.samples("valid", 0)
    counts = (np.array(tokens(samples.fetch(np.arange(50)))) < 5).sum(1)
    memoryless, length_only = 0.0, 0.0
    for count in range(1, 5):
        batch = samples.fetch(np.flatnonzero(counts == count)[:1])
        known = [1.0] * count + [0.0] * (4 - count)
        memoryless += value(task.scores(guess(task, batch, [1, 3 / 4, 2 / 4, 1 / 4]), batch)["loss"]) / 4
        length_only += value(task.scores(guess(task, batch, known), batch)["loss"]) / 4
    expected = {"memoryless": pytest.approx(memoryless, rel=1e-6), "length only": pytest.approx(length_only, rel=1e-6)}
    assert task.baselines == expected


def test_scores_are_means_over_steps_and_over_recalled_symbols() -> None:
    task = CopyTask(5, symbols=3, width=2, variable_length=True)
    batch = task.samples("test", 4).fetch(np.arange(6))
    output = torch.randn(9, 6, 5)
    chances = output.double().softmax(-1)
    losses, hits = [], []
    for b, target in enumerate(batch.targets.T.tolist()):
        losses += [-math.log(chances[t, b, wanted]) for t, wanted in enumerate(target)]
        hits += [int(output[t, b].argmax()) == wanted for t, wanted in enumerate(target) if wanted < 3]
    scores = task.scores(output, batch)
    assert value(scores["loss"]) == pytest.approx(np.mean(losses), rel=1e-6)
    assert value(scores["recall_accuracy"]) == pytest.approx(np.mean(hits))
    assert scores["recall_accuracy"].weight == len(hits)
