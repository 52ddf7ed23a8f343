"""How small changes of the state fall: against spectral radii, finite differences and Jacobians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from memory_cases import HIDDEN, INPUTS, inputs, one
from torch import Tensor

from registry import randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal
from slimrnn.analysis.memory import _tangents
from slimrnn.analysis.model.trajectory import run


@pytest.mark.parametrize("radius", [0.5, 0.99, 1.02])
def test_decay_of_a_linear_net_is_its_spectral_radius(radius: float) -> None:
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="identity", structure=Diagonal(), dtype=torch.float64)
    values = torch.full((HIDDEN,), radius / 4, dtype=torch.float64)
    values[3] = radius
    with torch.no_grad():
        rnn.layer(0).recurrent.nearest_(torch.diag(values)[None])
    found = one(rnn)
    assert found.decay == pytest.approx(radius, rel=1e-9)
    assert found.contraction == pytest.approx(radius, rel=1e-9)
    assert found.short_range == (radius < 1)
    if radius < 1:
        assert found.time_constant == pytest.approx(-1 / math.log(radius))


@pytest.mark.parametrize("radius", [0.8, 1.0])
@pytest.mark.parametrize("delay", [2, 3])
def test_delays_lengthen_the_memory_and_so_the_decay(delay: int, radius: float) -> None:
    """The lecture: gradients fall as a function of τ/d."""
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="identity", structure=Diagonal(), delays=delay, dtype=torch.float64)
    with torch.no_grad():
        rnn.layer(0).recurrent.nearest_(radius * torch.eye(HIDDEN, dtype=torch.float64)[None])
    found = one(rnn, inputs(steps=122))
    assert found.decay == pytest.approx(radius ** (1 / delay), rel=1e-3)
    assert found.short_range == (radius < 1)


LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gru": (GRU, {}),
    "gru before, leaky": (GRU, {"reset": "before", "leak": 0.4}),
    "gru deep": (GRU, {"transition_depth": 2}),
    "gru skip": (GRU, {"skip": 3}),
    "lstm": (LSTM, {"peephole": True}),
    "lstm delay": (LSTM, {"delays": 2}),
    "modrelu": (RNN, {"nonlinearity": "modrelu"}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_changes_are_carried_as_finite_differences_say(name: str) -> None:
    """The sum of the logarithms is that of |s_T(s_0 + ε v) − s_T(s_0)|/ε, the layer run from both states."""
    make, options = LAYERS[name]
    torch.manual_seed(0)
    layer = randomise_(make(INPUTS, HIDDEN, dtype=torch.float64, **options))
    x, small = inputs(steps=10, batch=2), 1e-7
    state = tuple(torch.randn_like(part) for part in as_tuple(layer.initial_state(2)))
    (trajectory,) = run(layer, x, hx=as_given(state))
    growth = _tangents.growth(layer.cores[0], trajectory, seed=3).sum(0)
    generator = torch.Generator().manual_seed(3)
    change = [torch.randn(part[0].shape, dtype=part.dtype, generator=generator) for part in state]
    size = sum(part.abs().square().sum(-1) for part in change) ** 0.5
    moved = tuple(
        part + small * (move / size.unsqueeze(-1)).unsqueeze(0) for part, move in zip(state, change, strict=True)
    )
    ends = [as_tuple(layer(x, as_given(start))[1]) for start in (state, moved)]
    apart = sum((a - b).abs().square().sum(-1)[0] for a, b in zip(*ends, strict=True)) ** 0.5
    np.testing.assert_allclose(growth, np.log((apart / small).detach().numpy()), atol=1e-4)


def as_tuple(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


def as_given(state: tuple[Tensor, ...]) -> Any:
    return state if len(state) > 1 else state[0]


@pytest.mark.parametrize("name", ["gru", "lstm", "modrelu"])
def test_contraction_is_the_largest_norm_of_a_jacobian(name: str) -> None:
    make, options = LAYERS[name]
    torch.manual_seed(0)
    layer = randomise_(make(INPUTS, 4, dtype=torch.float64, **options))
    x = inputs(steps=20, batch=1)
    found = one(layer, x)
    core, norms, state = layer.cores[0], [], layer.cores[0].initial_state(1)
    for x_BI in x:
        norms.append(np.linalg.norm(jacobian(core, x_BI, state), 2))
        state = core.step(x_BI, state)
    assert found.contraction == pytest.approx(max(norms), rel=0.01)
    assert found.contraction <= max(norms) * (1 + 1e-9)


def jacobian(core: Any, x: Tensor, state: tuple[Tensor, ...]) -> Any:
    """∂s_t/∂s_{t−1} over the real numbers, column by column, by central differences."""
    flat = torch.cat([torch.view_as_real(p).flatten() if p.is_complex() else p.flatten() for p in state])

    def after(flat: Tensor) -> Tensor:
        pieces = flat.detach().chunk(len(state))
        if state[0].is_complex():
            pieces = tuple(torch.view_as_complex(piece.reshape(-1, 2).contiguous()) for piece in pieces)
        new = core.step(x, tuple(piece[None] for piece in pieces))
        return torch.cat([torch.view_as_real(p).flatten() if p.is_complex() else p.flatten() for p in new])

    step = 1e-6
    columns = [(after(flat + step * e) - after(flat - step * e)) / (2 * step) for e in torch.eye(len(flat)).double()]
    return torch.stack(columns, 1).detach().numpy()
