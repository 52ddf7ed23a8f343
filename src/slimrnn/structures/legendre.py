"""Legendre: the last θ steps as coefficients of Legendre polynomials (Voelker et al. 2019, "Legendre memory unit")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_number
from slimrnn._fields import field_dtype
from slimrnn._fixed_buffers import FixedBuffers
from slimrnn.structures.base import Prepared, Shape, Structure
from slimrnn.structures.dense import DenseMap


def legendre_memory(size: int, theta: float) -> tuple[Tensor, Tensor]:
    """Ā (n, n) and B̄ (n) of m_t = Ā m_{t−1} + B̄ u_t, in double precision.

    θ ṁ = A m + B u with A_ij = (2i + 1)(−1 where i < j, else (−1)^{i−j+1}) and B_i = (2i + 1)(−1)^i (their eq. 2), over
    steps of time 1 with u held (zero-order hold)."""
    i = torch.arange(size, dtype=torch.float64, device="cpu")
    sign = 1 - 2 * (i % 2)
    below = -sign.unsqueeze(1) * sign
    a = (2 * i + 1).unsqueeze(1) * torch.where(i.unsqueeze(1) < i, -torch.ones_like(below), below)
    b = (2 * i + 1) * sign
    both = i.new_zeros(size + 1, size + 1)  # exp of [[A, B], [0, 0]] is [[Ā, B̄], [0, 1]]
    both[:size, :size], both[:size, size] = a / theta, b / theta
    held = torch.linalg.matrix_exp(both)
    return held[:size, :size].contiguous(), held[:size, size].contiguous()


class LegendreMap(FixedBuffers, DenseMap):
    """y_g = Ā h, the same for every gate, with the fixed memory Ā (n, n)."""

    memory: Tensor
    entry: Tensor

    def _add_parameters(self, shape: Shape) -> None:
        n = shape.in_size
        for name, size in (("memory", (n, n)), ("entry", (n,))):
            empty = torch.empty(size, dtype=shape.dtype, device=shape.device)
            self.register_buffer(name, empty, persistent=False)
        self._fill(["memory", "entry"])

    def fixed_buffers(self) -> dict[str, Tensor]:
        assert isinstance(self.spec, Legendre)
        memory, entry = legendre_memory(self.shape.in_size, self.spec.theta)
        return {"memory": memory, "entry": entry}

    def prepare(self) -> Prepared:
        memory = self.memory.to(field_dtype(self.memory.dtype, self.complex))
        return (memory.expand(self.shape.gates, -1, -1),)

    def input_vector(self) -> Tensor:
        """B̄ (n): what one number of the input adds to the memory. To be written into a column of the input matrix."""
        return self.entry

    def project_(self, matrix: Tensor) -> None:
        """The one member there is."""


@dataclass(frozen=True)
class Legendre(Structure):
    """W = exp(A/θ): the state holds, as n coefficients of Legendre polynomials, what it was fed in the last `theta`
    steps. No parameters; dense when it runs: n² multiply-adds. Square only."""

    theta: float

    map_type = LegendreMap

    def __post_init__(self) -> None:
        check_number("theta", self.theta)
        if self.theta <= 0:
            raise ValueError(f"expected theta to be positive, got {self.theta}")

    def __repr__(self) -> str:
        return f"Legendre({self.theta})"

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for {self!r}, got {shape.out_size} x {shape.in_size}")
