"""FullUnitary: any unitary (orthogonal) matrix, exactly so throughout training (Wisdom et al. 2016, "fuRNN")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._fields import as_complex
from slimrnn.structures.base import Prepared, Shape, Structure
from slimrnn.structures.dense import DenseMap
from slimrnn.structures.initial import haar


class FullUnitaryMap(DenseMap):
    """W = B (I − K)⁻¹(I + K) = 2B (I − K)⁻¹ − B with K = (A − Aᴴ)/2: the Cayley transform of free parameters A, from a
    base B.

    A starts at zero and B is a fixed random unitary matrix, so that training starts at B, in the middle of the
    chart. All is computed in double precision: a single precision layer is unitary up to the rounding of its
    entries. Unlike torch's parametrization it survives pickling."""

    base: Tensor

    def _add_parameters(self, shape: Shape) -> None:
        initial = haar(shape, shape.gates, shape.out_size, shape.in_size)
        self.add_parameter("skew", torch.zeros_like(initial))
        self.register_buffer("base", torch.view_as_real(initial) if shape.complex else initial)

    def prepare(self) -> Prepared:
        free = self._raw("skew")
        wide = torch.complex128 if self.complex else torch.float64
        base = (as_complex(self.base) if self.complex else self.base).to(wide)
        identity = torch.eye(self.shape.in_size, dtype=wide, device=free.device)
        base = base @ (3 * identity - base.mH @ base) / 2  # undoes the rounding of a base kept in single precision
        skew = (free - free.mH).to(wide) / 2
        return ((torch.linalg.solve(identity - skew, 2 * base, left=False) - base).to(free.dtype),)

    def project_(self, matrix: Tensor) -> None:
        """The polar factor U Vᴴ of U S Vᴴ."""
        u, _, vh = torch.linalg.svd(matrix)
        polar = u @ vh
        self.base.copy_(torch.view_as_real(polar) if self.complex else polar)
        self.assign_("skew", torch.zeros_like(polar))


@dataclass(frozen=True)
class FullUnitary(Structure):
    """Any unitary matrix; orthogonal in a real cell. n² numbers per gate (2 n² reals when complex), as in the paper's
    count, of which the skew-Hermitian half acts."""

    map_type = FullUnitaryMap

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for FullUnitary(), got {shape.out_size} x {shape.in_size}")
