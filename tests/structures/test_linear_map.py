"""Every structure is the linear map that its written-out matrix says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from registry import FIELDS, RECTANGULAR, SIZE, STRUCTURES, numbers
from slimrnn import BlockDiagonal, Diagonal, FullUnitary, Kronecker, LowRank, Structure, UnitaryProduct
from slimrnn.structures import StructuredMap
from slimrnn.structures.base import ALL

fields = pytest.mark.parametrize(("name", "complex"), FIELDS)
rectangular = pytest.mark.parametrize(("name", "complex"), [(r, c) for r in RECTANGULAR for c in (False, True)])


def square(name: str, complex: bool, gates: int = 3, **options: Any) -> StructuredMap:
    return STRUCTURES[name].build(SIZE, SIZE, gates, complex=complex, dtype=torch.float64, **options)


def oblong(name: str, complex: bool) -> StructuredMap:
    return RECTANGULAR[name].build(12, 6, 3, complex=complex, dtype=torch.float64)


def inner(a: Tensor, b: Tensor) -> Tensor:
    return (a.conj() * b).sum()


def check_matvec_is_dense_product(built: StructuredMap, leading: tuple[int, ...]) -> None:
    w, h = built.dense(), numbers(*leading, built.shape.in_size, complex=built.complex)
    assert w.shape == (built.shape.gates, built.shape.out_size, built.shape.in_size)
    assert w.is_complex() == built.complex
    expected = torch.einsum("gmn,...n->...gm", w, h)
    torch.testing.assert_close(built.matvec(h), expected, rtol=1e-12, atol=1e-12)


@fields
@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (0,)])
def test_matvec_is_dense_product(name: str, complex: bool, leading: tuple[int, ...]) -> None:
    check_matvec_is_dense_product(square(name, complex), leading)


@rectangular
@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (0,)])
def test_matvec_is_dense_product_when_rectangular(name: str, complex: bool, leading: tuple[int, ...]) -> None:
    check_matvec_is_dense_product(oblong(name, complex), leading)


@fields
def test_rmatvec_is_adjoint(name: str, complex: bool) -> None:
    built = square(name, complex)
    for leading in ((), (4,), (2, 3), (0,)):
        x, y = numbers(*leading, SIZE, complex=complex), numbers(*leading, 3, SIZE, complex=complex)
        torch.testing.assert_close(inner(built.matvec(x), y), inner(x, built.rmatvec(y)), rtol=1e-12, atol=1e-12)
        assert built.rmatvec(y).shape == x.shape


@rectangular
def test_rmatvec_is_adjoint_when_rectangular(name: str, complex: bool) -> None:
    built = oblong(name, complex)
    x, y = numbers(4, 6, complex=complex), numbers(4, 3, 12, complex=complex)
    torch.testing.assert_close(inner(built.matvec(x), y), inner(x, built.rmatvec(y)), rtol=1e-12, atol=1e-12)


@fields
def test_rmatvec_agrees_with_autograd(name: str, complex: bool) -> None:
    built, y = square(name, complex), numbers(4, 3, SIZE, complex=complex)
    torch.testing.assert_close(built.rmatvec(y), StructuredMap.rmatvec(built, y), rtol=1e-12, atol=1e-12)


@fields
@pytest.mark.parametrize("gates", [ALL, slice(0, 2), slice(2, 3)])
def test_chosen_gates_are_those_of_all(name: str, complex: bool, gates: slice) -> None:
    built = square(name, complex)
    h, y = numbers(5, SIZE, complex=complex), numbers(5, 3, SIZE, complex=complex)
    torch.testing.assert_close(built.matvec(h, gates), built.matvec(h)[:, gates], rtol=1e-12, atol=1e-12)
    expected = torch.einsum("gmn,bgm->bn", built.dense()[gates].conj(), y[:, gates])
    torch.testing.assert_close(built.rmatvec(y[:, gates], gates), expected, rtol=1e-12, atol=1e-12)


@fields
@pytest.mark.parametrize("weight_norm", [False, True])
def test_matvec_passes_gradcheck(name: str, complex: bool, weight_norm: bool) -> None:
    built = square(name, complex, gates=2, weight_norm=weight_norm)
    h = numbers(2, SIZE, complex=complex).requires_grad_()
    parameters = [p for p in built.parameters() if p.requires_grad]
    assert torch.autograd.gradcheck(lambda h, *_: built.matvec(h), (h, *parameters), fast_mode=True)


@given(
    st.sampled_from(["dense", "block", "low-rank", "tied", "kronecker", "sum"]),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
)
def test_matvec_is_dense_product_for_any_shape(kind: str, a: int, b: int, gates: int, complex: bool) -> None:
    rows, columns = 2 * a * b, 3 * a * b
    structure: Structure = {
        "dense": STRUCTURES["dense"],
        "block": BlockDiagonal(a),
        "low-rank": LowRank(min(a * b, rows)),
        "tied": LowRank(1, tied=True),
        "kronecker": Kronecker([(2, 1), (a, 3 * a), b]),
        "sum": LowRank(b) + BlockDiagonal(a * b),
    }[kind]
    check_matvec_is_dense_product(structure.build(rows, columns, gates, complex=complex, dtype=torch.float64), (2,))


@fields
def test_parameter_counts_are_exact(name: str, complex: bool) -> None:
    n, reals, gates = SIZE, 2 if complex else 1, 3
    expected = {
        "dense": gates * n * n * reals,
        "diagonal": gates * n * reals,
        "block": gates * n * n // 3 * reals,
        "low-rank": gates * 2 * n * 2 * reals,
        "low-rank-tied": (gates + 1) * n * 2 * reals,
        "low-rank+diagonal": gates * (2 * n * 2 + n) * reals,
        "tied+diagonal": ((gates + 1) * n * 2 + gates * n) * reals,
        "block+low-rank": gates * (n * n // 3 + 2 * n) * reals,
        "kronecker-2": gates * (9 + 16) * reals,
        "kronecker-3": gates * (4 + 9 + 4) * reals,
        "kronecker-pairs": gates * (6 + 24) * reals,
        "kronecker-fixed": gates * (4 + 36) * reals,
        "full-unitary": gates * n * n * reals,
        "unitary-product": gates * 7 * n,
        "sparse": gates * 36 * reals,
        "sparse-mask": gates * 29 * reals,
        "permutation": 0,
        "shift": 0,
        "monarch": gates * 2 * 48 * reals,
        "doped-kronecker": gates * (9 + 16 + 14) * reals,
        "low-rank@permutation+diagonal": gates * 5 * n * reals,
        "circulant": gates * n * reals,
        "householder": gates * 4 * n * reals,
        "antisymmetric": gates * (n * (n - 1) if complex else 0) + gates * (n if complex else n * (n - 1) // 2),
        "legendre": 0,
        "complex-diagonal": gates * 2 * n,
        "householder@diagonal@circulant": gates * 5 * n * reals,
        "sum@tied": (gates * n + (gates + 1) * 3 * n + gates * (4 * n + 14)) * reals,
    }[name]
    built = square(name, complex, gates)
    assert built.num_parameters == expected == sum(p.numel() for p in built.parameters())


def test_kronecker_never_writes_out_its_product() -> None:
    built = Kronecker([2] * 22).build(2**22)  # written out: 64 TiB
    h = torch.randn(2**22)
    y = built.matvec(h)
    assert torch.linalg.vector_norm(y).item() == pytest.approx(torch.linalg.vector_norm(h).item(), rel=1e-4)


def test_kronecker_order_is_that_of_numpy_kron() -> None:
    built = Kronecker([(2, 3), 2, (3, 1)]).build(12, 6, dtype=torch.float64)
    a, b, c = (factor[0].detach().numpy() for factor in built.prepare())
    np.testing.assert_allclose(built.dense()[0].detach().numpy(), np.kron(np.kron(a, b), c))


def test_unitary_product_is_arjovskys_chain() -> None:
    built = UnitaryProduct().build(5, complex=True, dtype=torch.float64)
    phases, v = (t[0] for t in built.prepare()[:2])
    n = torch.arange(5, dtype=torch.float64)
    fourier = torch.exp(-2j * math.pi * n[:, None] * n / 5) / math.sqrt(5)
    reflect = [torch.eye(5) - 2 * torch.outer(u, u.conj()) for u in v]
    d1, d2, d3 = (torch.diag(p) for p in phases)
    shuffle = torch.eye(5, dtype=torch.complex128)[built.get_buffer("permutation")]
    chain = d3 @ reflect[1] @ fourier.mH @ d2 @ shuffle @ reflect[0] @ fourier @ d1
    torch.testing.assert_close(built.dense()[0], chain)


def test_block_diagonal_has_nothing_outside_its_blocks() -> None:
    w = BlockDiagonal(3).build(12, 6, dtype=torch.float64).dense()[0]
    inside = torch.block_diag(*[torch.ones(4, 2)] * 3).bool()
    assert torch.all(w[~inside] == 0)
    assert torch.all(w[inside] != 0)


@pytest.mark.parametrize("tied", [False, True])
def test_low_rank_has_its_rank(tied: bool) -> None:
    w = LowRank(2, tied=tied).build(12, 12, 3, dtype=torch.float64).dense()
    assert torch.linalg.matrix_rank(w).tolist() == [2, 2, 2]
    assert torch.linalg.matrix_rank(w.flatten(0, 1)).item() == (2 if tied else 6)


def test_specs_compare_print_and_flatten() -> None:
    assert LowRank(2) + Diagonal() == LowRank(2) + Diagonal() != Diagonal() + LowRank(2)
    assert hash(Kronecker([2, (2, 2)])) == hash(Kronecker([2, 2]))
    assert repr(LowRank(24) + Diagonal()) == "LowRank(24) + Diagonal()"
    assert repr(Kronecker([2] * 9)) == "Kronecker([2] * 9)"
    assert repr(Kronecker([2, (3, 4)], trainable=False)) == "Kronecker([2, (3, 4)], trainable=False)"
    assert Diagonal() + (LowRank(1) + FullUnitary()) == (Diagonal() + LowRank(1)) + FullUnitary()
    with pytest.raises(TypeError):
        LowRank(2) + 3


def test_same_seed_gives_the_same_parameters() -> None:
    for name, complex in FIELDS:
        torch.manual_seed(3)
        first = square(name, complex).dense()
        torch.manual_seed(3)
        assert torch.equal(first, square(name, complex).dense())
