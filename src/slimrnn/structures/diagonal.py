"""Diagonal: each unit sees only itself. As a term of a sum, the low-rank paper's eq. 5."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import uniform


class DiagonalMap(StructuredMap):
    """y_g = d_g ⊙ h with diagonal (G, n)."""

    native = "diagonal"

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self._add_parameters(shape)

    def _add_parameters(self, shape: Shape) -> None:
        # Uniform in ±0.01, as in the low-rank authors' code.
        self.add_parameter("diagonal", uniform(shape, 0.01, shape.gates, shape.out_size))

    def prepare(self) -> Prepared:
        return (self.tensor("diagonal"),)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (diagonal,) = prepared or self.prepare()
        return h.unsqueeze(-2) * diagonal[gates]

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (diagonal,) = prepared or self.prepare()
        return (y * diagonal[gates].conj()).sum(-2)

    def project_(self, matrix: Tensor) -> None:
        self.assign_("diagonal", matrix.diagonal(dim1=-2, dim2=-1))

    @property
    def macs(self) -> int:
        return self.shape.gates * self.shape.out_size * (4 if self.complex else 1)


@dataclass(frozen=True)
class Diagonal(Structure):
    """A diagonal matrix: n numbers per gate. Square only."""

    map_type = DiagonalMap

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for Diagonal(), got {shape.out_size} x {shape.in_size}")
