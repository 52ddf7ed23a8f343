"""The weighted distance of a matrix from an approximation: ‖G^½ (W − Ŵ) C^½‖², with the gates one above the other.

    C = E v vᵀ of what the matrix sees,   G = E g gᵀ of the gradients of its outputs

To second order, and with v and g taken as independent, half of it is what the approximation adds to the loss. With
triangular roots, G = A Aᵀ and C = B Bᵀ, it is ‖Aᵀ (W − Ŵ) B‖².

Shape suffixes: M = G·m rows, n columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.compression.second_moments import Moments

DAMPED = 1e-3  # of G's mean eigenvalue, added to all: directions that a few thousand steps did not show
CLAMPED = 1e-6  # of C's


class Weighting:
    """Of a matrix `target` (M, n); without moments, the plain Frobenius norm."""

    def __init__(self, target: Tensor, gates: int, moments: Moments | None = None, damping: float = DAMPED) -> None:
        self.target, self.gates = target, gates
        self.inputs, self.outputs, self.left, self.right = None, None, None, None
        if moments is not None:
            self.inputs = _damped(moments.inputs / moments.weight, CLAMPED)
            self.outputs = _damped(moments.outputs, damping)
            self.left, self.right = torch.linalg.cholesky(self.outputs), torch.linalg.cholesky(self.inputs)

    def whitened(self, matrix: Tensor) -> Tensor:
        """Aᵀ matrix B"""
        if self.left is None or self.right is None:
            return matrix
        whitened: Tensor = self.left.mT @ matrix @ self.right
        return whitened

    def unwhitened_rows(self, rows: Tensor) -> Tensor:
        """A⁻ᵀ rows"""
        if self.left is None:
            return rows
        solved: Tensor = torch.linalg.solve_triangular(self.left.mT, rows, upper=True)
        return solved

    def whitened_rows(self, rows: Tensor) -> Tensor:
        """Aᵀ rows"""
        return rows if self.left is None else self.left.mT @ rows

    def error(self, approximation: Tensor) -> float:
        """‖Aᵀ (W − Ŵ) B‖²"""
        return float(self.whitened(self.target - approximation).square().sum())

    def slope(self, approximation: Tensor) -> Tensor:
        """Half of the error's gradient with respect to the approximation: −G (W − Ŵ) C."""
        left_out = approximation - self.target
        if self.inputs is None or self.outputs is None:
            return left_out
        return self.outputs @ left_out @ self.inputs

    @property
    def whole(self) -> float:
        """The error of nothing at all."""
        return float(self.whitened(self.target).square().sum())

    def of_gate(self, gate: int) -> Weighting:
        """Of one gate's matrix, as if the others were exact."""
        rows = slice(gate * len(self.target) // self.gates, (gate + 1) * len(self.target) // self.gates)
        part = Weighting(self.target[rows], 1)
        if self.outputs is not None:
            part.inputs, part.right = self.inputs, self.right
            part.outputs = self.outputs[rows, rows]
            part.left = torch.linalg.cholesky(part.outputs)
        return part


def _damped(moment: Tensor, share: float) -> Tensor:
    mean = moment.diagonal().mean().clamp_min(torch.finfo(moment.dtype).tiny)
    return moment + share * mean * torch.eye(len(moment), dtype=moment.dtype, device=moment.device)
