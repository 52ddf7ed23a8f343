"""Householder: an orthogonal matrix from k reflections (Mhammedi et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.ops.terms import Term
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.descent import descend_
from slimrnn.structures.initial import uniform
from slimrnn.structures.low_rank import LowRankMap


class HouseholderMap(StructuredMap):
    """y_g = H_g1 ... H_gk h with H = I − 2vvᴴ/‖v‖² and reflections v (G, k, n).

    The product is I − Vᵀ T V̄ with unit rows V and T⁻¹ = I/2 + the part of V̄Vᵀ above its diagonal (Joffrain et al.
    2006): the identity and a matrix of rank k, which is how it is multiplied. Both are computed in double precision, so
    that a single precision layer is orthogonal up to the rounding of its numbers."""

    def __init__(self, spec: Householder, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        bound = math.sqrt(3 / shape.in_size)  # only the direction matters
        self.add_parameter("reflections", uniform(shape, bound, shape.gates, spec.count, shape.in_size))

    def prepare(self) -> Prepared:
        """Left (G, n, k) and right (G, k, n) factor of W − I, and the diagonal of I (G, n)."""
        given = self._raw("reflections")
        v = given.to(torch.complex128 if self.complex else torch.float64)
        v = v / torch.linalg.vector_norm(v, dim=-1, keepdim=True)
        half = torch.eye(v.shape[-2], dtype=v.dtype, device=v.device) / 2
        inverse = half + (v.conj() @ v.mT).triu(1)
        left = -torch.linalg.solve_triangular(inverse, v.mT, upper=True, left=False)
        ones = torch.ones(v.shape[0], v.shape[-1], dtype=given.dtype, device=given.device)
        return left.to(given.dtype), v.conj().resolve_conj().to(given.dtype), ones

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        left, right, ones = (t[gates] for t in prepared or self.prepare())
        low = torch.einsum("grn,...n->...gr", right, h)
        return h.unsqueeze(-2) * ones + torch.einsum("gnr,...gr->...gn", left, low)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        left, right, ones = (t[gates].conj() for t in prepared or self.prepare())
        low = torch.einsum("gnr,...gn->...gr", left, y)
        return (y * ones).sum(-2) + torch.einsum("grn,...gr->...n", right, low)

    def terms(self, prepared: Prepared) -> list[Term] | None:
        left, right, ones = prepared
        assert LowRankMap.native is not None
        return [Term(LowRankMap.native, (left, right)), Term("diagonal", (ones,))]

    def project_(self, matrix: Tensor) -> None:
        """A local optimum, from the present reflections."""
        descend_(self, matrix)

    @property
    def macs(self) -> int:
        shape = self.shape
        assert isinstance(self.spec, Householder)
        return shape.gates * shape.in_size * (2 * self.spec.count + 1) * (4 if self.complex else 1)


@dataclass(frozen=True)
class Householder(Structure):
    """W = H_1 ... H_count, reflections H = I − 2vvᴴ/‖v‖²: orthogonal (unitary, where the state is complex), exactly so
    throughout training, with n numbers and 2n multiply-adds for each. With `count` = n, or n − 1, of them every
    orthogonal matrix of determinant (−1)^count is there. Square only."""

    count: int

    map_type = HouseholderMap

    def __post_init__(self) -> None:
        check_count("count", self.count)

    def __repr__(self) -> str:
        return f"Householder({self.count})"

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for {self!r}, got {shape.out_size} x {shape.in_size}")
        if self.count > shape.in_size:
            raise ValueError(f"expected at most {shape.in_size} reflections, got {self.count}")
