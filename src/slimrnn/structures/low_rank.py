"""LowRank: the state is read and written through a narrow channel (low-rank paper, eq. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import glorot


class LowRankMap(StructuredMap):
    """y_g = L_g R_g h with left (G, m, r) and right (G, r, n); right is (r, n), shared, when tied.

    Under weight normalisation the projections R have unit rows and no scale (low-rank paper, A.2)."""

    native = "low_rank"

    def __init__(self, spec: LowRank, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self.rank, self.tied = spec.rank, spec.tied
        right_gates = () if spec.tied else (shape.gates,)
        self.add_parameter("left", glorot(shape, shape.gates, shape.out_size, spec.rank), rows=True)
        right = glorot(shape, *right_gates, spec.rank, shape.in_size)
        self.add_parameter("right", right, rows=True, scale=False)

    def prepare(self) -> Prepared:
        return (self.tensor("left"), self.tensor("right"))

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        left, right = prepared or self.prepare()
        left = left[gates]
        if self.tied:
            return ((h @ right.mT) @ left.flatten(0, 1).mT).reshape(*h.shape[:-1], *left.shape[:2])
        right = right[gates]
        rows = math.prod(h.shape[:-1])
        by_gate = (h @ right.flatten(0, 1).mT).reshape(rows, *right.shape[:2]).transpose(0, 1)  # (G, rows, r)
        return (by_gate @ left.mT).transpose(0, 1).reshape(*h.shape[:-1], *left.shape[:2])

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        left, right = prepared or self.prepare()
        left = left[gates]
        if self.tied:
            return (y.flatten(-2) @ left.flatten(0, 1).conj()) @ right.conj()
        by_gate = y.reshape(math.prod(y.shape[:-2]), *left.shape[:2]).transpose(0, 1) @ left.conj()  # (G, rows, r)
        return (by_gate @ right[gates].conj()).sum(0).reshape(*y.shape[:-2], self.shape.in_size)

    def project_(self, matrix: Tensor) -> None:
        """Truncated SVD (Eckart-Young); tied gates share R, so theirs is the SVD of the stacked matrices."""
        stacked = matrix.flatten(0, 1) if self.tied else matrix
        u, s, vh = torch.linalg.svd(stacked, full_matrices=False)
        u, s, vh = u[..., : self.rank], s[..., : self.rank], vh[..., : self.rank, :]
        # Balanced factors train best; normalised projections must keep unit rows.
        to_right = torch.ones_like(s) if self.weight_norm else s.sqrt()
        left = u * (s / to_right.clamp_min(torch.finfo(s.dtype).tiny)).unsqueeze(-2)
        self.assign_("left", left.reshape_as(self._raw("left")))
        self.assign_("right", to_right.unsqueeze(-1) * vh)

    @property
    def macs(self) -> int:
        shape, right_gates = self.shape, 1 if self.tied else self.shape.gates
        return self.rank * (shape.gates * shape.out_size + right_gates * shape.in_size) * (4 if self.complex else 1)


@dataclass(frozen=True)
class LowRank(Structure):
    """W_g = L_g R_g of the given rank: 2 n rank numbers per gate. `tied` shares R between the gates."""

    rank: int
    tied: bool = False

    map_type = LowRankMap

    def __post_init__(self) -> None:
        check_count("rank", self.rank)

    def __repr__(self) -> str:
        return f"LowRank({self.rank}{', tied=True' if self.tied else ''})"

    def check(self, shape: Shape) -> None:
        largest = min(shape.out_size, shape.in_size)
        if self.rank > largest:
            raise ValueError(
                f"expected a rank of at most {largest} for a {shape.out_size} x {shape.in_size} matrix, got {self.rank}"
            )
