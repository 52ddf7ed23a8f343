"""A recurrent matrix as numpy arrays in the form of its structure, which gives its values without writing it out.

Each form has `eigenvalues()` and `singular_values()`, all n of them and unsorted, and `power(k)`: Wᵏ e⁻ˢ and s, where s
keeps the numbers in range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn.structures.base import Prepared, StructuredMap
from slimrnn.structures.block_diagonal import BlockDiagonalMap
from slimrnn.structures.diagonal import DiagonalMap
from slimrnn.structures.kronecker import KroneckerMap
from slimrnn.structures.low_rank import LowRankMap

Values = NDArray[Any]  # float64 or complex128


class Matrix(Protocol):
    """What the forms have in common."""

    @property
    def method(self) -> str: ...
    def eigenvalues(self) -> Values: ...
    def singular_values(self) -> Values: ...
    def power(self, exponent: int) -> tuple[Matrix, float]: ...


@dataclass(frozen=True)
class Blocks:
    """diag(W_1, ..., W_b), (b, s, s): one block is a dense matrix, blocks of size one are a diagonal."""

    blocks: Values

    @property
    def method(self) -> str:
        count, size = self.blocks.shape[:2]
        return "dense" if count == 1 else "diagonal" if size == 1 else "block-diagonal"

    def eigenvalues(self) -> Values:
        return np.linalg.eigvals(self.blocks).ravel()

    def singular_values(self) -> Values:
        return np.linalg.svd(self.blocks, compute_uv=False).ravel()

    def power(self, exponent: int) -> tuple[Blocks, float]:
        scaled, log_scale = scaled_power(self.blocks, exponent)
        return Blocks(scaled), log_scale


@dataclass(frozen=True)
class KroneckerProduct:
    """W_1 ⊗ ... ⊗ W_k with square factors: its values are the products of theirs."""

    factors: Sequence[Values]
    method = "kronecker"

    def eigenvalues(self) -> Values:
        return _products([np.linalg.eigvals(factor) for factor in self.factors])

    def singular_values(self) -> Values:
        return _products([np.linalg.svd(factor, compute_uv=False) for factor in self.factors])

    def power(self, exponent: int) -> tuple[KroneckerProduct, float]:
        powers = [scaled_power(factor, exponent) for factor in self.factors]
        return KroneckerProduct([factor for factor, _ in powers]), sum(log_scale for _, log_scale in powers)


@dataclass(frozen=True)
class LowRankProduct:
    """L R, (n, r) and (r, n): the eigenvalues of R L, the singular values of the factors' triangular parts, and 0."""

    left: Values
    right: Values
    method = "low-rank"

    def eigenvalues(self) -> Values:
        return self._with_zeros(np.linalg.eigvals(self.right @ self.left))

    def singular_values(self) -> Values:
        left, right = _triangle(self.left), _triangle(self.right.conj().T)
        return self._with_zeros(np.linalg.svd(left @ right.conj().T, compute_uv=False))

    def power(self, exponent: int) -> tuple[LowRankProduct, float]:
        """L (R L)ᵏ⁻¹ R"""
        inner, log_scale = scaled_power(self.right @ self.left, exponent - 1)
        return LowRankProduct(self.left @ inner, self.right), log_scale

    def _with_zeros(self, values: Values) -> Values:
        return np.concatenate([values, np.zeros(len(self.left) - len(values), values.dtype)])


def scaled_power(matrices: Values, exponent: int) -> tuple[Values, float]:
    """(Wᵏ e⁻ˢ, s) for a stack of matrices, by squaring; every product is brought back to entries of at most 1."""
    result = np.broadcast_to(np.eye(matrices.shape[-1], dtype=matrices.dtype), matrices.shape)
    square, log_result, log_square = matrices, 0.0, 0.0
    while exponent:
        if exponent & 1:
            result, change = _brought_back(result @ square)
            log_result += log_square + change
        square, change = _brought_back(square @ square)
        log_square = 2 * log_square + change
        exponent >>= 1
    return result, log_result


def form_of(map: StructuredMap, gate: int, tensors: Prepared, largest: int) -> Matrix | None:
    """The form that `map` has, or written out up to n = `largest`, or None."""
    if isinstance(map, DiagonalMap):
        return Blocks(as_array(tensors[0][gate])[:, None, None])
    if isinstance(map, BlockDiagonalMap):
        return Blocks(as_array(tensors[0][gate]))
    if isinstance(map, LowRankMap):
        left, right = tensors
        return LowRankProduct(as_array(left[gate]), as_array(right if map.tied else right[gate]))
    if isinstance(map, KroneckerMap):
        groups = _square_groups(map.factors)
        if max(math.prod(p for p, _ in map.factors[a:b]) for a, b in pairwise(groups)) <= largest:
            factors = [as_array(tensor[gate]) for tensor in tensors]
            return KroneckerProduct([reduce(np.kron, factors[a:b]) for a, b in pairwise(groups)])
    if map.shape.in_size <= largest:
        return Blocks(written_out(map, gate, tensors)[None])
    return None


def doubled(map: StructuredMap) -> Prepared:
    """The numbers that the map multiplies with, rounded as they are, in double precision."""
    with torch.no_grad():
        wide = {True: torch.complex128, False: torch.float64}
        return tuple(
            t.to(wide[t.is_complex()]) if t.dtype.is_floating_point or t.is_complex() else t for t in map.prepare()
        )


def written_out(map: StructuredMap, gate: int, tensors: Prepared) -> Values:
    """(n, n)"""
    with torch.no_grad():
        identity = torch.eye(map.shape.in_size, dtype=tensors[0].dtype, device=tensors[0].device)
        return as_array(map.matvec(identity, slice(gate, gate + 1), tensors).squeeze(-2).mT)


def as_array(tensor: Tensor) -> Values:
    return tensor.detach().resolve_conj().cpu().numpy()


def _brought_back(matrices: Values) -> tuple[Values, float]:
    largest = float(np.abs(matrices).max())
    return (matrices / largest, math.log(largest)) if largest > 0 else (matrices, 0.0)


def _triangle(matrix: Values) -> Values:
    """R of the QR decomposition."""
    return np.linalg.qr(matrix).R


def _products(values: Sequence[Values]) -> Values:
    return reduce(lambda some, more: np.multiply.outer(some, more).ravel(), values)


def _square_groups(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Where to cut a list of factors (p, q) so that each piece of it is square as a whole."""
    cuts, rows, columns = [0], 1, 1
    for place, (p, q) in enumerate(sizes, 1):
        rows, columns = rows * p, columns * q
        if rows == columns:
            cuts.append(place)
            rows = columns = 1
    return cuts
