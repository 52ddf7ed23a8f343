"""The ends of a large matrix's spectrum from products with vectors only: Arnoldi and Golub-Kahan-Lanczos.

Both keep all vectors and orthogonalise twice, so that a few hundred steps stay exact to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Product = Callable[[Tensor], Tensor]  # (n) -> (n)

STEPS = 300
LOOKS = (20, 40, 80, 160)  # the steps after which convergence is looked at
BREAKDOWN = 1e-13  # a remainder this small against the matrix: the vectors span an invariant space


def largest_eigenvalues(
    product: Product, start: Tensor, steps: int = STEPS, tolerance: float = 1e-10
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(values by falling modulus, their residuals ‖W v − λ v‖ for unit v) by Arnoldi's method.

    It ends when the first one has a residual of `tolerance` against its modulus, or after `steps`."""
    steps = min(steps, len(start))
    basis = start.new_zeros(steps + 1, len(start))
    basis[0] = start / torch.linalg.vector_norm(start)
    h = np.zeros((steps + 1, steps), dtype=np.complex128 if start.is_complex() else np.float64)
    for k in range(1, steps + 1):
        image = product(basis[k - 1])
        scale = float(torch.linalg.vector_norm(image))
        image, parts = _orthogonal(image, basis[:k])
        rest = float(torch.linalg.vector_norm(image))
        h[:k, k - 1], h[k, k - 1] = parts, rest
        closed = rest <= BREAKDOWN * scale
        if closed or k == steps or k in LOOKS:
            values, vectors = np.linalg.eig(h[:k, :k])
            order = np.argsort(-np.abs(values), kind="stable")
            values, residuals = values[order], (0.0 if closed else rest) * np.abs(vectors[-1, order])
            if closed or k == steps or residuals[0] <= tolerance * abs(values[0]):
                return values, residuals
        basis[k] = image / rest
    raise AssertionError("the last step ends the loop")


def extreme_singular_values(
    product: Product, adjoint: Product, start: Tensor, steps: int = STEPS, tolerance: float = 1e-10
) -> tuple[tuple[float, float], tuple[float, float]]:
    """((largest, its residual), (smallest, its residual)) by Golub-Kahan-Lanczos.

    A residual bounds the distance to some singular value. The largest one is found soon; the smallest only where few
    others are near it. Where the vectors close on themselves, all values are found: the start is random."""
    steps = min(steps, len(start))
    right, left = start.new_zeros(steps, len(start)), start.new_zeros(steps, len(start))
    right[0] = start / torch.linalg.vector_norm(start)
    bidiagonal = np.zeros((steps, steps))
    for k in range(steps):
        image, _ = _orthogonal(product(right[k]), left[:k])
        alpha = float(torch.linalg.vector_norm(image))
        bidiagonal[k, k] = alpha
        largest = float(np.abs(bidiagonal).max())
        if alpha > BREAKDOWN * largest:
            left[k] = image / alpha
        back, _ = _orthogonal(adjoint(left[k]), right[: k + 1])
        beta = float(torch.linalg.vector_norm(back))
        closed = min(alpha, beta) <= BREAKDOWN * largest
        if closed or k + 1 == steps or k + 1 in LOOKS:
            u, sigma, _ = np.linalg.svd(bidiagonal[: k + 1, : k + 1])
            residuals = (0.0 if closed else beta) * np.abs(u[-1])
            if closed or k + 1 == steps or max(residuals[0], residuals[-1]) <= tolerance * sigma[0]:
                return (float(sigma[0]), float(residuals[0])), (float(sigma[-1]), float(residuals[-1]))
        bidiagonal[k, k + 1] = beta
        right[k + 1] = back / beta
    raise AssertionError("the last step ends the loop")


def _orthogonal(vector: Tensor, basis: Tensor) -> tuple[Tensor, NDArray[Any]]:
    """The vector without its parts along the rows of an orthonormal basis, and these parts."""
    first = basis.conj() @ vector
    vector = vector - first @ basis
    second = basis.conj() @ vector  # what rounding left of them
    return vector - second @ basis, (first + second).cpu().numpy()
