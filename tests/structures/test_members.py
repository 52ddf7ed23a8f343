"""Single structures against their definitions, written a second time in numpy, or against torch's own functions."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from registry import numbers
from slimrnn import (
    RNN,
    Antisymmetric,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    Diagonal,
    Householder,
    IndRNN,
    Kronecker,
    Legendre,
    LowRank,
    Permutation,
    Shift,
    Shuffle,
    Sparse,
    Structure,
)
from slimrnn.structures.complex_diagonal import ComplexDiagonalMap
from slimrnn.structures.legendre import LegendreMap

DOUBLE = {"dtype": torch.float64}


def matrix(spec: Structure, n: int, complex: bool = False) -> np.ndarray:
    found: np.ndarray = spec.build(n, complex=complex, **DOUBLE).dense()[0].detach().numpy()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("complex", [False, True])
def test_product_is_that_of_the_matrices_of_each_gate(complex: bool) -> None:
    spec = LowRank(2) @ Permutation(seed=4) @ (Diagonal() + Sparse(0.3))
    built = spec.build(6, 6, 3, complex=complex, **DOUBLE)  # type: ignore[arg-type]
    factors = [part.dense().detach().numpy() for part in built.children() for part in part.children()]  # type: ignore[operator]
    for gate in range(3):
        expected = np.linalg.multi_dot([factor[gate] for factor in factors])
        np.testing.assert_allclose(built.dense()[gate].detach().numpy(), expected, atol=1e-14)


def test_operators_bind_as_usual() -> None:
    spec = LowRank(8) @ Permutation(seed=1) + Diagonal()
    assert spec == (LowRank(8) @ Permutation(seed=1)) + Diagonal()
    assert repr(spec) == "LowRank(8) @ Permutation(seed=1) + Diagonal()"
    assert repr(LowRank(8) @ (Shift(1) + Diagonal())) == "LowRank(8) @ (Shift(1) + Diagonal())"
    assert (Shift(1) @ Shift(2)) @ Shift(3) == Shift(1) @ (Shift(2) @ Shift(3))
    with pytest.raises(TypeError):
        LowRank(2) @ 3


def test_monarch_connects_every_unit() -> None:
    w = matrix(BlockDiagonal(3) @ Shuffle(3) @ BlockDiagonal(3), 9)
    assert np.all(w != 0)
    spec = BlockDiagonal(8) @ Shuffle(8) @ BlockDiagonal(8)
    built = spec.build(64, gates=2)
    assert built.num_parameters == built.macs == 2 * 2 * 8 * 64


def test_cost_of_a_product_counts_what_gates_cannot_share() -> None:
    tied = LowRank(2, tied=True)
    assert tied.build(10, gates=3).macs == 2 * (3 * 10 + 10)
    assert (tied @ tied).build(10, gates=3).macs == 2 * (3 * 10 + 10) + 3 * 2 * 20


def test_last_factor_takes_the_input() -> None:
    built = (Diagonal() @ LowRank(2)).build(12, 5, 2, **DOUBLE)  # type: ignore[arg-type]
    assert built.dense().shape == (2, 12, 5)
    with pytest.raises(ValueError, match="expected a square matrix for Diagonal"):
        (LowRank(2) @ Diagonal()).build(12, 5)


def test_orders_are_those_of_numpy() -> None:
    h = numbers(12)
    rows = h.numpy()
    np.testing.assert_array_equal(Shift(5).build(12).matvec(h)[0].numpy(), np.roll(rows, 5))
    np.testing.assert_array_equal(Shift(-1).build(12).matvec(h)[0].numpy(), np.roll(rows, -1))
    np.testing.assert_array_equal(Shuffle(3).build(12).matvec(h)[0].numpy(), rows.reshape(3, 4).T.ravel())
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_array_equal(Permutation(order.tolist()).build(12).matvec(h)[0].numpy(), rows[order])


def test_seeded_patterns_are_the_same_every_time() -> None:
    for spec in (Permutation(seed=7), Sparse(0.2, seed=7)):
        one, other = spec.build(30, gates=2), spec.build(30, gates=2)
        assert all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))
    assert not torch.equal(Permutation().build(30).get_buffer("order"), Permutation().build(30).get_buffer("order"))


def test_sparse_places_are_even_over_the_rows() -> None:
    found = Sparse(0.23).build(20, 10, 3).get_buffer("positions")
    for positions in found:
        assert len(set(positions.tolist())) == 46
        assert set(np.bincount(positions.numpy() // 10, minlength=20)) == {2, 3}


def test_sparse_keeps_the_largest_entries() -> None:
    w = numbers(2, 10, 8)
    near = Sparse(0.25).nearest(w).dense().detach()
    for gate in range(2):
        kept = w[gate].abs() >= w[gate].abs().flatten().sort(descending=True).values[19]
        assert torch.equal(near[gate], torch.where(kept, w[gate], 0))
    mask = numbers(10, 8) > 0
    assert torch.equal(Sparse(mask=mask).nearest(w).dense(), torch.where(mask, w, 0))


def test_doped_kronecker_is_a_sum() -> None:
    built = (Kronecker([8, 8]) + Sparse(0.01)).build(64)
    assert built.num_parameters == 2 * 64 + 41


@pytest.mark.parametrize("complex", [False, True])
def test_circulant_is_that_of_its_definition(complex: bool) -> None:
    built = Circulant().build(7, complex=complex, **DOUBLE)  # type: ignore[arg-type]
    column = built.tensor("column")[0].detach().numpy()
    expected = np.stack([np.roll(column, j) for j in range(7)], 1)
    np.testing.assert_allclose(built.dense()[0].detach().numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_householder_is_the_product_of_its_reflections(count: int, complex: bool) -> None:
    built = Householder(count).build(6, complex=complex, **DOUBLE)  # type: ignore[arg-type]
    vectors = built.tensor("reflections")[0].detach().numpy()
    chain = np.eye(6)
    for v in vectors:
        chain = chain @ (np.eye(6) - 2 * np.outer(v, v.conj()) / np.vdot(v, v))
    np.testing.assert_allclose(built.dense()[0].detach().numpy(), chain, atol=1e-13)


def test_householder_is_torchs_householder_product() -> None:
    built = Householder(4).build(6, **DOUBLE)  # type: ignore[arg-type]
    v = torch.randn(6, 4, dtype=torch.float64).tril(-1) + torch.eye(6, 4, dtype=torch.float64)
    with torch.no_grad():
        built.get_parameter("reflections").copy_(v.T)
    expected = torch.linalg.householder_product(v, 2 / v.square().sum(0))
    torch.testing.assert_close(built.dense()[0][:, :4], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("complex", [False, True])
def test_householder_stays_orthogonal(complex: bool, dtype: torch.dtype) -> None:
    built = Householder(5).build(24, 24, 2, complex=complex, dtype=dtype)
    with torch.no_grad():
        for p in built.parameters():
            p.add_(torch.randn_like(p))
    off = torch.linalg.svdvals(built.dense().detach()) - 1
    assert float(off.abs().max()) < (2e-6 if dtype == torch.float32 else 1e-13)


@pytest.mark.parametrize("complex", [False, True])
def test_antisymmetric_has_eigenvalues_on_a_line(complex: bool) -> None:
    w = matrix(Antisymmetric(0.3), 8, complex)
    np.testing.assert_allclose(w + w.conj().T, -0.6 * np.eye(8), atol=1e-14)
    np.testing.assert_allclose(np.linalg.eigvals(w).real, -0.3, atol=1e-12)


def held(a: np.ndarray, b: np.ndarray, steps: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """ṁ = a m + b u over a time of one with u held, in many small steps of the classical Runge-Kutta method."""
    state, dt = np.hstack([np.eye(len(a)), np.zeros((len(a), 1))]), 1 / steps
    entry = np.hstack([np.zeros_like(a), b[:, None]])
    for _ in range(steps):
        k1 = a @ state + entry
        k2 = a @ (state + dt / 2 * k1) + entry
        k3 = a @ (state + dt / 2 * k2) + entry
        k4 = a @ (state + dt * k3) + entry
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state[:, :-1], state[:, -1]


def test_legendre_is_the_zero_order_hold_of_its_equation() -> None:
    n, theta = 5, 3.0
    a = np.array([[(2 * i + 1) * (-1.0 if i < j else (-1.0) ** (i - j + 1)) for j in range(n)] for i in range(n)])
    b = np.array([(2 * i + 1) * (-1.0) ** i for i in range(n)])
    built = Legendre(theta).build(n, **DOUBLE)  # type: ignore[arg-type]
    assert isinstance(built, LegendreMap)
    memory, entry = held(a / theta, b / theta, 2000)
    np.testing.assert_allclose(built.dense()[0].numpy(), memory, atol=1e-10)
    np.testing.assert_allclose(built.input_vector().numpy(), entry, atol=1e-10)


def test_legendre_remembers_its_window() -> None:
    """The coefficients read the input of half a window ago: Σ_i P_i(2·½ − 1) m_i (Voelker et al., eq. 3)."""
    n, theta = 12, 50.0
    built = Legendre(theta).build(n, **DOUBLE)  # type: ignore[arg-type]
    assert isinstance(built, LegendreMap)
    u = np.sin(2 * np.pi * np.arange(300) / 60)
    m, w, b = np.zeros(n), built.dense()[0].numpy(), built.input_vector().numpy()
    read = [np.polynomial.legendre.Legendre.basis(i)(0.0) for i in range(n)]
    seen = []
    for value in u:
        m = w @ m + b * value
        seen.append(float(np.dot(read, m)))
    ago = np.sin(2 * np.pi * (np.arange(300) - 24.5) / 60)  # held input lags by half a step
    np.testing.assert_allclose(seen[100:], ago[100:], atol=1e-2)


def test_complex_diagonal_starts_on_its_ring() -> None:
    w = matrix(ComplexDiagonal(0.6, 0.8, max_phase=1.0), 2000, complex=True).diagonal()
    assert 0.6 <= np.abs(w).min() < 0.61
    assert 0.79 < np.abs(w).max() <= 0.8
    assert np.angle(w).min() >= 0
    assert 0.99 < np.angle(w).max() <= 1
    assert np.mean(np.abs(w) ** 2) == pytest.approx((0.36 + 0.64) / 2, abs=0.01)  # uniform in area


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("streams", [False, True])
def test_complex_diagonal_in_a_layer_is_the_lru(backend: str, streams: bool) -> None:
    torch.manual_seed(0)
    rnn = RNN(3, 6, nonlinearity="identity", complex=True, structure=ComplexDiagonal(), backend=backend, **DOUBLE)  # type: ignore[arg-type]
    layer = rnn.layer(0)
    assert isinstance(layer.recurrent, ComplexDiagonalMap)
    with torch.no_grad():
        x = numbers(7, 2, 3)
        if streams:
            state, output = None, []
            for x_t in x:
                y, state = rnn.step(x_t, state)
                output.append(y)
            found = torch.stack(output).numpy()
        else:
            found = rnn(x)[0].numpy()
        nu, theta = layer.recurrent.stored("nu")[0].numpy(), layer.recurrent.stored("theta")[0].numpy()
        b, bias = layer.input.dense()[0].numpy(), layer.cell.input_bias()
        first = np.zeros(6) if bias is None else bias[0].numpy()
    lam = np.exp(-np.exp(nu) + 1j * np.exp(theta))
    h = np.zeros((2, 6), complex)
    for t in range(7):
        h = lam * h + np.sqrt(1 - np.abs(lam) ** 2) * (x[t].numpy() @ b.T) + first
        np.testing.assert_allclose(found[t], np.concatenate([h.real, h.imag], -1), atol=1e-12)


def test_complex_diagonal_keeps_the_size_of_white_noise() -> None:
    rnn = RNN(1, 2000, nonlinearity="identity", complex=True, bias=False, structure=ComplexDiagonal(0.5, 0.99))
    with torch.no_grad():
        power = rnn(torch.randn(800, 1, 1))[0][400:].square().mean()
        expected = 2 * rnn.layer(0).input.dense().abs().square().mean() / 2
    assert float(power * 2) == pytest.approx(float(expected), rel=0.2)
    assert math.isfinite(float(power))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_circulant_in_half_precision_is_computed_in_single(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    half = Circulant().build(6, gates=2, dtype=dtype)
    single = copy.deepcopy(half).float()
    h, y = torch.randn(3, 6, dtype=dtype), torch.randn(3, 2, 6, dtype=dtype)
    assert torch.equal(half.matvec(h), single.matvec(h.float()).to(dtype))
    assert torch.equal(half.rmatvec(y), single.rmatvec(y.float()).to(dtype))


def test_independent_units_may_be_complex() -> None:
    torch.manual_seed(0)
    structure = ComplexDiagonal(0.4, 0.9)
    rnn = IndRNN(3, 4, nonlinearity="modrelu", structure=structure)
    modulus = rnn.layer(0).recurrent.dense()[0].diagonal().abs()
    assert bool(((modulus >= 0.4) & (modulus <= 0.9)).all())  # the structure's own start
