"""Weighted approximations of one matrix."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from slimrnn import BlockDiagonal, Diagonal, Kronecker, LowRank, Sparse, Structure
from slimrnn.compression.approximation import Approximator
from slimrnn.compression.second_moments import Moments
from slimrnn.compression.weighting import Weighting
from slimrnn.structures.base import Shape

GATES, OUT, IN = 2, 6, 6
SPECS = [
    LowRank(2, tied=True),
    LowRank(2),
    LowRank(2, tied=True) + Diagonal(),
    BlockDiagonal(3),
    Kronecker([2, 3]),
    Kronecker([2, 3]) + LowRank(1, tied=True),
    Kronecker([2, 3]) + Sparse(0.2, seed=1),
]


def random_weighting(seed: int) -> Weighting:
    draw = torch.Generator().manual_seed(seed)

    def moment(size: int) -> Tensor:
        scaled = torch.randn(size, size, generator=draw, dtype=torch.float64) * torch.logspace(0, -2, size)
        return scaled @ scaled.mT

    target = torch.randn(GATES * OUT, IN, generator=draw, dtype=torch.float64)
    return Weighting(target, GATES, Moments(GATES, OUT, moment(IN), moment(GATES * OUT), weight=1.0))


def approximator(weighting: Weighting) -> Approximator:
    return Approximator(weighting, Shape(OUT, IN, GATES))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_fits_are_no_worse_than_the_nearest_in_the_frobenius_norm(spec: Structure) -> None:
    weighting = random_weighting(0)
    nearest = spec.nearest(weighting.target.unflatten(0, (GATES, -1))).dense().detach().flatten(0, 1)
    found = approximator(weighting)
    assert found.error(spec) <= weighting.error(nearest) * (1 + 1e-9)
    fitted = found.fitted(spec).dense().detach().flatten(0, 1)
    assert found.error(spec) == pytest.approx(weighting.error(fitted), rel=1e-6)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, IN))
def test_no_descent_finds_a_better_matrix_of_low_rank(seed: int, rank: int) -> None:
    """The closed form is the optimum: small changes of its factors only make the error larger."""
    weighting = random_weighting(seed)
    spec, found = LowRank(rank, tied=True), approximator(weighting)
    best, map = found.error(spec), found.fitted(spec)
    draw = torch.Generator().manual_seed(seed)
    left, right = (p.detach() for p in map.parameters())
    for _ in range(5):
        step = 1e-3 * torch.randn(left.shape, generator=draw, dtype=torch.float64)
        turn = 1e-3 * torch.randn(right.shape, generator=draw, dtype=torch.float64)
        near = ((left + step) @ (right + turn)).flatten(0, 1)
        assert weighting.error(near) >= best * (1 - 1e-6) - 1e-9 * weighting.whole


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_errors_of_low_rank_fall_to_zero_with_the_rank(seed: int) -> None:
    found = approximator(random_weighting(seed))
    errors = [found.error(LowRank(rank, tied=True)) for rank in range(1, IN + 1)]
    assert all(more >= less for more, less in itertools.pairwise(errors))
    assert errors[-1] <= 1e-12 * found.weighting.whole


def test_without_moments_it_is_the_truncated_svd() -> None:
    weighting = Weighting(random_weighting(2).target, GATES)
    spec = LowRank(2, tied=True)
    nearest = spec.nearest(weighting.target.unflatten(0, (GATES, -1))).dense()
    torch.testing.assert_close(approximator(weighting).fitted(spec).dense(), nearest)
