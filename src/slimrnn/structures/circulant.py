"""Circulant: a convolution around the ring of units, by the Fourier transform."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import uniform


class CirculantMap(StructuredMap):
    """(y_g)_i = Σ_j c_{g, i−j mod n} h_j = F⁻¹(F c_g ⊙ F h) with column (G, n)."""

    native = "circulant"

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        # As for a dense matrix: entries of variance 1/n.
        bound = math.sqrt(3 / shape.in_size / (2 if shape.complex else 1))
        self.add_parameter("column", uniform(shape, bound, shape.gates, shape.in_size))

    def prepare(self) -> Prepared:
        return (self.tensor("column"),)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        column = (prepared or self.prepare())[0][gates]
        if not h.numel():  # an empty batch, which the FFT refuses
            return h.unsqueeze(-2) * column
        y: Tensor = torch.fft.ifft(_transform(column) * _transform(h).unsqueeze(-2))
        return y if self.complex else y.real.to(h.dtype)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        column = (prepared or self.prepare())[0][gates]
        if not y.numel():
            return (y * column).sum(-2)
        h: Tensor = torch.fft.ifft((_transform(column).conj() * _transform(y)).sum(-2))
        return h if self.complex else h.real.to(y.dtype)

    def project_(self, matrix: Tensor) -> None:
        """Means along the wrapped diagonals: their indicator matrices are an orthogonal basis of the family."""
        j = torch.arange(self.shape.in_size, device=matrix.device)
        wrapped = (j.unsqueeze(1) + j) % self.shape.in_size  # [k, j]: the row of c_k in column j
        self.assign_("column", matrix[:, wrapped, j].mean(-1))

    @property
    def macs(self) -> int:
        n = self.shape.in_size
        transform = 2 * n * math.ceil(math.log2(n))  # n/2 complex butterflies for each factor of two
        return transform + self.shape.gates * (transform + 4 * n)


def _transform(x: Tensor) -> Tensor:
    """In single precision at least: torch has no transform in half."""
    f: Tensor = torch.fft.fft(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x)
    return f


@dataclass(frozen=True)
class Circulant(Structure):
    """W_ij = c_{i−j mod n}: n numbers per gate, and Fourier transforms instead of n² multiply-adds (Cheng et al. 2015).
    Square only."""

    map_type = CirculantMap

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for Circulant(), got {shape.out_size} x {shape.in_size}")
