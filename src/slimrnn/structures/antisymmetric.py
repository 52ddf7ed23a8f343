"""Antisymmetric: a flow that neither grows nor dies (Chang et al. 2019, "AntisymmetricRNN")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn import _hooks
from slimrnn._checks import check_number
from slimrnn._fields import field_dtype
from slimrnn.structures.base import Prepared, Shape, Structure
from slimrnn.structures.dense import DenseMap


class AntisymmetricMap(DenseMap):
    """W_g = A_g − A_gᴴ − γI with the entries of A above its diagonal, upper (G, n(n−1)/2); where the state is complex
    also the imaginary parts of W's diagonal, turns (G, n). Written out once per sequence."""

    def _add_parameters(self, shape: Shape) -> None:
        n = shape.in_size
        dtype = field_dtype(shape.dtype or torch.get_default_dtype(), shape.complex)
        upper = torch.randn(shape.gates, n * (n - 1) // 2, dtype=dtype, device=shape.device) / n**0.5
        self.add_parameter("upper", upper)
        if shape.complex:
            turns = torch.randn(shape.gates, n, dtype=shape.dtype, device=shape.device)
            self.add_parameter("turns", turns / n**0.5)

    def prepare(self) -> Prepared:
        upper, n = self.tensor("upper"), self.shape.in_size
        rows, columns = torch.triu_indices(n, n, 1, device=upper.device)
        half = upper.new_zeros(upper.shape[0], n * n).index_copy(1, rows * n + columns, upper)
        half = half.unflatten(1, (n, n))
        assert isinstance(self.spec, Antisymmetric)
        diagonal = -self.spec.gamma * torch.eye(n, dtype=upper.dtype, device=upper.device)
        if self.complex:
            turns = self.stored("turns")
            diagonal = diagonal + torch.diag_embed(torch.complex(torch.zeros_like(turns), turns))
        return (half - half.mH + diagonal,)

    def project_(self, matrix: Tensor) -> None:
        """The antisymmetric part; the diagonal is given."""
        n = self.shape.in_size
        rows, columns = torch.triu_indices(n, n, 1, device=matrix.device)
        self.assign_("upper", ((matrix - matrix.mH) / 2)[:, rows, columns])
        if self.complex:
            _hooks.write(self, "turns", matrix.diagonal(dim1=-2, dim2=-1).imag)


@dataclass(frozen=True)
class Antisymmetric(Structure):
    """W = A − Aᵀ − γI: eigenvalues −γ ± iω, so that ḣ = Wh neither grows nor, with a small γ, soon dies. n(n − 1)/2
    numbers per gate; dense when it runs: n² multiply-adds. Square only."""

    gamma: float = 0.01

    map_type = AntisymmetricMap

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma)

    def __repr__(self) -> str:
        return f"Antisymmetric({self.gamma})"

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for {self!r}, got {shape.out_size} x {shape.in_size}")
