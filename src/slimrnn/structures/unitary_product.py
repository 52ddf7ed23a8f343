"""UnitaryProduct: a unitary matrix of 7n numbers (Arjovsky et al. 2016, "uRNN", the KRU paper's ueRNN)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn import _hooks
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import uniform


class UnitaryProductMap(StructuredMap):
    """W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁: phases D, reflections R = I − 2vvᴴ/‖v‖², the unitary DFT F, a permutation Π.

    phases (G, 3, n) are real angles; reflections (G, 2, n) are complex; the permutation (n) is fixed."""

    native: str | None = "unitary_product"
    takes_any_numbers = False  # but diagonals of modulus one and unit vectors
    permutation: Tensor

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        gates, n = shape.gates, shape.in_size
        if gates > 1:  # the core has one
            self.native = None
        self.add_parameter("phases", shape.uniform(math.pi, gates, 3, n))
        self.add_parameter("reflections", uniform(shape, math.sqrt(3 / n), gates, 2, n))  # direction matters only
        self.register_buffer("permutation", torch.randperm(n, device=shape.device))

    def prepare(self) -> Prepared:
        """Unit numbers e^{iθ}, unit vectors v, the permutation."""
        phases = self.stored("phases")
        v = self._raw("reflections")
        return (
            torch.polar(torch.ones_like(phases), phases),
            v / torch.linalg.vector_norm(v, dim=-1, keepdim=True),
            self.permutation,
        )

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        phases, reflections, permutation = prepared or self.prepare()
        phases, reflections = phases[gates], reflections[gates]
        if not h.numel():  # an empty batch, which the FFT refuses
            return h.unsqueeze(-2) * phases[:, 0]
        y = torch.fft.fft(h.unsqueeze(-2) * phases[:, 0], norm="ortho")
        y = _reflect(y, reflections[:, 0])[..., permutation]
        y = torch.fft.ifft(y * phases[:, 1], norm="ortho")
        return _reflect(y, reflections[:, 1]) * phases[:, 2]

    def project_(self, matrix: Tensor, sweeps: int = 200) -> None:
        """Block coordinate descent from the present parameters; every block has a closed form.

        ‖M − A X B‖² with unitary A, X, B is least where Re tr(X C) is largest, C = B Mᴴ A: phases of conj(C_jj)
        for a diagonal X, the lowest eigenvector of C's Hermitian part for a reflection. The error never rises."""
        phases, reflections = (tensor.clone() for tensor in self.prepare()[:2])
        fourier = torch.fft.fft(torch.eye(self.shape.in_size, dtype=matrix.dtype, device=matrix.device), norm="ortho")
        shuffle = torch.eye(self.shape.in_size, dtype=matrix.dtype, device=matrix.device)[self.permutation]
        fit = torch.full((matrix.shape[0],), -math.inf, dtype=phases.real.dtype, device=matrix.device)
        for _ in range(sweeps):
            # right to left, as the vector meets them
            factors = [_diag(phases[:, 0]), fourier, _mirror(reflections[:, 0]), shuffle]
            factors += [_diag(phases[:, 1]), fourier.mH, _mirror(reflections[:, 1]), _diag(phases[:, 2])]
            for place, index in ((0, 0), (4, 1), (7, 2)):
                corner = _surround(matrix, factors, place)
                phases[:, index] = torch.polar(
                    torch.ones_like(phases.real[:, index]), -corner.diagonal(dim1=-2, dim2=-1).angle()
                )
                factors[place] = _diag(phases[:, index])
            for place, index in ((2, 0), (6, 1)):
                corner = _surround(matrix, factors, place)
                reflections[:, index] = torch.linalg.eigh(corner + corner.mH)[1][..., 0]
                factors[place] = _mirror(reflections[:, index])
            new_fit = (_surround(matrix, factors, 6) @ factors[6]).diagonal(dim1=-2, dim2=-1).real.sum(-1)
            converged = bool((new_fit - fit <= 1e-12 * new_fit.abs()).all())
            fit = new_fit
            if converged:
                break
        _hooks.write(self, "phases", phases.angle())
        self.assign_("reflections", reflections)

    @property
    def macs(self) -> int:
        n = self.shape.in_size
        fft = 4 * n * max(1, math.ceil(math.log2(n))) // 2  # n/2 log n complex butterflies
        return self.shape.gates * (2 * fft + 4 * n * (3 + 4))


def _reflect(y: Tensor, v: Tensor) -> Tensor:
    return y - 2 * v * (v.conj() * y).sum(-1, keepdim=True)


def _diag(phases: Tensor) -> Tensor:
    return torch.diag_embed(phases)


def _mirror(v: Tensor) -> Tensor:
    identity = torch.eye(v.shape[-1], dtype=v.dtype, device=v.device)
    return identity - 2 * v.unsqueeze(-1) * v.conj().unsqueeze(-2)


def _surround(matrix: Tensor, factors: list[Tensor], place: int) -> Tensor:
    """C = B Mᴴ A, where W = A X B and X is the factor at `place` (factors are listed right to left)."""
    corner = matrix.mH
    for factor in reversed(factors[place + 1 :]):
        corner = corner @ factor
    for factor in factors[:place]:
        corner = factor @ corner
    return corner


@dataclass(frozen=True)
class UnitaryProduct(Structure):
    """A unitary matrix from 7n reals per gate and two FFTs. Needs a complex state."""

    map_type = UnitaryProductMap

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for UnitaryProduct(), got {shape.out_size} x {shape.in_size}")
        if not shape.complex:
            raise ValueError(
                "expected a complex state for UnitaryProduct(), got a real one: use "
                "RNN(..., nonlinearity='modrelu'), or FullUnitary(), which is orthogonal on a real state"
            )
