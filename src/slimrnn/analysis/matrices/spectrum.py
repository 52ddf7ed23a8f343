"""Eigenvalues and singular values of recurrent matrices, through their structure.

What they say about gradients: a linear net h_t = W h_{t−1} has ∂h_T/∂h_t = W^{T−t}, which grows or falls like
ρ(W)^{T−t} in the long run (lecture, "The Challenge of Long-Term Dependencies"). Prop. 1.1 of the factorized paper has
gradients vanish where the spectral radius ρ(W) is below 1. With a nonlinearity that is not enough, as the factors are
then diag(f') W with a new diagonal at every step: (1.5, −1.5; 1.5, −1.5) has ρ = 0, and behind the diagonal (1, 0) it
has ρ = 1.5. What suffices for any |f'| ≤ 1 is ‖W‖₂ < 1, since norms multiply. Both numbers are given here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.analysis.matrices._krylov import Product, extreme_singular_values, largest_eigenvalues
from slimrnn.analysis.matrices._structured import Matrix, doubled, form_of
from slimrnn.analysis.model.layers import LayerView, find_layers
from slimrnn.structures import Dense
from slimrnn.structures.base import Prepared, StructuredMap
from slimrnn.structures.dense import DenseMap
from slimrnn.structures.diagonal import DiagonalMap
from slimrnn.structures.low_rank import LowRankMap
from slimrnn.structures.sum import SumMap

Array = NDArray[np.float64]
EXACT_UP_TO = 1024
FOUND = 1e-6  # residual, against ‖W‖₂, of a value that an iteration has found


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The spectrum of one recurrent matrix W, n x n.

    `complete`: all n values were computed. Otherwise a Krylov method found the ends: `eigenvalues` has those of largest
    modulus that it found, `singular_values` the largest and, where it was found, the smallest."""

    layer: str  #: LayerView.name, or ""
    gate: str  #: a name of LayerView.maps, or ""
    size: int  #: n
    method: str  #: "diagonal", "block-diagonal", "kronecker", "low-rank", "dense" or "iterative"
    complete: bool
    eigenvalues: NDArray[np.complex128]  #: by falling modulus
    singular_values: Array  #: falling
    spectral_radius: float  #: the largest modulus of an eigenvalue
    spectral_norm: float  #: ‖W‖₂, the largest singular value
    smallest_singular_value: float  #: NaN where an iteration did not find it
    unitarity_drift: float  #: ‖WᴴW − I‖₂, NaN where the smallest singular value is
    unitarity_drift_frobenius: float
    radius_residual: float  #: ‖W v − λ v‖ of the largest eigenvalue with its unit eigenvector; 0 where complete

    @property
    def condition_number(self) -> float:
        """‖W‖₂ / σ_min, infinite for a singular matrix."""
        smallest = self.smallest_singular_value
        return math.inf if smallest == 0 else self.spectral_norm / smallest

    @property
    def steps_per_tenfold(self) -> float:
        """In how many steps ρ^k falls, or for ρ > 1 rises, tenfold: ln 10 / |ln ρ|."""
        rate = abs(math.log(self.spectral_radius)) if self.spectral_radius > 0 else math.inf
        return math.log(10) / rate if rate else math.inf

    def summary(self) -> str:
        """One line of text."""
        name = " ".join(part for part in (self.layer, self.gate) if part)
        steps, turn = self.steps_per_tenfold, "down" if self.spectral_radius < 1 else "up"
        rate = f"tenfold {turn} every {steps:.3g} steps" if steps < 1e6 else "neither up nor down"
        return (
            f"{name or 'matrix'}: spectral radius {self.spectral_radius:.4g} ({rate}), norm {self.spectral_norm:.4g}, "
            f"condition {self.condition_number:.3g}, drift from unitary {self.unitarity_drift:.3g} [{self.method}]"
        )


def spectra(model: nn.Module | LayerView, *, exact_up_to: int = EXACT_UP_TO) -> list[Spectrum]:
    """The spectrum of every gate's recurrent matrix in every recurrent layer, ours or torch.nn's."""
    views = [model] if isinstance(model, LayerView) else find_layers(model)
    return [
        spectrum(map, gate, exact_up_to=exact_up_to, names=(view.name, name))
        for view in views
        for name, (map, gate) in view.maps.items()
    ]


def spectrum(
    matrix: StructuredMap | ArrayLike | Tensor,
    gate: int = 0,
    *,
    exact_up_to: int = EXACT_UP_TO,
    names: tuple[str, str] = ("", ""),
) -> Spectrum:
    """The spectrum of a structured map's matrix for one gate, or of a square array.

    Diagonal, block-diagonal, low-rank and Kronecker matrices have all their values computed through the structure,
    whatever n is. Others, sums above all, are written out up to n = `exact_up_to`, beyond which iterations with
    products W v and Wᴴ v find the ends of the spectrum. (Kronecker factors that are not square count together with
    their neighbours, up to where they are square as a whole.)"""
    check_count("exact_up_to", exact_up_to)
    map = square_map(matrix, gate)
    tensors = doubled(map)
    form = form_of(map, gate, tensors, exact_up_to)
    return _iterated(map, gate, tensors, names) if form is None else _complete(form, names)


def square_map(matrix: StructuredMap | ArrayLike | Tensor, gate: int) -> StructuredMap:
    """The map, checked; an array becomes a dense one."""
    map = matrix if isinstance(matrix, StructuredMap) else _dense_map(matrix)
    shape = map.shape
    if shape.out_size != shape.in_size:
        raise ValueError(f"expected a square matrix, got {shape.out_size} x {shape.in_size}")
    if not 0 <= gate < shape.gates:
        raise ValueError(f"expected a gate from 0 to {shape.gates - 1}, got {gate}")
    for tensor in map.prepare():
        if not bool(torch.isfinite(torch.view_as_real(tensor) if tensor.is_complex() else tensor).all()):
            raise ValueError("expected finite numbers in the matrix, got NaN or infinity")
    return map


def _dense_map(matrix: ArrayLike | Tensor) -> StructuredMap:
    given = matrix.detach() if isinstance(matrix, Tensor) else torch.as_tensor(np.asarray(matrix))
    if given.dim() != 2 or 0 in given.shape:
        raise ValueError(f"expected a square matrix, got an array of shape {tuple(given.shape)}")
    return Dense().nearest(given.to(torch.complex128 if given.is_complex() else torch.float64))


def _complete(form: Matrix, names: tuple[str, str]) -> Spectrum:
    eigenvalues, sigma = form.eigenvalues().astype(np.complex128), np.sort(form.singular_values())[::-1]
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues), kind="stable")]
    defect = np.abs(sigma**2 - 1)  # the eigenvalues of WᴴW − I
    return Spectrum(
        layer=names[0],
        gate=names[1],
        size=len(sigma),
        method=form.method,
        complete=True,
        eigenvalues=eigenvalues,
        singular_values=sigma,
        spectral_radius=float(np.abs(eigenvalues[0])),
        spectral_norm=float(sigma[0]),
        smallest_singular_value=float(sigma[-1]),
        unitarity_drift=float(defect.max()),
        unitarity_drift_frobenius=float(np.linalg.norm(defect)),
        radius_residual=0.0,
    )


@torch.no_grad()
def _iterated(map: StructuredMap, gate: int, tensors: Prepared, names: tuple[str, str]) -> Spectrum:
    product, adjoint, start = products(map, gate, tensors)
    (largest, _), (smallest, smallest_residual) = extreme_singular_values(product, adjoint, start)
    if smallest_residual > FOUND * largest:
        smallest = _from_inverse(map, gate, tensors, product, start)
    ends = np.array([largest] if math.isnan(smallest) else [largest, smallest])
    drift = math.nan if math.isnan(smallest) else float(np.abs(ends**2 - 1).max())
    values, residuals = np.zeros(0), np.zeros(0)
    if largest - smallest <= FOUND * largest:  # a multiple of a unitary matrix: all moduli are this one
        radius, residual, frobenius = largest, 0.0, math.sqrt(len(start)) * drift
    else:
        values, residuals = largest_eigenvalues(product, start)
        radius, residual = float(abs(values[0])), float(residuals[0])
        frobenius = _drift_by_columns(map, gate, tensors)
    found = int(np.argmax(np.append(residuals > FOUND * largest, True)))  # up to the first that is not
    return Spectrum(
        layer=names[0],
        gate=names[1],
        size=map.shape.in_size,
        method="iterative",
        complete=False,
        eigenvalues=values[:found].astype(np.complex128),
        singular_values=ends,
        spectral_radius=radius,
        spectral_norm=largest,
        smallest_singular_value=smallest,
        unitarity_drift=drift,
        unitarity_drift_frobenius=frobenius,
        radius_residual=residual,
    )


def products(map: StructuredMap, gate: int, tensors: Prepared) -> tuple[Product, Product, Tensor]:
    """v ↦ W v, v ↦ Wᴴ v, and a random vector to start from, always the same."""
    only = slice(gate, gate + 1)
    numbers = np.random.default_rng(0).standard_normal((2, map.shape.in_size))
    start = numbers[0] + 1j * numbers[1] if map.complex else numbers[0]
    return (
        lambda v: map.matvec(v, only, tensors).squeeze(-2),
        lambda v: map.rmatvec(v.unsqueeze(-2), only, tensors),
        torch.from_numpy(start).to(tensors[0].device),
    )


def _drift_by_columns(map: StructuredMap, gate: int, tensors: Prepared, at_once: int = 256) -> float:
    """‖WᴴW − I‖_F, a few columns at a time."""
    product, adjoint, start = products(map, gate, tensors)
    squares = 0.0
    for columns in torch.eye(len(start), dtype=start.dtype, device=start.device).split(at_once):
        squares += float((adjoint(product(columns)) - columns).abs().square().sum())
    return math.sqrt(squares)


def _from_inverse(map: StructuredMap, gate: int, tensors: Prepared, product: Product, start: Tensor) -> float:
    """σ_min = 1/‖W⁻¹‖₂ where W v = b has a quick solution; else, or where it is inexact, NaN."""
    solvers = _solvers(map, gate, tensors)
    if solvers is None:
        return math.nan
    solve, solve_adjoint = solvers
    again = product(solve(start))
    if not float(torch.linalg.vector_norm(again - start)) <= FOUND * float(torch.linalg.vector_norm(start)):
        return math.nan
    (inverse_norm, residual), _ = extreme_singular_values(solve, solve_adjoint, start)
    return 1 / inverse_norm if residual <= FOUND * inverse_norm else math.nan


def _solvers(map: StructuredMap, gate: int, tensors: Prepared) -> tuple[Product, Product] | None:
    """b ↦ W⁻¹ b and b ↦ W⁻ᴴ b for a dense matrix, and for D + L R by Woodbury's identity."""
    if isinstance(map, DenseMap):
        factors, pivots, failed = torch.linalg.lu_factor_ex(tensors[0][gate])

        def solve_dense(b: Tensor, adjoint: bool = False) -> Tensor:
            solved: Tensor = torch.linalg.lu_solve(factors, pivots, b.unsqueeze(-1), adjoint=adjoint)
            return solved.squeeze(-1)

        return None if int(failed) else (solve_dense, lambda b: solve_dense(b, adjoint=True))
    parts = list(map.parts) if isinstance(map, SumMap) else []
    if [type(part) for part in parts] == [LowRankMap, DiagonalMap]:
        left, right, diagonal = tensors
    elif [type(part) for part in parts] == [DiagonalMap, LowRankMap]:
        diagonal, left, right = tensors
    else:
        return None
    d, low, high = diagonal[gate], left[gate], right if right.dim() == 2 else right[gate]
    if bool((d == 0).any()):
        return None
    core = torch.eye(high.shape[0], dtype=d.dtype, device=d.device) + (high / d) @ low

    def solve_sum(b: Tensor) -> Tensor:
        inner: Tensor = torch.linalg.solve(core, high @ (b / d))
        return (b - low @ inner) / d

    def solve_adjoint(b: Tensor) -> Tensor:
        b = b / d.conj()
        inner: Tensor = torch.linalg.solve(core.mH, low.mH @ b)
        return b - high.mH @ inner / d.conj()

    return solve_sum, solve_adjoint
