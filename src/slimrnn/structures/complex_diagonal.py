"""ComplexDiagonal: every unit turns and fades by itself (Orvieto et al. 2023, the linear recurrent unit, "LRU")."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn import _hooks
from slimrnn._checks import check_number
from slimrnn.structures.base import Prepared, Shape, Structure
from slimrnn.structures.diagonal import DiagonalMap


class ComplexDiagonalMap(DiagonalMap):
    """y_g = λ_g ⊙ h, λ = exp(−exp ν + i exp θ), with nu and theta (G, n). |λ| < 1 whatever they are."""

    def _add_parameters(self, shape: Shape) -> None:
        """λ uniform on the ring between the two radii (LRU, lemma 3.2)."""
        spec = self.spec
        assert isinstance(spec, ComplexDiagonal)
        inner, outer = spec.r_min**2, spec.r_max**2
        # From the open interval: neither |λ| = 0 nor 1, nor an angle of 0, has a logarithm.
        drawn = torch.rand(2, shape.gates, shape.in_size, dtype=shape.dtype, device=shape.device)
        u, v = drawn.clamp(1e-6, 1 - 1e-6).unbind(0)
        self.add_parameter("nu", (-0.5 * (u * (outer - inner) + inner).log()).log())
        self.add_parameter("theta", (spec.max_phase * v).log())

    def prepare(self) -> Prepared:
        modulus = (-self.stored("nu").exp()).exp()
        return (torch.polar(modulus, self.stored("theta").exp()),)

    def input_scale(self) -> Tensor:
        """√(1 − |λ|²), which keeps the state's size whatever |λ| is (LRU, §3.4)."""
        return (-torch.expm1(-2 * self.stored("nu").exp())).sqrt()

    def project_(self, matrix: Tensor) -> None:
        """The diagonal of the matrix, moved into the disc."""
        wanted = matrix.diagonal(dim1=-2, dim2=-1)
        limits = torch.finfo(wanted.real.dtype)
        modulus = wanted.abs().clamp(limits.tiny, 1 - limits.eps)
        _hooks.write(self, "nu", (-modulus.log()).log())
        angle = wanted.angle()
        _hooks.write(self, "theta", torch.where(angle > 0, angle, angle + 2 * math.pi).log())


@dataclass(frozen=True)
class ComplexDiagonal(Structure):
    """W = diag(λ), λ = exp(−exp ν + i exp θ): 2n real numbers per gate; |λ| < 1 always. Needs a complex state; the
    layer multiplies what the input adds to it by √(1 − |λ|²). Square only.

    At first λ is uniform on the ring r_min ≤ |λ| ≤ r_max, with angles up to `max_phase`. `RNN(...,
    nonlinearity="identity", complex=True, structure=ComplexDiagonal(0.9, 0.999))` is the recurrence of the LRU."""

    r_min: float = 0.0
    r_max: float = 1.0
    max_phase: float = 2 * math.pi

    map_type = ComplexDiagonalMap

    def __post_init__(self) -> None:
        for name in ("r_min", "r_max", "max_phase"):
            check_number(name, getattr(self, name))
        if not 0 <= self.r_min < self.r_max <= 1:
            raise ValueError(f"expected 0 <= r_min < r_max <= 1, got {self.r_min} and {self.r_max}")
        if not 0 < self.max_phase <= 2 * math.pi:
            raise ValueError(f"expected max_phase in (0, 2π], got {self.max_phase}")

    def __repr__(self) -> str:
        turned = "" if self.max_phase == 2 * math.pi else f", max_phase={self.max_phase}"
        return f"ComplexDiagonal({self.r_min}, {self.r_max}{turned})"

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for {self!r}, got {shape.out_size} x {shape.in_size}")
        if not shape.complex:
            raise ValueError(
                f"expected a complex state for {self!r}, got a real one: use RNN(..., nonlinearity='identity', "
                "complex=True) or nonlinearity='modrelu'"
            )
