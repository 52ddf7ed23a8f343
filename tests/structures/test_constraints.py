"""Unitarity, penalties, weight normalisation and row norms."""

from __future__ import annotations

import pytest
import torch

from registry import numbers
from slimrnn import Dense, Diagonal, FullUnitary, Kronecker, LowRank, Structure, UnitaryProduct
from slimrnn.structures import StructuredMap


def train_(built: StructuredMap, steps: int = 20) -> None:
    """Large steps of Adam towards a random matrix."""
    target = built.dense().detach().clone().normal_()
    optimizer = torch.optim.Adam(built.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        (built.dense() - target).abs().square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("spec", "complex"), [(FullUnitary(), False), (FullUnitary(), True), (UnitaryProduct(), True)])
def test_strictly_unitary_ones_stay_so(spec: Structure, complex: bool, dtype: torch.dtype) -> None:
    built = spec.build(24, 24, 2, complex=complex, dtype=dtype)
    before = built.dense().detach()
    train_(built)
    assert not torch.allclose(before, built.dense())
    singular = torch.linalg.svdvals(built.dense().detach())
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    assert float((singular - 1).abs().max()) < tolerance


def test_full_unitary_converted_to_double_is_unitary_in_double() -> None:
    built = FullUnitary().build(16, complex=True).double()
    assert float((torch.linalg.svdvals(built.dense().detach()) - 1).abs().max()) < 1e-12


@pytest.mark.parametrize("complex", [False, True])
def test_product_of_unitary_factors_is_unitary(complex: bool) -> None:
    w = Kronecker([2, 3, 4]).build(24, 24, 2, complex=complex, dtype=torch.float64).dense().detach()
    assert float((torch.linalg.svdvals(w) - 1).abs().max()) < 1e-12


def test_random_factors_are_haar() -> None:
    """Orthogonal factors of both determinants turn up, and entries average to zero."""
    samples = Kronecker([3]).build(3, 3, 2000, dtype=torch.float64).dense().detach()
    determinants = torch.linalg.det(samples)
    assert 0.4 < float((determinants > 0).double().mean()) < 0.6
    assert float(samples.mean(0).abs().max()) < 0.06
    assert float((samples.square().mean(0) - 1 / 3).abs().max()) < 0.04


def test_penalty_is_zero_exactly_at_unitary() -> None:
    built = Kronecker([2, 3]).build(6, complex=True)
    built.assign_("factor_0", torch.tensor([[[0, 1j], [-1, 0]]]))
    built.assign_("factor_1", torch.eye(3).to(torch.complex64)[None])
    assert float(built.penalty().detach()) == 0.0


@pytest.mark.parametrize("complex", [False, True])
def test_penalty_is_equation_7(complex: bool) -> None:
    built = Kronecker([2, (4, 3), (3, 4)]).build(24, 24, 2, complex=complex, dtype=torch.float64)
    with torch.no_grad():
        for p in built.parameters():
            p.add_(0.1 * torch.randn_like(p))
    expected = 0.0
    for factor in built.prepare():
        for w in factor.detach():
            gram = w.mH @ w if w.shape[0] >= w.shape[1] else w @ w.mH
            expected += float(torch.linalg.matrix_norm(gram - torch.eye(len(gram))) ** 2)
    assert float(built.penalty().detach()) == pytest.approx(expected)
    assert float(built.penalty().detach()) > 0.1


def test_penalty_pulls_towards_unitary() -> None:
    built = Kronecker([2, 2]).build(4, complex=True, dtype=torch.float64)
    with torch.no_grad():
        for p in built.parameters():
            p.add_(0.2 * torch.randn_like(p))
    optimizer = torch.optim.SGD(built.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        built.penalty().backward()
        optimizer.step()
    assert float(built.penalty().detach()) < 1e-6


def test_other_structures_have_no_penalty() -> None:
    for spec in (Dense(), Diagonal(), LowRank(2), FullUnitary(), LowRank(2) + Diagonal()):
        penalty = spec.build(6, dtype=torch.float64).penalty()
        assert float(penalty.detach()) == 0.0
        assert not penalty.is_complex()
    both = (Kronecker([2, 3]) + Diagonal()).build(6, complex=True)
    assert not both.penalty().is_complex()


def test_fixed_kronecker_factors_do_not_train() -> None:
    built = Kronecker([2, 3], trainable=False).build(6, weight_norm=True)
    assert [p.requires_grad for p in built.parameters()] == [False, False]
    assert built.num_parameters == 4 + 9


@pytest.mark.parametrize("complex", [False, True])
def test_weight_norm_separates_length_and_direction(complex: bool) -> None:
    built = LowRank(3).build(8, 8, 2, complex=complex, weight_norm=True, dtype=torch.float64)
    left, right = built.prepare()
    torch.testing.assert_close(torch.linalg.vector_norm(left, dim=-1), built.get_parameter("left_scale"))
    torch.testing.assert_close(torch.linalg.vector_norm(right, dim=-1), torch.ones(2, 3, dtype=torch.float64))
    before = built.dense().detach()
    with torch.no_grad():  # invariant to the lengths of the stored rows
        built.get_parameter("left").mul_(7)
        built.get_parameter("right").mul_(0.1)
    torch.testing.assert_close(built.dense(), before)


def test_weight_norm_starts_at_the_plain_dense_matrix() -> None:
    torch.manual_seed(1)
    plain = Dense().build(5, 7, 2, dtype=torch.float64).dense()
    torch.manual_seed(1)
    torch.testing.assert_close(Dense().build(5, 7, 2, weight_norm=True, dtype=torch.float64).dense(), plain)


def test_weight_norm_leaves_diagonals_alone() -> None:
    built = (LowRank(2) + Diagonal()).build(6, 6, 3, weight_norm=True)
    assert {n for n, _ in built.named_parameters()} == {
        "parts.0.left",
        "parts.0.left_scale",
        "parts.0.right",
        "parts.1.diagonal",
    }


@pytest.mark.parametrize("complex", [False, True])
def test_clip_rows_shortens_only_long_rows(complex: bool) -> None:
    built = Dense().build(6, 6, 1, complex=complex, dtype=torch.float64)
    w = numbers(1, 6, 6, complex=complex)
    w[0, 0] *= 100
    w[0, 1] *= 1e-3
    built.nearest_(w)
    built.clip_rows_(10.0)
    clipped = built.dense().detach()
    assert torch.linalg.vector_norm(clipped[0, 0]).item() == pytest.approx(10)
    torch.testing.assert_close(clipped[0, 0] / 10, w[0, 0] / torch.linalg.vector_norm(w[0, 0]))
    assert torch.equal(clipped[0, 1:], w[0, 1:])


def test_clip_rows_reaches_the_terms_of_a_sum() -> None:
    built = (LowRank(2) + Diagonal()).build(6, dtype=torch.float64)
    with torch.no_grad():
        for p in built.parameters():
            p.fill_(100.0)
    built.clip_rows_(10.0)
    assert torch.linalg.vector_norm(built.get_parameter("parts.0.left")[0, 0]).item() == pytest.approx(10)
    assert built.get_parameter("parts.1.diagonal")[0, 0].item() == 100.0
