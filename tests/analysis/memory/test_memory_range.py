"""Theorem 1.1 reproduced: gated nets are flagged as short-range, unitary ones are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from memory_cases import HIDDEN, INPUTS, inputs, one
from torch import nn

from slimrnn import GRU, LSTM, RNN, Diagonal, FullUnitary, Kronecker
from slimrnn.analysis.memory.memory_range import memory_range


def with_radius(layer: Any, radius: float) -> Any:
    """torch.nn's layer with the candidate's recurrent matrix scaled to a spectral radius."""
    with torch.no_grad():
        part = layer.get_parameter("weight_hh_l0")[2 * HIDDEN : 3 * HIDDEN]
        part *= radius / torch.linalg.eigvals(part).abs().max()
    return layer


# --- the two sides of the theory --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [0.3, 0.9])
@pytest.mark.parametrize("make", [nn.GRU, nn.LSTM])
def test_gated_nets_under_the_conditions_of_theorem_1_1_are_short_range(make: Any, radius: float, seed: int) -> None:
    torch.manual_seed(seed)
    found = one(with_radius(make(INPUTS, HIDDEN, dtype=torch.float64), radius))
    assert found.theorem
    assert found.short_range
    assert found.conditions["radius"][0] == pytest.approx(radius)
    assert set(found.conditions) == {"gates", "radius", "variance", "rank", "input", "innovation"}
    assert 0 < found.decay < 1
    assert math.isfinite(found.time_constant)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("structure", [FullUnitary(), Kronecker([2, 3, 2])], ids=["full", "kronecker"])
@pytest.mark.parametrize("nonlinearity", ["modrelu", "identity"])
def test_fixed_unitary_nets_are_not(nonlinearity: str, structure: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rnn = RNN(INPUTS, HIDDEN, nonlinearity=nonlinearity, complex=True, structure=structure, dtype=dtype)
    found = one(rnn)
    assert not found.short_range
    assert not found.theorem
    assert found.decay == pytest.approx(1, abs=1e-6)
    assert found.contraction == pytest.approx(1, abs=1e-6)
    assert found.time_constant == math.inf
    assert not found.conditions["radius"][1]
    assert not found.conditions["variance"][1]  # inputs add up without end


def test_modrelu_forgets_with_a_negative_bias() -> None:
    """Then small numbers are cut off, and a change of them is lost."""
    torch.manual_seed(0)
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="modrelu", structure=FullUnitary(), dtype=torch.float64)
    with torch.no_grad():
        rnn.cell.get_parameter("bias").fill_(-0.3)
    assert one(rnn).short_range


def latch(weight: float) -> LSTM:
    """Units of their own with f = 0.9, i = o = 1, g = tanh(w h + a little of the input)."""
    torch.manual_seed(0)
    lstm = LSTM(INPUTS, HIDDEN, structure=Diagonal(), dtype=torch.float64)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.zero_()
        candidate = torch.stack([weight * (gate == 2) * torch.eye(HIDDEN).double() for gate in range(4)])
        lstm.layer(0).recurrent.nearest_(candidate)
        lstm.layer(0).input.get_parameter("weight")[2] = 0.1 * torch.randn(HIDDEN, INPUTS)
        lstm.cell.get_parameter("bias").copy_(torch.tensor([30.0, math.log(9), 0.0, 30.0])[:, None].expand(4, HIDDEN))
    return lstm


def test_an_lstm_that_latches_is_not_short_range_whatever_the_theorem_says() -> None:
    """All conditions hold, but c has two stable values; the sign that the first inputs give it stays."""
    lstm, x = latch(0.5), inputs(400, 16)
    found = one(lstm, x)
    assert found.theorem
    assert found.contracting
    assert found.apart > 0.2
    assert not found.short_range
    assert any("it latches" in reason for reason in found.reasons)
    h = lstm(x)[0].detach()
    np.testing.assert_array_equal(h[100].sign(), h[-1].sign())  # nothing is forgotten
    assert 0.2 < float((h[-1] > 0).double().mean()) < 0.8
    forgetful = one(latch(0.05), x)  # one stable value
    assert forgetful.short_range
    assert forgetful.apart == 0


def test_the_theorem_flags_an_lstm_whose_decay_is_too_slow_to_measure() -> None:
    """With a forget bias of 5 small changes hardly fall, or even grow; the conditions hold."""
    torch.manual_seed(5)
    found = one(with_radius(LSTM(INPUTS, HIDDEN, forget_bias=5.0).to_torch(), 0.5), inputs(300, 4, torch.float32))
    assert found.short_range
    assert found.theorem


# --- conditions, precision, shapes ------------------------------------------------------------------------


def test_each_condition_is_told_when_it_fails() -> None:
    torch.manual_seed(0)
    wide = one(with_radius(nn.GRU(INPUTS, HIDDEN, dtype=torch.float64), 1.2))
    assert {name for name, (_, holds) in wide.conditions.items() if not holds} == {"radius"}
    assert any(reason.startswith("prop. 1.1: ") and reason.endswith("(not met)") for reason in wide.reasons)
    gru = with_radius(nn.GRU(INPUTS, HIDDEN, dtype=torch.float64), 0.8)
    silent = one(gru, inputs().index_fill(0, torch.tensor(50), 0))
    assert not silent.conditions["input"][1]
    repeated = one(gru, inputs()[:1].expand(120, -1, -1))
    assert repeated.conditions["innovation"][0] < 0.05
    with torch.no_grad():
        weight = gru.get_parameter("weight_ih_l0")
        weight[-HIDDEN:, 0] = weight[-HIDDEN:, 1]
    assert not one(gru).conditions["rank"][1]


def test_a_decay_below_precision_is_not_told_from_one() -> None:
    """update_bias = 20: the gate is 1 − 2e-9, which is one in single precision, and short-range in double."""
    for dtype, short in ((torch.float32, False), (torch.float64, True)):
        torch.manual_seed(0)
        found = one(GRU(INPUTS, HIDDEN, update_bias=20.0, dtype=dtype))
        assert found.short_range is short
        assert found.conditions["gates"][1] is short
        assert 1 - found.decay == pytest.approx(2e-9, rel=0.9)
    assert "more than the 120 steps of the data" in found.reasons[0]


def test_every_core_has_its_verdict_and_padding_does_not_matter() -> None:
    torch.manual_seed(0)
    gru = nn.GRU(INPUTS, HIDDEN, 2, bidirectional=True, batch_first=True, dtype=torch.float64)
    x, lengths = inputs(60, 4).transpose(0, 1).clone(), [60, 20, 33, 47]
    for b, length in enumerate(lengths):
        x[b, length:] = torch.nan
    found = memory_range(gru, x, lengths)
    assert [(v.core, v.layer, v.backward) for v in found] == [(k, k, k % 2 == 1) for k in range(4)]
    again = memory_range(gru, x.nan_to_num(7.0), lengths)
    assert [v.decay for v in found] == [v.decay for v in again]
    assert [v.conditions for v in found] == [v.conditions for v in again]
    assert all(v.short_range for v in found)


def test_a_state_that_stays_at_zero_has_a_decay_too() -> None:
    """Without weights u = 1/2, and h = 0 throughout; but modReLU has no derivative there."""
    gru = GRU(INPUTS, HIDDEN, dtype=torch.float64)
    for parameter in gru.parameters():
        nn.init.zeros_(parameter)
    found = one(gru)
    assert found.decay == pytest.approx(0.5)
    assert not found.conditions["rank"][1]
    unitary = RNN(INPUTS, HIDDEN, nonlinearity="modrelu", structure=FullUnitary(), dtype=torch.float64)
    found = one(unitary, 0 * inputs())
    assert not found.short_range
    assert math.isfinite(found.contraction)


def test_relu_units_that_are_all_off_forget_at_once() -> None:
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="relu", dtype=torch.float64)
    with torch.no_grad():
        rnn.cell.get_parameter("bias").fill_(-100)
    found = one(rnn, hx=torch.ones(1, 8, HIDDEN, dtype=torch.float64))
    assert found.short_range
    assert (found.decay, found.time_constant) == (0.0, 0.0)


def test_units_that_are_off_at_first_only_have_the_decay_of_later() -> None:
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="relu", structure=Diagonal(), dtype=torch.float64)
    with torch.no_grad():
        rnn.layer(0).recurrent.nearest_(0.9 * torch.eye(HIDDEN, dtype=torch.float64)[None])
        rnn.layer(0).input.get_parameter("weight").fill_(1.0)
    x = inputs().abs()
    x[:5] *= -1
    assert one(rnn, x).decay == pytest.approx(0.9)


def test_the_layer_is_left_as_it_was() -> None:
    gru = GRU(INPUTS, HIDDEN, 2, dropout=0.5, recurrent_dropout=0.3)
    before = {name: value.clone() for name, value in gru.state_dict().items()}
    memory_range(gru, inputs(40, 2, torch.float32))
    assert gru.training
    assert gru.layers[0].training
    assert all(torch.equal(before[name], value) for name, value in gru.state_dict().items())
    assert not any(core._forward_hooks for core in gru.cores)


def test_summary_says_the_verdict_first() -> None:
    torch.manual_seed(0)
    found = one(with_radius(nn.LSTM(INPUTS, HIDDEN, dtype=torch.float64), 0.5))
    assert found.summary().splitlines()[0] == "short-range"
    assert found.summary().splitlines()[-1] == "theorem 1.1: all conditions hold, and say short-range"


def test_bad_input_is_refused() -> None:
    gru = GRU(INPUTS, HIDDEN, dtype=torch.float64)
    with pytest.raises(ValueError, match="expected sequences of at least 16 steps, got one of 15"):
        memory_range(gru, inputs(steps=15))
    with pytest.raises(ValueError, match="expected sequences of at least 16 steps, got one of 3"):
        memory_range(gru, inputs(20, 2), [20, 3])
    with pytest.raises(ValueError, match="expected finite inputs and states"):
        memory_range(gru, inputs(20).index_fill(0, torch.tensor(2), torch.inf))
    with pytest.raises(TypeError, match="expected an RNN, GRU or LSTM"):
        memory_range(nn.Linear(3, 3), inputs())  # type: ignore[arg-type]
