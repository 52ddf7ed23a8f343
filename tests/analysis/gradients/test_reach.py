"""Gradient reach against finite differences, torch's own autograd and the closed form of a linear net."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from registry import CELLS, FIELDS, STRUCTURES, randomise_
from slimrnn import GRU, LSTM, RNN, FullUnitary, ReadOut
from slimrnn.analysis import Reach, find_layers, input_reach, power_norms, state_reach

STEPS, BATCH, INPUTS, HIDDEN = 6, 2, 2, 3
TORCH: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

Run = Callable[[Tensor, Any], tuple[Tensor, Any]]


def numbers(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64)


def real_parts(states: Any) -> Tensor:
    """(layers, B, S): h, or h and c side by side, real numbers."""
    parts = (states,) if isinstance(states, Tensor) else states
    return torch.cat([torch.view_as_real(p).flatten(-2) if p.is_complex() else p for p in parts], -1)


def moved(states: Any, layer: int, unit: int, step: float) -> Any:
    """The states with one real number of a layer's state moved, in every sequence."""
    parts = [p.clone() for p in ((states,) if isinstance(states, Tensor) else states)]
    views = [torch.view_as_real(p).flatten(-2) if p.is_complex() else p for p in parts]
    width = views[0].shape[-1]
    flat = views[unit // width]
    flat[layer, :, unit % width] += step
    if parts[0].is_complex():
        views = [torch.view_as_complex(view.unflatten(-1, (-1, 2))) for view in views]
    return views[0] if isinstance(states, Tensor) else tuple(views)


@torch.no_grad()
def by_differences(run: Run, x: Tensor, layer: int = 0, step: float = 1e-6) -> list[Tensor]:
    """∂s_T/∂s_t, (B, S, S), for every lag, from the layers' own forward pass cut in two."""
    found = []
    for lag in range(len(x) + 1):
        t = len(x) - lag
        before = run(x[:t], None)[1] if t else run(x[:1], None)[1]
        if t == 0:
            parts = (before,) if isinstance(before, Tensor) else before
            zeros = tuple(torch.zeros_like(p) for p in parts)
            before = zeros[0] if isinstance(before, Tensor) else zeros
        columns = []
        for unit in range(real_parts(before).shape[-1]):
            pair = (moved(before, layer, unit, change) for change in (step, -step))
            up, down = (real_parts(run(x[t:], state)[1] if lag else state)[layer] for state in pair)
            columns.append((up - down) / (2 * step))
        found.append(torch.stack(columns, -1))
    return found


def check(reach: Reach, jacobians: list[Tensor], rows: slice = slice(None)) -> None:
    kept = [jacobian[:, rows, rows].numpy() for jacobian in jacobians]
    frobenius = np.array([np.linalg.norm(j, axis=(1, 2)) for j in kept])
    spectral = np.array([np.linalg.norm(j, 2, axis=(1, 2)) for j in kept])
    assert reach.log_spectral is not None
    assert reach.lags.tolist() == list(range(len(jacobians)))
    np.testing.assert_allclose(np.exp(reach.log_frobenius), frobenius, atol=1e-8)
    np.testing.assert_allclose(np.exp(reach.log_spectral), spectral, atol=1e-8)


@pytest.mark.parametrize("kind", TORCH)
def test_torch_layers_reach_as_far_as_their_finite_differences(kind: str) -> None:
    torch.manual_seed(0)
    layer: Any = TORCH[kind](INPUTS, HIDDEN, num_layers=2, dtype=torch.float64)
    x = numbers(STEPS, BATCH, INPUTS)
    for depth, view in enumerate(find_layers(layer)):
        jacobians = by_differences(layer, x, depth)
        check(state_reach(view, x), jacobians)
        check(state_reach(view, x, part="h"), jacobians, slice(0, HIDDEN))
        if kind == "lstm":
            check(state_reach(view, x, part="c"), jacobians, slice(HIDDEN, None))


# At the zero state, an sLSTM divides by zero states and a LayerNorm by no variance: differences say nothing there.
@pytest.mark.parametrize("name", [name for name in CELLS if not name.startswith(("slstm", "layer-norm"))])
def test_every_cell_reaches_as_far_as_its_finite_differences(name: str) -> None:
    torch.manual_seed(1)
    stack = randomise_(CELLS[name].build(INPUTS, HIDDEN))
    x = numbers(STEPS, BATCH, INPUTS)
    check(state_reach(stack, x), by_differences(stack, x))


@pytest.mark.parametrize("options", [{"delays": 3}, {"skip": 2}], ids=str)
@pytest.mark.parametrize("name", ["tanh", "lstm", "gru-after"])
def test_lines_of_states_reach_as_far_as_their_finite_differences(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(2)
    stack = randomise_(CELLS[name].build(INPUTS, HIDDEN, **options))
    x = numbers(STEPS + 1, BATCH, INPUTS)
    jacobians = by_differences(stack, x)
    check(state_reach(stack, x), jacobians)
    check(state_reach(stack, x, part="h"), jacobians, slice(0, HIDDEN))


def test_a_delayed_net_has_no_gradient_between_its_lanes() -> None:
    reach = state_reach(RNN(1, 4, delays=3), torch.randn(9, 1), part="h")
    assert [norm > 0 for norm in reach.norms()] == [lag % 3 == 0 for lag in range(10)]


@pytest.mark.parametrize("name", [name for name, field in FIELDS if not field])
def test_a_linear_net_reaches_as_far_as_the_powers_of_its_matrix(name: str) -> None:
    torch.manual_seed(3)
    rnn = randomise_(RNN(2, 12, nonlinearity="identity", structure=STRUCTURES[name], dtype=torch.float64))
    reach, powers = state_reach(rnn, numbers(20, 2)), power_norms(rnn.cores[0].recurrent, range(1, 21))
    assert reach.log_spectral is not None
    np.testing.assert_allclose(reach.log_frobenius[1:, 0], powers.log_frobenius, atol=1e-9)
    np.testing.assert_allclose(reach.log_spectral[1:, 0], powers.log_spectral, atol=1e-9)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_complex_number_counts_as_two_real_ones(name: str) -> None:
    torch.manual_seed(4)
    case = CELLS["identity-complex"]
    rnn = randomise_(case.build(2, 12, structure=STRUCTURES[name]))
    reach, powers = state_reach(rnn, numbers(5, 2)), power_norms(rnn.cores[0].recurrent, range(1, 6))
    assert reach.log_spectral is not None
    np.testing.assert_allclose(reach.log_frobenius[1:, 0], powers.log_frobenius + math.log(2) / 2, atol=1e-9)
    np.testing.assert_allclose(reach.log_spectral[1:, 0], powers.log_spectral, atol=1e-9)


def test_inputs_of_a_linear_net_reach_as_far_as_its_powers() -> None:
    torch.manual_seed(5)
    rnn = RNN(2, 5, nonlinearity="identity", dtype=torch.float64)
    W, U = (map.dense()[0].detach().numpy() for map in (rnn.layer(0).recurrent, rnn.layer(0).input))
    products = [np.linalg.matrix_power(W, k) @ U for k in range(15)]
    reach = input_reach(rnn, numbers(15, 2))
    np.testing.assert_allclose(reach.norms(), [np.linalg.norm(p) for p in products])
    np.testing.assert_allclose(reach.norms("spectral"), [np.linalg.norm(p, 2) for p in products])


def gradients_of_inputs(layer: Any, x: Tensor, loss: Callable[[Tensor], Tensor]) -> Any:
    """‖∂loss/∂x_t‖ by one pass of autograd, (lags, B)."""
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(layer(leaf)[0][-1]).sum(), leaf)
    return torch.linalg.vector_norm(gradient, dim=-1).flip(0).numpy()


def curved(last: Tensor) -> Tensor:
    return (last.cumsum(-1) ** 3).sum(-1)


@pytest.mark.parametrize(("kind", "options"), [("rnn", {}), ("gru", {}), ("lstm", {}), ("lstm", {"proj_size": 2})])
def test_loss_reaches_torch_inputs_as_autograd_says(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(6)
    layer: Any = TORCH[kind](INPUTS, HIDDEN, num_layers=2, dtype=torch.float64, **options)
    x = numbers(STEPS * 5, BATCH, INPUTS)  # several segments
    reach = input_reach(layer, x, loss=curved)
    np.testing.assert_allclose(np.exp(reach.log_frobenius), gradients_of_inputs(layer, x, curved))
    np.testing.assert_allclose(reach.norms("spectral"), reach.norms())


@pytest.mark.parametrize("options", [{}, {"delays": (1, 2), "num_layers": 2}, {"skip": 3}], ids=str)
@pytest.mark.parametrize("name", ["tanh", "modrelu", "lstm", "gru-before"])
def test_loss_reaches_our_inputs_as_autograd_says(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(7)
    stack = randomise_(CELLS[name].build(INPUTS, 4, **options))
    x = numbers(STEPS * 5, BATCH, INPUTS)
    reach = input_reach(stack, x, loss=curved)
    np.testing.assert_allclose(np.exp(reach.log_frobenius), gradients_of_inputs(stack, x, curved))


@pytest.mark.parametrize(("ours", "theirs"), [(RNN, nn.RNN), (GRU, nn.GRU), (LSTM, nn.LSTM)])
def test_our_layers_reach_as_far_as_torchs(ours: Any, theirs: Any) -> None:
    torch.manual_seed(8)
    layer = theirs(INPUTS, HIDDEN, num_layers=2, batch_first=True)
    twin, x = ours.from_torch(layer), torch.randn(BATCH, 20, INPUTS)
    np.testing.assert_allclose(input_reach(layer, x).log_frobenius, input_reach(twin, x).log_frobenius, atol=1e-6)
    for view, same in zip(find_layers(layer), find_layers(twin), strict=True):
        np.testing.assert_allclose(state_reach(view, x).log_frobenius, state_reach(same, x).log_frobenius, atol=1e-6)


def test_each_direction_reaches_in_its_own_order() -> None:
    torch.manual_seed(9)
    both = nn.GRU(INPUTS, HIDDEN, bidirectional=True, dtype=torch.float64)
    alone = nn.GRU(INPUTS, HIDDEN, dtype=torch.float64)
    reverse = {name.removesuffix("_reverse"): p for name, p in both.state_dict().items() if "reverse" in name}
    alone.load_state_dict(reverse)
    x = numbers(12, BATCH, INPUTS)
    _, backwards = find_layers(both)
    for measure in (state_reach, input_reach):
        expected = measure(alone, x.flip(0))
        np.testing.assert_allclose(measure(backwards, x).log_frobenius, expected.log_frobenius)


@pytest.mark.parametrize("measure", [state_reach, input_reach])
def test_ragged_sequences_reach_from_their_own_ends(measure: Any) -> None:
    torch.manual_seed(10)
    rnn, x, lengths = LSTM(INPUTS, HIDDEN), torch.randn(9, 3, INPUTS), [5, 9, 1]
    reach = measure(rnn, x, lengths=lengths)
    for b, length in enumerate(lengths):
        alone = measure(rnn, x[:length, b]).log_frobenius[:, 0]
        np.testing.assert_allclose(reach.log_frobenius[: len(alone), b], alone)
        assert np.isnan(reach.log_frobenius[len(alone) :, b]).all()
    assert np.isfinite(reach.curve()).all()


def test_reach_starts_from_the_given_state() -> None:
    torch.manual_seed(11)
    rnn, x, hx = GRU(INPUTS, HIDDEN, dtype=torch.float64), numbers(8, BATCH, INPUTS), numbers(1, BATCH, HIDDEN)
    _, half = rnn(x[:4], hx)
    for measure in (state_reach, input_reach):
        whole, rest = measure(rnn, x, hx), measure(rnn, x[4:], half)
        np.testing.assert_allclose(whole.log_frobenius[: len(rest.lags)], rest.log_frobenius)
        fewer = measure(rnn, x, hx, lags=2)
        np.testing.assert_array_equal(fewer.log_frobenius, whole.log_frobenius[:3])


def test_a_read_out_in_single_precision_is_a_loss() -> None:
    rnn = LSTM(INPUTS, HIDDEN)
    readout, targets = ReadOut(rnn, 4), torch.tensor([1, 3])

    def loss(last: Tensor) -> Tensor:
        return nn.functional.cross_entropy(readout(last[None])[0], targets, reduction="none")

    reach = input_reach(rnn, torch.randn(5, 2, INPUTS), loss=loss)
    assert reach.of == "∂loss/∂x_t"
    assert np.isfinite(reach.log_frobenius).all()


@pytest.mark.parametrize("measure", [state_reach, input_reach])
def test_estimates_are_unbiased_within_their_stated_error(measure: Any) -> None:
    torch.manual_seed(12)
    rnn, x = LSTM(INPUTS, 8, dtype=torch.float64), numbers(10, BATCH, INPUTS)
    exact = np.exp(2 * measure(rnn, x).log_frobenius)
    many = measure(rnn, x, probes=2000)
    off = np.abs(np.exp(2 * many.log_frobenius) / exact - 1)
    assert (off < 4.5 * many.relative_error + 1e-12).all()
    assert (many.relative_error <= 1.1 * math.sqrt(2 / 2000)).all()
    few = [measure(rnn, x, probes=8, seed=seed) for seed in range(100)]
    squares = np.array([np.exp(2 * reach.log_frobenius) for reach in few]) / exact
    stated = np.sqrt(np.mean([reach.relative_error**2 for reach in few], axis=0))
    np.testing.assert_allclose(squares.std(0), stated, rtol=0.35, atol=1e-12)


def test_estimates_of_a_unitary_net_are_exact() -> None:
    reach = state_reach(RNN(1, 16, nonlinearity="identity", structure=FullUnitary()), torch.randn(300, 1), probes=1)
    np.testing.assert_allclose(reach.norms(), 4, rtol=1e-5)
    assert reach.half_life() == math.inf
    assert reach.per_step() == pytest.approx(1, abs=1e-7)
