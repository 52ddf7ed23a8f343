"""recurrent_dropout with a mask of h for each gate: W_g (m_g ⊙ h)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from registry import CELLS, FEW_PAIRS, STRUCTURES, numbers, randomise_
from slimrnn import GRU, LSTM, Diagonal, LowRank
from slimrnn.layers.drawn import draw

OPTIONS: dict[str, Any] = {"recurrent_dropout": (0.0, 0.5), "mask_per_gate": True}


def test_a_gru_computes_its_equation_with_three_masks() -> None:
    gru = randomise_(GRU(3, 8, structure=LowRank(2) + Diagonal(), reset="before", dtype=torch.float64, **OPTIONS))
    layer, x = gru.layer(0), numbers(6, 2, 3)
    torch.manual_seed(1)
    mask_BGH = draw(layer, x).h_mask
    assert mask_BGH is not None
    assert mask_BGH.shape == (2, 3, 8)
    torch.manual_seed(1)
    output = gru(x)[0].detach().numpy()
    assert layer.cell.bias is not None
    w, u, b = (t.detach().numpy() for t in (layer.recurrent.dense(), layer.input.dense(), layer.cell.bias))
    masks = mask_BGH.numpy()
    for row in range(2):
        h = np.zeros(8)
        for t, x_t in enumerate(x[:, row].numpy()):
            a = [u[g] @ x_t + b[g] for g in range(3)]
            reset, update = (1 / (1 + np.exp(-a[g] - w[g] @ (masks[row, g] * h))) for g in range(2))
            candidate = np.tanh(a[2] + w[2] @ (masks[row, 2] * (reset * h)))
            h = (1 - update) * candidate + update * h
            np.testing.assert_allclose(output[t, row], h, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_without_a_mask_that_drops_it_is_the_plain_layer(cell: str, structure: str) -> None:
    case = CELLS[cell]
    stack = randomise_(case.build(3, 12, structure=STRUCTURES[structure], recurrent_dropout=1e-13, mask_per_gate=True))
    x = numbers(5, 2, 3)
    found = stack(x)[0]
    torch.testing.assert_close(found, stack.eval()(x)[0], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", [{"delays": 2}, {"skip": 2}, {"transition_depth": 2}, {"checkpoint_every": 2}])
def test_everything_dropped_leaves_the_inputs(options: dict[str, Any]) -> None:
    rates: dict[str, Any] = {"recurrent_dropout": (0.0, 1.0), "dtype": torch.float64, **options}
    x = numbers(6, 2, 3)
    torch.manual_seed(0)
    per_gate = LSTM(3, 8, mask_per_gate=True, **rates)
    torch.manual_seed(0)
    shared = LSTM(3, 8, **rates)
    torch.testing.assert_close(per_gate(x)[0], shared(x)[0], rtol=1e-12, atol=1e-12)


def test_gates_have_different_masks_and_sequences_too() -> None:
    mask = draw(LSTM(3, 64, **OPTIONS).layer(0), numbers(4, 2, 3).float()).h_mask
    assert mask is not None
    rows = mask.flatten(0, 1)
    assert len({tuple(row.tolist()) for row in rows}) == 8
    assert set(mask.unique().tolist()) == {0.0, 2.0}


def test_it_runs_where_other_layers_run() -> None:
    assert GRU(3, 4, **OPTIONS).runs_as == GRU(3, 4).runs_as


def test_a_mask_needs_a_rate() -> None:
    with pytest.raises(ValueError, match="expected recurrent_dropout with mask_per_gate, got none"):
        GRU(3, 4, mask_per_gate=True)
