"""Gradient reach: definitions, the range of numbers, memory, bad input, and the page of the documentation."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pages import check_examples
from slimrnn import GRU, RNN
from slimrnn.analysis import Reach, input_reach, state_reach
from slimrnn.analysis.gradients import _probes

INPUTS = 2


def test_norms_far_below_the_smallest_number_are_known() -> None:
    rnn = RNN(1, 2, nonlinearity="identity", dtype=torch.float64)
    with torch.no_grad():
        rnn.layer(0).recurrent.get_parameter("weight").copy_(0.5 * torch.eye(2))
    x = torch.ones(1200, 1)
    for reach in (state_reach(rnn, x), state_reach(rnn, x, probes=2), input_reach(rnn, x)):
        falls = reach.curve() - reach.curve()[0]
        np.testing.assert_allclose(falls, -math.log(2) * reach.lags, atol=1e-9)
        assert reach.half_life() == pytest.approx(1)
        assert reach.memory_length(0.001) == pytest.approx(math.log2(1000))
        assert reach.per_step() == pytest.approx(0.5)


class Kept:
    """A tensor that autograd has saved for a backward pass."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def most_kept(measure: Callable[[], object]) -> int:
    """The most numbers that autograd kept at any one time."""
    now = most = 0

    def dropped(count: int) -> None:
        nonlocal now
        now -= count

    def pack(tensor: Tensor) -> Kept:
        nonlocal now, most
        kept = Kept(tensor.detach())  # an output that knows what it came from would keep itself
        now += tensor.numel()
        most = max(most, now)
        weakref.finalize(kept, dropped, tensor.numel())
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        measure()
    return most


@pytest.mark.parametrize("measure", [state_reach, input_reach])
def test_memory_does_not_grow_with_the_sequence(measure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probes, "LONGEST", 8)
    rnn = nn.GRU(INPUTS, 8) if measure is input_reach else GRU(INPUTS, 8)
    short, long = (most_kept(partial(measure, rnn, torch.randn(steps, 1, INPUTS), probes=2)) for steps in (100, 800))
    assert 0 < long <= 1.1 * short


def synthetic(curve: list[float]) -> Reach:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(curve))[:, None]
    return Reach("rnn", "∂h_T/∂h_t", np.arange(len(curve)), logs, None, None, None)


def test_memory_ends_where_the_curve_falls_for_the_last_time() -> None:
    assert synthetic([1, 0.2, 0.8, 0.4, 0.1]).half_life() == pytest.approx(2 + math.log(0.8 / 0.5) / math.log(2))
    assert synthetic([1, 0.8, 0.0]).half_life() == 1
    assert synthetic([0.1, 0.4, 0.9]).half_life() == math.inf
    assert synthetic([0.0, 0.0]).half_life() == 0
    assert synthetic([0.0, 0.0]).per_step() == 0
    assert synthetic([4, 2, 0]).per_step() == pytest.approx(0.5)
    assert "half-life more than 2 steps" in synthetic([1, 1, 1]).summary()


def test_the_curve_is_the_root_mean_square() -> None:
    logs = np.log(np.array([[3.0, 4.0], [5.0, np.nan]]))
    reach = Reach("rnn", "∂h_T/∂h_t", np.arange(2), logs, None, None, None)
    np.testing.assert_allclose(reach.norms(), [math.sqrt(12.5), 5])


def test_bad_input_has_a_message() -> None:
    rnn, x = RNN(2, 3), torch.randn(4, 2)
    with pytest.raises(ValueError, match="expected part to be one of 'state', 'h', got 'c'"):
        state_reach(rnn, x, part="c")
    with pytest.raises(ValueError, match="expected at most 4 lags for the steps of x, got 5"):
        state_reach(rnn, x, lags=5)
    with pytest.raises(ValueError, match="expected at most 3 lags for the steps of x, got 4"):
        input_reach(rnn, x, lags=4)
    with pytest.raises(ValueError, match="expected probes to be at least 1, got 0"):
        state_reach(rnn, x, probes=0)
    with pytest.raises(ValueError, match=r"expected one recurrent layer, got 2 \(l0, l1\)"):
        state_reach(RNN(2, 3, 2), x)
    with pytest.raises(ValueError, match="expected a model with an RNN, GRU or LSTM"):
        state_reach(nn.Linear(2, 3), x)
    with pytest.raises(TypeError, match=r"expected an RNN, GRU or LSTM of slimrnn or torch\.nn, or a LayerView, got"):
        input_reach(nn.Linear(2, 3), x)
    with pytest.raises(ValueError, match="expected layers of one direction, got two"):
        input_reach(RNN(2, 3, bidirectional=True), x)
    with pytest.raises(ValueError, match=r"expected a loss of shape \(\) or \(1,\), got \(1, 3\)"):
        input_reach(rnn, x, loss=lambda last: last)
    with pytest.raises(ValueError, match="expected a loss that depends on the outputs"):
        input_reach(rnn, x, loss=lambda last: torch.zeros(()))
    with pytest.raises(ValueError, match="expected norm='frobenius', which random probes estimate"):
        state_reach(rnn, x, probes=2).curve("spectral")
    with pytest.raises(ValueError, match="expected a threshold between 0 and 1, got 1"):
        state_reach(rnn, x).memory_length(1)
    explosive = RNN(1, 1, nonlinearity="identity", dtype=torch.float64)
    with torch.no_grad():
        explosive.layer(0).recurrent.get_parameter("weight").fill_(1e200)
    with pytest.raises(ValueError, match="expected states that stay finite over 9 steps"):
        state_reach(explosive, torch.ones(9, 1))


def test_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("analysis-reach.md", capsys)


@pytest.mark.parametrize("reach", [state_reach, input_reach])
def test_padding_beyond_the_longest_sequence_is_not_looked_at(reach: Callable[..., Reach]) -> None:
    gru, x = GRU(INPUTS, 3, dtype=torch.float64), torch.randn(20, 2, INPUTS, dtype=torch.float64)
    padded, cut = (reach(gru, x[:steps], lengths=[5, 8]) for steps in (20, 8))
    assert padded.summary() == cut.summary()
    np.testing.assert_allclose(padded.curve(), cut.curve(), rtol=1e-12)  # products of other sizes round otherwise
