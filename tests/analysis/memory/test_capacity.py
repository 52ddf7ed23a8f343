"""Capacity against closed forms, known nets, regressions done by numpy, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn import GRU, RNN, Diagonal, FullUnitary
from slimrnn.analysis.memory import _decoding
from slimrnn.analysis.memory.capacity import (
    Capacity,
    channel_information,
    gaussian_information,
    linear_capacity,
    memory_capacity,
)

Array = NDArray[Any]


def orthogonal(n: int, seed: int = 0) -> Array:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0])


def linear_net(W: Array, v: Array, **options: Any) -> RNN:
    rnn = RNN(v.shape[1], len(W), nonlinearity="identity", bias=False, dtype=torch.float64, **options)
    with torch.no_grad():
        rnn.layer(0).recurrent.nearest_(torch.tensor(W)[None])
        rnn.layer(0).input.nearest_(torch.tensor(v)[None])
    return rnn


def delay_line(n: int) -> Array:
    """h_t holds x_t, x_{t−1}, ..., x_{t−n+1}."""
    return np.eye(n, k=-1)


# --- Gaussian channels ------------------------------------------------------------------------------------


def test_information_of_prop_1_4_grows_linearly_with_the_channels() -> None:
    channels = np.array([1, 2, 64, 128])
    np.testing.assert_allclose(gaussian_information(channels, 3.0, 1.0), channels * np.log(2))
    np.testing.assert_allclose(gaussian_information(10, [0.0, 1.0], 2.0), [0.0, 5 * np.log(1.5)])


def test_information_levels_off_where_power_is_shared() -> None:
    channels = 2 ** np.arange(12)
    shared = gaussian_information(channels, 5 / channels, 0.5)
    assert (np.diff(shared) > 0).all()
    assert shared[-1] == pytest.approx(5 / (2 * 0.5), rel=0.01)


def test_prop_1_4_is_the_channel_of_an_orthogonal_matrix() -> None:
    W = np.sqrt(0.7) * orthogonal(8)
    assert channel_information(W, 0.2 * np.eye(8)) == pytest.approx(float(gaussian_information(8, 0.7, 0.2)))


def test_channel_information_is_the_difference_of_entropies() -> None:
    """I = H(Y) − H(Y | X) for Gaussian vectors, and the same seen from the other side, by joint covariance."""
    random = np.random.default_rng(0)
    W, A, B = random.normal(size=(4, 3)), random.normal(size=(4, 4)), random.normal(size=(3, 3))
    noise, signal = A @ A.T, B @ B.T
    output = W @ signal @ W.T + noise
    joint = np.block([[signal, signal @ W.T], [W @ signal, output]])
    entropies = [np.linalg.slogdet(matrix)[1] / 2 for matrix in (signal, output, joint)]
    assert channel_information(W, noise, signal) == pytest.approx(entropies[0] + entropies[1] - entropies[2])


# --- linear nets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 5, 24])
def test_capacities_of_an_orthogonal_net_sum_to_its_units(n: int, radius: float) -> None:
    v = np.random.default_rng(1).normal(size=n)
    found = linear_capacity(radius * orthogonal(n), v, lags=2500)
    assert found.total == n
    assert found.r2.sum() == pytest.approx(n, abs=1e-9)
    assert found.r2.max() <= 1 + 1e-12


def test_capacities_of_a_unitary_net_sum_to_its_units_over_a_finite_past() -> None:
    v = np.random.default_rng(1).normal(size=16)
    found = linear_capacity(orthogonal(16), v, lags=400, steps=400)
    assert found.r2.sum() == pytest.approx(16, abs=1e-9)
    young = linear_capacity(orthogonal(16), v, steps=7)  # all seven inputs are still there
    np.testing.assert_allclose(young.r2, np.ones((7, 1)), atol=1e-9)


def test_a_delay_line_holds_exactly_its_length() -> None:
    found = linear_capacity(delay_line(6), np.eye(6)[0], lags=10)
    np.testing.assert_allclose(found.r2[:, 0], [1] * 6 + [0] * 4, atol=1e-12)
    assert found.reach() == 6


def test_capacity_is_that_of_the_covariance_by_lyapunovs_equation() -> None:
    """Γ = W Γ Wᵀ + v vᵀ solved as a linear system, with a W that is not normal."""
    random = np.random.default_rng(2)
    W, v = 0.35 * random.normal(size=(5, 5)), random.normal(size=(5, 2))
    gamma = np.linalg.solve(np.eye(25) - np.kron(W, W), (v @ v.T).ravel()).reshape(5, 5)
    columns = [np.linalg.matrix_power(W, k) @ v for k in range(60)]
    expected = np.stack([np.einsum("ni,nm,mi->i", c, np.linalg.inv(gamma), c) for c in columns])
    found = linear_capacity(W, v, lags=60)
    np.testing.assert_allclose(found.r2, expected, atol=1e-9)
    assert found.total == 5


def test_directions_below_the_tolerance_count_as_missing() -> None:
    """0.1 · orthogonal: each further input is ten times weaker, so twelve are above 1e-12 of the strongest."""
    net = 0.1 * orthogonal(20)
    assert linear_capacity(net, orthogonal(20, 1)[0]).total == pytest.approx(13, abs=1)
    assert linear_capacity(net, orthogonal(20, 1)[0], tolerance=1e-4).total == pytest.approx(5, abs=1)


def test_units_that_the_input_does_not_reach_do_not_count() -> None:
    W = np.diag([0.9, 0.8, 0.7])
    assert linear_capacity(W, [1.0, 0.0, 1.0]).total == 2
    assert linear_capacity(0.9 * np.eye(3), [1.0, 2.0, 3.0]).total == 1  # all units move alike


def test_a_complex_net_is_the_real_one_of_its_parts() -> None:
    W = np.diag(0.95 * np.exp(1j * np.array([0.3, 1.1, 2.0])))
    found = linear_capacity(W, np.ones(3), lags=500)
    assert (found.total, found.features) == (6.0, 6)
    assert found.r2.sum() == pytest.approx(6, abs=1e-9)


# --- measured ---------------------------------------------------------------------------------------------


def test_measured_capacity_of_an_orthogonal_net_is_its_units() -> None:
    W, v = 0.9 * orthogonal(10), np.random.default_rng(3).normal(size=(10, 1))
    exact = linear_capacity(W, v, lags=60)
    found = memory_capacity(linear_net(W, v), lags=60, steps=100_000)
    assert found.total == pytest.approx(10, abs=0.15)
    np.testing.assert_allclose(found.r2, exact.r2, atol=0.02)
    assert (found.trained_on, found.tested_on) == (69_930, 29_970)


def test_measured_capacity_of_a_complex_unitary_net_is_the_exact_one() -> None:
    """Decoded from real and imaginary parts side by side; with 40 inputs in sequences of 40 steps."""
    torch.manual_seed(0)
    rnn = RNN(1, 6, nonlinearity="identity", complex=True, structure=FullUnitary(), dtype=torch.float64)
    core = rnn.layer(0)
    x = torch.tensor(np.random.default_rng(0).normal(size=(40, 6000, 1)))
    found = memory_capacity(rnn, x, lags=40, washout=0)
    exact = linear_capacity(core.recurrent.dense()[0], core.input.dense()[0], lags=40, steps=40)
    assert exact.r2.sum() == pytest.approx(12, abs=1e-9)
    assert found.features == 12
    np.testing.assert_allclose(found.r2, exact.r2, atol=0.08)
    assert found.total == pytest.approx(12, abs=0.35)


def test_several_inputs_share_the_capacity() -> None:
    W, v = 0.8 * orthogonal(8), np.random.default_rng(4).normal(size=(8, 2))
    found = memory_capacity(linear_net(W, v, batch_first=True), lags=40)
    assert found.r2.shape == (40, 2)
    assert found.total == pytest.approx(8, abs=0.15)


def test_capacity_is_ridge_regression_on_held_out_steps() -> None:
    """The same as numpy's least squares on the whole at once, for a torch.nn layer and a single sequence."""
    torch.manual_seed(0)
    rnn = nn.RNN(1, 5, dtype=torch.float64)
    x = torch.randn(600, 1, dtype=torch.float64)
    found = memory_capacity(rnn, x, lags=4, washout=20, held_out=0.25, ridge=0)
    h, u = rnn(x)[0].detach().numpy(), x.numpy()[:, 0]
    past = np.stack([u[20 - k : 600 - k] for k in range(4)], 1)
    features = np.concatenate([h[20:], np.ones((580, 1))], 1)
    weight = np.linalg.lstsq(features[:435], past[:435], rcond=None)[0]
    errors = ((past[435:] - features[435:] @ weight) ** 2).mean(0)
    np.testing.assert_allclose(found.r2[:, 0], 1 - errors / past[435:].var(0), atol=1e-8)
    assert (found.trained_on, found.tested_on) == (435, 145)


def test_pieces_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    gru = GRU(2, 6, skip=3, dtype=torch.float64)
    whole = memory_capacity(gru, lags=7, steps=500)
    monkeypatch.setattr(_decoding, "PIECE", 37)
    np.testing.assert_allclose(memory_capacity(gru, lags=7, steps=500).r2, whole.r2, atol=1e-8)


def test_short_sequences_and_padding_are_left_out() -> None:
    torch.manual_seed(0)
    gru, x = GRU(1, 4, dtype=torch.float64), torch.randn(30, 40, 1, dtype=torch.float64)
    lengths = [30, 12] * 20
    padded = x.clone()
    padded[12:, 1::2] = torch.nan
    found = memory_capacity(gru, padded, lengths, lags=5, washout=10, held_out=0.5)
    assert (found.trained_on, found.tested_on) == (10 * (20 + 2), 10 * (20 + 2))
    x[12:, 1::2] = 1e3
    np.testing.assert_array_equal(memory_capacity(gru, x, lengths, lags=5, washout=10, held_out=0.5).r2, found.r2)


def test_nothing_is_decoded_where_there_is_no_memory() -> None:
    """A unit of weight 0 knows the current input only; on held-out steps nothing else looks as if it were known."""
    net = linear_net(np.zeros((3, 3)), np.ones((3, 1)), structure=Diagonal())
    found = memory_capacity(net, lags=50, steps=5000)
    assert found.r2[0, 0] == pytest.approx(1)
    assert abs(found.r2[1:]).max() < 0.01
    assert found.total == pytest.approx(1, abs=0.1)


def test_symbols_of_a_delay_line_are_decoded_exactly_as_far_as_it_goes() -> None:
    """Three symbols, a line of four steps for each."""
    net = linear_net(np.kron(delay_line(4), np.eye(3)), np.kron(np.eye(4)[:, :1], np.eye(3)))
    found = memory_capacity(net, symbols=True, lags=7, steps=4000)
    assert found.accuracy is not None
    np.testing.assert_array_equal(found.accuracy[:4], 1)
    assert found.accuracy[4:] == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    assert found.chance == pytest.approx(1 / 3, abs=0.03)
    assert found.reach() == 4
    assert found.total == pytest.approx(4 * 2, abs=0.05)


def test_an_untrained_gru_remembers_less_than_its_units() -> None:
    torch.manual_seed(0)
    gru = nn.GRU(1, 16)
    found = memory_capacity(gru, lags=40, steps=6000)
    assert 1 < found.total < 16
    assert found.r2[0, 0] > 0.95
    assert gru.training


def test_reach_is_the_first_lag_that_falls_short() -> None:
    r2 = np.array([[1.0, 1.0], [0.95, 0.5], [0.95, 0.95]])
    assert Capacity(r2, 0.0, 3).reach() == 1
    assert Capacity(r2, 0.0, 3).reach(0.5) == 3
    assert Capacity(r2, 0.0, 3).reach(2) == 0


# --- bad input --------------------------------------------------------------------------------------------


def test_bad_channels_are_refused() -> None:
    for channels in (0, 1.5, np.nan):
        with pytest.raises(ValueError, match="expected whole numbers of channels, at least 1"):
            gaussian_information(channels)
    with pytest.raises(ValueError, match="expected a finite signal of at least 0"):
        gaussian_information(1, -1.0)
    with pytest.raises(ValueError, match="expected finite noise above 0"):
        gaussian_information(1, 1.0, 0.0)
    with pytest.raises(ValueError, match="expected noise of full rank, got a smallest eigenvalue of 0"):
        channel_information(np.eye(2), np.diag([1.0, 0.0]))
    with pytest.raises(ValueError, match="expected noise to be a symmetric matrix"):
        channel_information(np.eye(2), np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="expected signal to have no negative eigenvalue"):
        channel_information(np.eye(2), np.eye(2), np.diag([1.0, -1.0]))


def test_bad_linear_nets_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a spectral radius below 1, or steps for a finite past, got 1"):
        linear_capacity(orthogonal(3), np.ones(3))
    with pytest.raises(ValueError, match="expected v to have a number other than 0"):
        linear_capacity(0.5 * np.eye(2), np.zeros(2))
    with pytest.raises(ValueError, match=r"expected v of shape \(2,\) or \(2, inputs\), got \(3, 1\)"):
        linear_capacity(0.5 * np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="expected finite numbers in W, got nan"):
        linear_capacity(np.full((2, 2), np.nan), np.ones(2))
    with pytest.raises(ValueError, match="expected W to be a square matrix"):
        linear_capacity(np.ones((2, 3)), np.ones(2))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="states that stay finite"):
        linear_capacity(9 * np.eye(2), np.ones(2), steps=5000)


def test_bad_data_are_refused() -> None:
    gru, x = GRU(1, 4), torch.randn(200, 1)
    with pytest.raises(ValueError, match="expected one direction, got a bidirectional layer"):
        memory_capacity(GRU(1, 4, bidirectional=True))
    with pytest.raises(TypeError, match=r"expected an RNN, GRU or LSTM of slimrnn or torch\.nn, got torch\.nn"):
        memory_capacity(nn.Linear(1, 4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected more than the 100 steps of lags and washout, got 50"):
        memory_capacity(gru, x[:50])
    with pytest.raises(ValueError, match="expected at least 5 steps to fit to"):
        memory_capacity(gru, x[:105])
    with pytest.raises(ValueError, match="expected inputs that vary, got a constant in channel 0"):
        memory_capacity(gru, torch.ones(300, 1), lags=5)
    with pytest.raises(ValueError, match="expected finite numbers in x, got nan"):
        memory_capacity(gru, x.index_fill(0, torch.tensor(3), torch.nan))
    with pytest.raises(ValueError, match="expected one-hot rows of x with symbols=True"):
        memory_capacity(gru, x, symbols=True)
    with pytest.raises(ValueError, match="expected input_size of at least 2 symbols, got 1"):
        memory_capacity(gru, symbols=True)
    with pytest.raises(ValueError, match="expected lengths only with x"):
        memory_capacity(gru, lengths=[3])
    with pytest.raises(ValueError, match="expected scale > 0, 0 < held_out < 1"):
        memory_capacity(gru, x, held_out=1.0)
    with pytest.raises(ValueError, match="expected x with 2 or 3 axes, the last of 1"):
        memory_capacity(gru, torch.zeros(20, 1, 2))
