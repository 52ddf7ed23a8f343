"""Chrono and uniform gates: the distributions of the papers, by torch's generator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from slimrnn import GRU, LSTM, Chrono, UniformGate, cells

UNITS = 4000


def bias(cell: cells.Cell, gate: str) -> Tensor:
    assert cell.bias is not None
    return cell.bias[cell.gates.index(gate)].detach()


KEEPING: dict[str, Any] = {
    "gru": lambda start: bias(cells.GRUCell(UNITS, update_bias=start), "u"),
    "lstm": lambda start: bias(cells.LSTMCell(UNITS, forget_bias=start), "f"),
    "layer-norm-gru": lambda start: bias(cells.LayerNormGRUCell(UNITS, update_bias=start), "u"),
    "mgu": lambda start: -bias(cells.MGUCell(UNITS, forget_bias=start), "f"),  # near zero, it keeps
    "mingru": lambda start: -bias(cells.MinGRUCell(UNITS, update_bias=start), "z"),
}


@pytest.mark.parametrize("cell", KEEPING)
def test_chrono_draws_times_uniformly_up_to_the_longest(cell: str) -> None:
    torch.manual_seed(0)
    times = KEEPING[cell](Chrono(100)).exp().sort().values
    torch.testing.assert_close(times, torch.linspace(1, 99, UNITS), rtol=0, atol=3)
    assert float(times[0]) >= 1
    assert float(times[-1]) <= 99.001


@pytest.mark.parametrize("cell", KEEPING)
def test_uniform_gates_are_uniform(cell: str) -> None:
    torch.manual_seed(0)
    gates = torch.sigmoid(KEEPING[cell](UniformGate())).sort().values
    torch.testing.assert_close(gates, torch.linspace(0, 1, UNITS), rtol=0, atol=0.03)
    assert float(gates[0]) + 1e-6 >= 1 / UNITS


@pytest.mark.parametrize("start", [Chrono(50), UniformGate()])
@pytest.mark.parametrize("make", [cells.SLSTMCell, cells.MinLSTMCell, cells.LayerNormLSTMCell])
def test_the_input_gate_gets_the_opposite(make: Any, start: Any) -> None:
    cell = make(UNITS, forget_bias=start)
    assert bias(cell, "f").any()
    assert torch.equal(bias(cell, "i"), -bias(cell, "f"))
    assert not bias(make(UNITS, forget_bias=1.0), "i").any()


def test_layers_draw_their_own_and_a_seed_repeats_them() -> None:
    torch.manual_seed(3)
    stack = GRU(2, 8, 2, update_bias=Chrono(20))
    torch.manual_seed(3)
    again = GRU(2, 8, 2, update_bias=Chrono(20))
    assert not torch.equal(bias(stack.layer(0).cell, "u"), bias(stack.layer(1).cell, "u"))
    for k in range(2):
        assert torch.equal(bias(stack.layer(k).cell, "u"), bias(again.layer(k).cell, "u"))


def test_few_units_and_bad_arguments() -> None:
    assert bias(cells.GRUCell(1, update_bias=UniformGate()), "u").tolist() == [0.0]
    assert bias(cells.GRUCell(3, update_bias=Chrono(2)), "u").tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="expected longest of at least 2 steps, got 1"):
        Chrono(1)
    with pytest.raises(TypeError, match="expected longest to be a number, got 'long'"):
        Chrono("long")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected bias=True with forget_bias=Chrono\(longest=9\), got bias=False"):
        LSTM(2, 3, bias=False, forget_bias=Chrono(9))
