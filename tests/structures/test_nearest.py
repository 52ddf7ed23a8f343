"""`nearest` is the closest member in Frobenius norm."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from registry import FIELDS, FIXED, LOCAL, RECTANGULAR, SIZE, STRUCTURES, numbers
from slimrnn import (
    Antisymmetric,
    BlockDiagonal,
    ComplexDiagonal,
    Diagonal,
    FullUnitary,
    Householder,
    Kronecker,
    LowRank,
    Structure,
    UnitaryProduct,
)
from slimrnn.structures import StructuredMap
from slimrnn.structures.sum import SumMap
from slimrnn.structures.unitary_product import UnitaryProductMap

NO_CONES = (UnitaryProduct, FullUnitary, Householder, Antisymmetric, ComplexDiagonal)

fields = pytest.mark.parametrize(("name", "complex"), FIELDS)


def build(spec: Structure, complex: bool, rows: int = SIZE, columns: int = SIZE, **options: Any) -> StructuredMap:
    return spec.build(rows, columns, 3, complex=complex, dtype=torch.float64, **options)


def distance(a: Tensor, b: Tensor) -> float:
    return float(torch.linalg.vector_norm(a.detach() - b.detach()))


@fields
@pytest.mark.parametrize("weight_norm", [False, True])
def test_nearest_to_a_member_is_that_member(name: str, complex: bool, weight_norm: bool) -> None:
    member = build(STRUCTURES[name], complex, weight_norm=weight_norm)
    w = member.dense().detach()
    if name != "doped-kronecker":  # a sum begins with its first term alone, and which entries are then left is a guess
        assert distance(member.nearest(w).dense(), w) < 1e-9
    if name not in LOCAL:
        assert distance(STRUCTURES[name].nearest(w).dense(), w) < 1e-9


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_nearest_to_a_rectangular_member_is_that_member(name: str, complex: bool) -> None:
    w = build(RECTANGULAR[name], complex, 12, 6).dense().detach()
    assert distance(RECTANGULAR[name].nearest(w).dense(), w) < 1e-9


@pytest.mark.parametrize(("name", "complex"), [one for one in FIELDS if one != ("sum@tied", True)])  # takes long
def test_nearest_beats_random_members(name: str, complex: bool) -> None:
    target = build(STRUCTURES["dense"], complex).dense().detach() * 2
    member = build(STRUCTURES[name], complex)
    best = distance(member.nearest(target).dense(), target)
    for _ in range(30):
        other = build(STRUCTURES[name], complex)
        if isinstance(other, UnitaryProductMap):
            other.permutation.copy_(member.get_buffer("permutation"))
        # at its best scale too, where the family is a cone
        w = other.dense().detach()
        if name not in FIXED and not isinstance(STRUCTURES[name], NO_CONES):
            w = w * float((w.conj() * target).sum().real / (w.conj() * w).sum().real)
        assert best <= distance(w, target) + 1e-12


@pytest.mark.parametrize(("name", "complex"), [(name, complex) for name, complex in FIELDS if name != "sum@tied"])
def test_nearest_is_stationary(name: str, complex: bool) -> None:
    """No small step of the parameters comes closer; but ranks are no closed sets, and those of sum@tied may grow for
    ever."""
    target = numbers(3, SIZE, SIZE, complex=complex)
    member = build(STRUCTURES[name], complex).nearest(target)
    error = (member.dense() - target).abs().square().sum()
    parameters = [p for p in member.parameters() if p.requires_grad]
    if parameters:
        slopes = torch.autograd.grad(error, parameters)
        # Descent over several factors creeps towards the end.
        tolerance = 1e-3 if name in LOCAL else 1e-4
        assert max(float(g.abs().max()) for g in slopes) <= tolerance * float(error.detach())


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", ["low-rank+diagonal", "tied+diagonal", "block+low-rank"])
def test_error_of_a_sum_never_rises(name: str, complex: bool) -> None:
    target = numbers(3, SIZE, SIZE, complex=complex)
    errors = []
    for sweeps in range(1, 30):
        member = build(STRUCTURES[name], complex)
        assert isinstance(member, SumMap)
        with torch.no_grad():
            member.project_(target, sweeps)
        errors.append(distance(member.dense(), target))
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(errors))
    assert errors[-1] < errors[0]


def test_low_rank_is_eckart_young() -> None:
    w = numbers(10, 7)
    rest = np.linalg.svd(w.numpy(), compute_uv=False)[3:]
    assert distance(LowRank(3).nearest(w).dense()[0], w) == pytest.approx(float(np.sqrt((rest**2).sum())))


def test_tied_low_rank_shares_the_best_projection() -> None:
    w = numbers(4, 10, 7)
    rest = np.linalg.svd(w.flatten(0, 1).numpy(), compute_uv=False)[3:]
    assert distance(LowRank(3, tied=True).nearest(w).dense(), w) == pytest.approx(float(np.sqrt((rest**2).sum())))


def test_two_kronecker_factors_are_van_loan_pitsianis() -> None:
    w = numbers(6, 6)
    rearranged = w.numpy().reshape(2, 3, 3, 2).transpose(0, 2, 1, 3).reshape(6, 6)
    rest = np.linalg.svd(rearranged, compute_uv=False)[1:]
    found = Kronecker([(2, 3), (3, 2)]).nearest(w).dense()[0]
    assert distance(found, w) == pytest.approx(float(np.sqrt((rest**2).sum())))


def test_nearest_kronecker_of_a_unitary_product_has_unitary_factors() -> None:
    w = Kronecker([2, 3, 2]).build(12, complex=True, dtype=torch.float64).dense().detach()
    assert float(Kronecker([2, 3, 2]).nearest(w).penalty().detach()) < 1e-20


@pytest.mark.parametrize("complex", [False, True])
def test_full_unitary_is_the_polar_factor(complex: bool) -> None:
    w = numbers(5, 5, complex=complex)
    h = w.mH @ w
    values, vectors = np.linalg.eigh(h.numpy())
    inverse_root = vectors @ np.diag(values**-0.5) @ vectors.conj().T
    expected = w @ torch.from_numpy(inverse_root)
    torch.testing.assert_close(FullUnitary().nearest(w).dense()[0], expected)


def test_zero_has_a_nearest_member() -> None:
    zero = torch.zeros(SIZE, SIZE, dtype=torch.float64)
    for spec in (LowRank(2), Diagonal(), BlockDiagonal(3), Kronecker([2, 3, 2]), LowRank(2) + Diagonal()):
        assert torch.equal(spec.nearest(zero).dense(), zero[None])


def test_nearest_leaves_the_original_alone() -> None:
    member = LowRank(2).build(6, dtype=torch.float64)
    before = member.dense().detach()
    member.nearest(numbers(6, 6))
    assert torch.equal(member.dense(), before)


def test_nearest_refuses_what_does_not_match() -> None:
    member = LowRank(2).build(6, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"expected a matrix of shape \(1, 6, 6\), got \(1, 5, 6\)"):
        member.nearest(numbers(5, 6))
    with pytest.raises(TypeError, match="expected a real matrix"):
        member.nearest(numbers(6, 6, complex=True))
