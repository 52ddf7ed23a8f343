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
FEWEST = 20  # steps between two looks at the convergence
BREAKDOWN = 1e-13  # a remainder this small against the matrix: the vectors span an invariant space


def largest_eigenvalues(product: Product, start: Tensor, steps: int = STEPS, tolerance: float = 1e-10) -> Any:
    """(values by falling modulus, their residuals ‖W v − λ v‖ for unit v): those that Arnoldi's method has found.

    It ends when the first one is found to `tolerance` (against its modulus), or after `steps`."""
    n, found = len(start), [start / torch.linalg.vector_norm(start)]
    h = np.zeros((steps + 1, steps), dtype=as_numpy(start).dtype)
    for k in range(min(steps, n)):
        image = product(found[-1])
        scale = float(torch.linalg.vector_norm(image))
        image, parts = _orthogonal(image, found)
        rest = float(torch.linalg.vector_norm(image))
        h[: k + 1, k], h[k + 1, k] = parts, rest
        ended = rest <= BREAKDOWN * scale or k + 1 == min(steps, n)
        if ended or (k + 1) % FEWEST == 0:
            values, vectors = np.linalg.eig(h[: k + 1, : k + 1])
            residuals = (0.0 if rest <= BREAKDOWN * scale else rest) * np.abs(vectors[-1])
            order = np.argsort(-np.abs(values), kind="stable")
            values, residuals = values[order], residuals[order]
            if ended or residuals[0] <= tolerance * abs(values[0]):
                return values, residuals
        found.append(image / rest)
    raise AssertionError("the last step ends the loop")


def extreme_singular_values(
    product: Product, adjoint: Product, start: Tensor, steps: int = STEPS, tolerance: float = 1e-10
) -> tuple[tuple[float, float], tuple[float, float]]:
    """((largest, its residual), (smallest, its residual)) by Golub-Kahan-Lanczos.

    A residual bounds the distance to some singular value. The largest one is found soon; the smallest only where few
    others are near it."""
    n, right, left = len(start), [start / torch.linalg.vector_norm(start)], []
    bidiagonal = np.zeros((steps, steps))
    for k in range(min(steps, n)):
        image, _ = _orthogonal(product(right[-1]), left)
        alpha = float(torch.linalg.vector_norm(image))
        bidiagonal[k, k] = alpha
        largest = float(np.abs(bidiagonal).max())
        left.append(image / alpha if alpha > BREAKDOWN * largest else torch.zeros_like(image))
        back, _ = _orthogonal(adjoint(left[-1]), right)
        beta = float(torch.linalg.vector_norm(back))
        ended = beta <= BREAKDOWN * largest or alpha <= BREAKDOWN * largest or k + 1 == min(steps, n)
        if ended or (k + 1) % FEWEST == 0:
            u, sigma, _ = np.linalg.svd(bidiagonal[: k + 1, : k + 1])
            residuals = (0.0 if beta <= BREAKDOWN * largest else beta) * np.abs(u[-1])
            if ended or max(residuals[0], residuals[-1]) <= tolerance * sigma[0]:
                return (float(sigma[0]), float(residuals[0])), (float(sigma[-1]), float(residuals[-1]))
        bidiagonal[k, k + 1] = beta
        right.append(back / beta)
    raise AssertionError("the last step ends the loop")


def as_numpy(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().resolve_conj().cpu().numpy()


def _orthogonal(vector: Tensor, basis: list[Tensor]) -> tuple[Tensor, NDArray[Any]]:
    """The vector without its parts along an orthonormal basis, and these parts."""
    if not basis:
        return vector, np.zeros(0)
    rows = torch.stack(basis)
    first = rows.conj() @ vector
    vector = vector - first @ rows
    second = rows.conj() @ vector  # what rounding left of them
    return vector - second @ rows, as_numpy(first + second)
