"""Norms of the powers of a recurrent matrix: what gradients do before the spectral radius decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.analysis.matrices._krylov import Product, extreme_singular_values
from slimrnn.analysis.matrices._structured import doubled, form_of
from slimrnn.analysis.matrices.spectrum import EXACT_UP_TO, products, square_map
from slimrnn.structures.base import StructuredMap

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PowerNorms:
    """ln ‖Wᵏ‖ for several k; logarithms, since the norms themselves leave the range of numbers."""

    powers: NDArray[np.int64]  #: k
    log_spectral: Array
    log_frobenius: Array  #: NaN where `method` is "iterative"
    method: str  #: as in Spectrum


def power_norms(
    matrix: StructuredMap | ArrayLike | Tensor, powers: Sequence[int], gate: int = 0, *, exact_up_to: int = EXACT_UP_TO
) -> PowerNorms:
    """‖Wᵏ‖₂ and ‖Wᵏ‖_F through the structure: the gradient ∂h_{t+k}/∂h_t of the linear net h_t = W h_{t−1}.

    ρ(W)ᵏ ≤ ‖Wᵏ‖₂ ≤ ‖W‖₂ᵏ: a matrix with ρ < 1 < ‖W‖₂ may first let gradients grow. As in `spectrum`, a matrix
    without a form of its own is written out up to n = `exact_up_to`; beyond, an iteration gives ‖Wᵏ‖₂ only."""
    if not len(powers):
        raise ValueError("expected at least one power, got none")
    for k in powers:
        check_count("a power", k)
    map = square_map(matrix, gate)
    tensors = doubled(map)
    form = form_of(map, gate, tensors, exact_up_to)
    if form is None:
        product, adjoint, start = products(map, gate, tensors)
        logs = [(_log_norm(product, adjoint, start, k), math.nan) for k in powers]
        return _joined(powers, logs, "iterative")
    logs = []
    for k in powers:
        power, log_scale = form.power(k)
        sigma = power.singular_values()
        logs.append((_log(float(sigma.max())) + log_scale, _log(float(np.linalg.norm(sigma))) + log_scale))
    return _joined(powers, logs, form.method)


def _joined(powers: Sequence[int], logs: Sequence[tuple[float, float]], method: str) -> PowerNorms:
    spectral, frobenius = np.array(logs, dtype=np.float64).T
    return PowerNorms(np.array(powers, dtype=np.int64), spectral, frobenius, method)


@torch.no_grad()
def _log_norm(product: Product, adjoint: Product, start: Tensor, exponent: int) -> float:
    """ln ‖Wᵏ‖₂, with W/‖W‖₂ in place of W so that no power of it overflows."""
    (scale, _), _ = extreme_singular_values(product, adjoint, start)
    if scale == 0:
        return -math.inf

    def repeated(once: Product) -> Callable[[Tensor], Tensor]:
        def product(v: Tensor) -> Tensor:
            for _ in range(exponent):
                v = once(v) / scale
            return v

        return product

    (largest, _), _ = extreme_singular_values(repeated(product), repeated(adjoint), start)
    return _log(largest) + exponent * math.log(scale)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
