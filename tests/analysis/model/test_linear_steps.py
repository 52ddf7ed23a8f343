"""Derivatives of steps, found for all of them at once: against torch's Jacobians of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import randomise_
from slimrnn import GRU, LEM, LSTM, RNN, BlockDiagonal, Kronecker, LayerNormGRU
from slimrnn._fields import from_pairs, pairs_flat
from slimrnn.analysis.memory import _tangents
from slimrnn.analysis.model.layers import frozen
from slimrnn.analysis.model.linear_steps import Linearizer, can_serve
from slimrnn.analysis.model.trajectory import run
from slimrnn.cells.base import State
from slimrnn.layers.recurrent_layer import RecurrentLayer

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 3, 4
LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tanh": (RNN, {}),
    "modrelu": (RNN, {"nonlinearity": "modrelu", "structure": Kronecker([2, 2])}),
    "gru": (GRU, {"structure": BlockDiagonal(2)}),
    "gru before, leaky": (GRU, {"reset": "before", "leak": 0.4}),
    "gru deep": (GRU, {"transition_depth": 2}),
    "lstm": (LSTM, {"peephole": True, "zoneout": 0.2}),
    "lem": (LEM, {}),
}


def a_core(name: str) -> RecurrentLayer:
    make, options = LAYERS[name]
    torch.manual_seed(0)
    return frozen(randomise_(make(INPUTS, HIDDEN, dtype=torch.float64, **options))).cores[0]


def flat(state: State) -> Tensor:
    return torch.cat([pairs_flat(part) for part in state], -1)


def unflat(rows: Tensor, like: State) -> State:
    parts = rows.chunk(len(like), -1)
    return tuple(from_pairs(part) for part in parts) if like[0].is_complex() else parts


def jacobian(core: RecurrentLayer, x_I: Tensor, before: State) -> Tensor:
    """Of one step of one sequence, (S, S)."""
    advance = core.advance()
    wx = core.input_product(x_I[None])

    def after(rows_S: Tensor) -> Tensor:
        return flat(advance(wx, unflat(rows_S[None], before)))[0]

    found: Any = torch.autograd.functional.jacobian(after, flat(before)[0])
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_linear_steps_are_the_jacobians_of_steps(name: str, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr("slimrnn.analysis.model.linear_steps.DENSE", 0)
    core = a_core(name)
    assert can_serve(core)
    x, random = torch.randn(STEPS, BATCH, INPUTS, dtype=torch.float64), torch.randn
    dtype = torch.complex128 if core.cell.complex else torch.float64
    start = tuple(random(BATCH, HIDDEN, dtype=dtype) for _ in range(core.cell.states))
    steps, states, _ = Linearizer(core).along(x, start)
    for t in range(STEPS):
        v = tuple(random(5, BATCH, HIDDEN, dtype=dtype) for _ in start)
        forth, back = flat(steps.forth(t, v)), flat(steps.back(t, v))
        for b in range(BATCH):
            J = jacobian(core, x[t, b], tuple(part[t, b : b + 1] for part in states))
            torch.testing.assert_close(forth[:, b], flat(v)[:, b] @ J.T, rtol=1e-10, atol=1e-12)
            torch.testing.assert_close(back[:, b], flat(v)[:, b] @ J, rtol=1e-10, atol=1e-12)


def test_a_norm_over_the_units_is_not_taken_apart() -> None:
    """Its derivative mixes units, and the largest one is found all the same."""
    torch.manual_seed(0)
    layer = randomise_(LayerNormGRU(INPUTS, HIDDEN, dtype=torch.float64))
    assert not can_serve(layer.cores[0])
    x = torch.randn(STEPS, BATCH, INPUTS, dtype=torch.float64)
    (trajectory,) = run(layer, x)
    core = frozen(layer.cores[0])
    before = torch.cat([torch.zeros(1, BATCH, HIDDEN, dtype=torch.float64), trajectory.h[:-1]])
    norms = [
        float(torch.linalg.matrix_norm(jacobian(core, x[t, b], (before[t, b : b + 1],)), 2))
        for t in range(STEPS)
        for b in range(BATCH)
    ]
    assert _tangents.largest_norm(core, trajectory, seed=0) == pytest.approx(max(norms), rel=1e-4)
