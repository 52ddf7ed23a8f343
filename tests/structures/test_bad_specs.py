"""Specs and sizes that cannot be are refused at once, saying what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from slimrnn import (
    Antisymmetric,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    Dense,
    Diagonal,
    FullUnitary,
    Householder,
    Kronecker,
    Legendre,
    LowRank,
    Permutation,
    Product,
    Shift,
    Shuffle,
    Sparse,
    Sum,
    UnitaryProduct,
)

CASES: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "no blocks": (lambda: BlockDiagonal(0), ValueError),
    "half a block": (lambda: BlockDiagonal(2.5), TypeError),  # type: ignore[arg-type]
    "no rank": (lambda: LowRank(0), ValueError),
    "negative rank": (lambda: LowRank(-3), ValueError),
    "rank of text": (lambda: LowRank("24"), TypeError),  # type: ignore[arg-type]
    "rank of bool": (lambda: LowRank(True), TypeError),
    "no factors": (lambda: Kronecker([]), ValueError),
    "one number for factors": (lambda: Kronecker(2), ValueError),  # type: ignore[arg-type]
    "zero factor": (lambda: Kronecker([2, 0]), ValueError),
    "triple for a factor": (lambda: Kronecker([(2, 2, 2)]), ValueError),  # type: ignore[list-item]
    "half a factor": (lambda: Kronecker([(2, 1.5)]), TypeError),  # type: ignore[list-item]
    "text for a factor": (lambda: Kronecker(["ab"]), TypeError),  # type: ignore[list-item]
    "number in a sum": (lambda: Sum((LowRank(2), 3)), TypeError),  # type: ignore[arg-type]
    "float for a factor": (lambda: Kronecker([2.0, 3]), TypeError),  # type: ignore[list-item]
    "complex dtype": (lambda: Dense().build(3, dtype=torch.complex64), TypeError),
    "nearest to a vector": (lambda: LowRank(1).nearest(torch.zeros(3)), ValueError),
    "nearest to integers": (lambda: LowRank(1).nearest(torch.zeros(3, 3).long()), TypeError),
    "nearest to a list": (lambda: LowRank(1).nearest([[1.0]]), TypeError),  # type: ignore[arg-type]
    "sum of one": (lambda: Sum((Dense(),)), ValueError),
    "blocks that do not divide": (lambda: BlockDiagonal(5).build(12), ValueError),
    "blocks that do not divide the input": (lambda: BlockDiagonal(4).build(12, 6), ValueError),
    "rank too large": (lambda: LowRank(13).build(12), ValueError),
    "rank too large for the input": (lambda: LowRank(7).build(12, 6), ValueError),
    "factors of another product": (lambda: Kronecker([2, 2]).build(12), ValueError),
    "rectangular diagonal": (lambda: Diagonal().build(12, 6), ValueError),
    "rectangular unitary": (lambda: FullUnitary().build(12, 6), ValueError),
    "rectangular product": (lambda: UnitaryProduct().build(12, 6, complex=True), ValueError),
    "real product": (lambda: UnitaryProduct().build(12), ValueError),
    "bad term of a sum": (lambda: (LowRank(2) + BlockDiagonal(5)).build(12), ValueError),
    "number in a product": (lambda: Product((LowRank(2), 3)), TypeError),  # type: ignore[arg-type]
    "product of one": (lambda: Product((Dense(),)), ValueError),
    "bad factor of a product": (lambda: (LowRank(2) @ BlockDiagonal(5)).build(12), ValueError),
    "square factor for an input": (lambda: (LowRank(2) @ Shift(1)).build(12, 6), ValueError),
    "neither density nor mask": (lambda: Sparse(), ValueError),
    "density of zero": (lambda: Sparse(0.0), ValueError),
    "density above one": (lambda: Sparse(1.5), ValueError),
    "empty mask": (lambda: Sparse(mask=[[False, False]]), ValueError),
    "ragged mask": (lambda: Sparse(mask=[[True], [True, False]]), ValueError),
    "mask of another size": (lambda: Sparse(mask=[[True, True]]).build(2), ValueError),
    "negative seed": (lambda: Sparse(0.5, seed=-1), ValueError),
    "number twice": (lambda: Permutation([0, 1, 1]), ValueError),
    "order and seed": (lambda: Permutation([0, 1], seed=1), ValueError),
    "order of another size": (lambda: Permutation([1, 0]).build(3), ValueError),
    "rectangular permutation": (lambda: Permutation().build(12, 6), ValueError),
    "shift of half": (lambda: Shift(0.5), TypeError),  # type: ignore[arg-type]
    "groups that do not divide": (lambda: Shuffle(5).build(12), ValueError),
    "rectangular circulant": (lambda: Circulant().build(12, 6), ValueError),
    "no reflections": (lambda: Householder(0), ValueError),
    "too many reflections": (lambda: Householder(13).build(12), ValueError),
    "rectangular reflections": (lambda: Householder(2).build(12, 6), ValueError),
    "infinite gamma": (lambda: Antisymmetric(float("inf")), ValueError),
    "rectangular antisymmetric": (lambda: Antisymmetric().build(12, 6), ValueError),
    "window of zero": (lambda: Legendre(0), ValueError),
    "rectangular memory": (lambda: Legendre(5).build(12, 6), ValueError),
    "ring inside out": (lambda: ComplexDiagonal(0.9, 0.5), ValueError),
    "real ring": (lambda: ComplexDiagonal().build(12), ValueError),
    "rectangular ring": (lambda: ComplexDiagonal().build(12, 6, complex=True), ValueError),
    "no size": (lambda: Dense().build(0), ValueError),
    "gates below none": (lambda: Dense().build(3, 3, -1), ValueError),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_specs_are_refused(case: str) -> None:
    attempt, error = CASES[case]
    with pytest.raises(error, match=r"expected .*, got "):
        attempt()
