"""parameter_groups: the recurrent matrices at a learning rate of their own, and every parameter once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import slimrnn
from registry import CELLS, FEW_PAIRS, SIZE, STRUCTURES
from slimrnn import GRU, LSTM, RNN, Kronecker


@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_every_stack_has_each_parameter_once_at_its_rate(cell: str, structure: str) -> None:
    stack = CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure], num_layers=2, bidirectional=True)
    groups = stack.parameter_groups(0.5, recurrent_rate=0.1)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(rates) == len(list(stack.parameters()))
    recurrent = {id(p) for core in stack.cores for map in core.maps for p in map.parameters()}
    for p in stack.parameters():
        assert rates[id(p)] == (0.5 * 0.1 if id(p) in recurrent else 0.5)


def test_an_optimizer_moves_them_at_these_rates() -> None:
    stack = RNN(3, 4, structure=Kronecker([2, 2]), dtype=torch.float64)
    before = [p.detach().clone() for p in stack.parameters()]
    optimizer = torch.optim.SGD(stack.parameter_groups(1.0, recurrent_rate=0.25), lr=1.0)
    for p in stack.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    for (name, p), old in zip(stack.named_parameters(), before, strict=True):
        assert torch.allclose(old - p, torch.full_like(p, 0.25 if ".recurrent." in name else 1.0)), name


def test_of_a_whole_model_with_layers_of_all_kinds() -> None:
    shared = GRU(3, 4, skip=2, transition_depth=2)
    parts: dict[str, Any] = {"a": shared, "b": nn.Sequential(shared), "c": nn.LSTM(3, 4), "d": nn.GRUCell(3, 4)}
    parts |= {"e": nn.Linear(4, 2), "f": LSTM(3, 4)}
    model = nn.ModuleDict(parts)
    others, recurrent = slimrnn.parameter_groups(model, 1e-3)
    assert (others["lr"], recurrent["lr"]) == (1e-3, 1e-3 * 0.1)
    names = {id(p): name for name, p in model.named_parameters()}
    found = {names[id(p)] for p in recurrent["params"]}
    assert found == {
        "a.layers.0.recurrent.weight",
        "a.layers.0.deeper_maps.0.weight",
        "a.layers.0.skipped.weight",
        "c.weight_hh_l0",
        "d.weight_hh",
        "f.layers.0.recurrent.weight",
    }
    assert {names[id(p)] for p in others["params"]} == set(names.values()) - found


def test_without_recurrent_matrices_there_is_one_group() -> None:
    (group,) = slimrnn.parameter_groups(nn.Linear(2, 3), 0.1)
    assert len(group["params"]) == 2


def test_wrong_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="expected recurrent_rate of at least 0, got -1"):
        GRU(2, 3).parameter_groups(0.1, recurrent_rate=-1)
    with pytest.raises(TypeError, match="expected lr to be a number"):
        GRU(2, 3).parameter_groups("0.1")  # type: ignore[arg-type]
