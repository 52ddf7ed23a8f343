"""Of a cell that it does not know, the doctor says what does not depend on the cell, and nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from slimrnn import GRU, LEM, CoRNN, MinGRU
from slimrnn.analysis import Diagnosis, diagnose, find_layers, html_report
from slimrnn.cells import Cell, GRUCell
from slimrnn.cells.base import Matvec, State
from slimrnn.layers import RecurrentStack


class MinimalCell(Cell):
    """f = σ(U_f x + W_f h);  h ← (1 − f) ⊙ h + f ⊙ tanh(U_n x + W_n (f ⊙ h)): docs/extending.md's."""

    gates = ("f", "n")

    def __init__(self, hidden_size: int, bias: bool = True, **options: Any) -> None:
        super().__init__(hidden_size)
        self.register_parameter("bias", self._zeros(2, **options))

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        h = state[0]
        x_f, x_n = wx_BGH.unbind(-2)
        f = torch.sigmoid(x_f + matvec(h, slice(0, 1)).squeeze(-2))
        n = torch.tanh(x_n + matvec(f * h, slice(1, 2)).squeeze(-2))
        return (h + f * (n - h),)


class ThreeStates(MinimalCell):
    """Besides, two running means of h."""

    states = 3

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = super().step(wx_BGH, matvec, state)
        return h + 0.1 * state[2], 0.5 * (state[1] + h), 0.9 * state[2] + 0.1 * h


class OtherGRU(GRUCell):
    """No GRU any more."""

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        return (torch.tanh((wx_BGH + matvec(state[0])).sum(-2)),)


def diagnosed(cell: type[Cell], steps: int = 360) -> Diagnosis:
    torch.manual_seed(0)
    rnn = RecurrentStack(partial(cell), 2, 5, dtype=torch.float64)
    return diagnose(rnn, torch.randn(steps, 3, 2, dtype=torch.float64))


@pytest.mark.parametrize("cell", [MinimalCell, ThreeStates, OtherGRU])
def test_measures_what_does_not_depend_on_the_cell(cell: type[Cell]) -> None:
    diagnosis = diagnosed(cell)
    (layer,) = diagnosis.layers
    assert [one.gate for one in layer.spectra] == list(cell.gates)
    for measured in (layer.reach, layer.input_reach, layer.convergence, layer.capacity):
        assert measured is not None
    assert layer.memory_range is not None
    assert layer.memory_range.conditions == {}
    assert not layer.memory_range.theorem
    assert abs(layer.memory_range.decay - layer.reach.per_step()) < 0.05  # type: ignore[union-attr]


def test_says_what_was_left_out_and_why() -> None:
    diagnosis = diagnosed(MinimalCell)
    (layer,) = diagnosis.layers
    assert layer.candidate is None
    assert layer.gates == ()
    assert "MinimalCell, of which it is not known what its gates do" in layer.left_out["gates"]
    assert "theorem 1.1" in layer.left_out
    text = str(diagnosis)
    assert "Minimal of 5 units" in text
    assert "RNN of" not in text
    assert "recurrent matrix" not in text
    assert "update_bias" not in text
    assert "candidate matrix: radius" in text
    assert "not known what its gates do" in html_report(diagnosis, diagnosis)


def test_a_layer_without_data_is_no_elman_net() -> None:
    diagnosis = diagnose(RecurrentStack(partial(MinimalCell), 2, 5))
    assert [finding.seen for finding in diagnosis.findings] == []
    assert "not known what its gates do" in " ".join(str(diagnosis).split())


def test_cells_of_ours_keep_their_names() -> None:
    (view,) = find_layers(GRU(2, 3))
    assert (view.kind, list(view.maps)) == ("gru", ["r", "u", "n"])


@pytest.mark.parametrize(("layer", "matrices"), [(MinGRU, 0), (CoRNN, 2), (LEM, 4)])
def test_cells_with_more_or_fewer_matrices_than_gates(layer: type[RecurrentStack], matrices: int) -> None:
    torch.manual_seed(0)
    make: Any = layer
    (found,) = diagnose(make(2, 5, dtype=torch.float64), torch.randn(60, 3, 2, dtype=torch.float64)).layers
    assert len(found.spectra) == matrices
    assert found.reach is not None
