"""Costs of recurrent layers against dense ones."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from registry import CELLS, FIELDS, STRUCTURES
from slimrnn import GRU, LSTM, Dense, LowRank, summary
from slimrnn.analysis import layer_costs


@pytest.mark.parametrize(("name", "complex"), FIELDS)
def test_costs_are_those_of_the_layer_and_of_its_dense_twin(name: str, complex: bool) -> None:
    case = CELLS["identity-complex" if complex else "lstm-peephole"]
    structures = (STRUCTURES[name], Dense())
    layer, dense = (case.build(5, 12, structure=structure, transition_depth=2) for structure in structures)
    (cost,) = layer_costs(layer)
    assert cost.parameters == layer.num_parameters
    assert cost.dense_parameters == dense.num_parameters
    assert (cost.macs, cost.dense_macs) == (summary(layer).layers[0].macs, summary(dense).layers[0].macs)
    assert cost.structure == repr(STRUCTURES[name])
    assert cost.state_size == 24


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_parameters_of_torch_layers_are_all_counted(kind: Any, bias: bool) -> None:
    layer = kind(3, 4, num_layers=2, bidirectional=True, bias=bias)
    costs = layer_costs(layer)
    assert [cost.layer for cost in costs] == ["l0", "l0_reverse", "l1", "l1_reverse"]
    assert sum(cost.parameters for cost in costs) == sum(p.numel() for p in layer.parameters())
    assert all(cost.parameter_ratio == cost.mac_ratio == 1 for cost in costs)


def test_the_state_has_everything_that_is_carried() -> None:
    assert layer_costs(nn.LSTM(3, 4))[0].state_size == 8
    assert layer_costs(GRU(3, 4, delays=5))[0].state_size == 20
    assert [cost.state_size for cost in layer_costs(LSTM(3, 4, delays=(1, 3)))] == [4, 12]


def test_the_summary_says_what_is_saved() -> None:
    (cost,) = layer_costs(GRU(1, 128, structure=LowRank(8)))
    assert cost.summary() == (
        "l0 LowRank(8): 7,040 parameters (0.141 of dense), 6,528 multiply-adds a step (0.132 of dense), "
        "state of 128 numbers"
    )
