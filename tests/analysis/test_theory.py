"""Theorem 1.1 reproduced: gated nets are flagged as short-range, unitary ones are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from registry import randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, FullUnitary, Kronecker
from slimrnn.analysis import _tangents
from slimrnn.analysis._trajectory import run
from slimrnn.analysis.theory import MemoryRange, memory_range
from slimrnn.layers import RecurrentStack

INPUTS, HIDDEN = 3, 12


def inputs(steps: int = 120, batch: int = 8, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(steps, batch, INPUTS, dtype=dtype, generator=torch.Generator().manual_seed(0))


def one(layer: RecurrentStack | nn.RNNBase, x: Tensor | None = None, **options: Any) -> MemoryRange:
    (found,) = memory_range(layer, inputs(dtype=next(layer.parameters()).dtype) if x is None else x, **options)
    return found


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


# --- the decay --------------------------------------------------------------------------------------------


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
    for t, x_BI in enumerate(x):
        if t:
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


def test_relu_units_that_are_all_off_forget_at_once() -> None:
    rnn = RNN(INPUTS, HIDDEN, nonlinearity="relu", dtype=torch.float64)
    with torch.no_grad():
        rnn.cell.get_parameter("bias").fill_(-100)
    found = one(rnn, hx=torch.ones(1, 8, HIDDEN, dtype=torch.float64))
    assert found.short_range
    assert (found.decay, found.time_constant) == (0.0, 0.0)


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
