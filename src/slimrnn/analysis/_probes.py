"""What the measures of gradient reach have in common: the vectors that are carried back, and the norms.

Shape suffixes: B batch, V vectors, N numbers of what is differentiated by, K lags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.analysis.reach import Array

ROWS = 2048  # vectors that are carried back at once, at least those of one sequence


def check_lags(lags: int | None, most: int, probes: int | None) -> int:
    """The largest lag to look at."""
    if probes is not None:
        check_count("probes", probes)
    if lags is None:
        return most
    check_count("lags", lags)
    if lags > most:
        raise ValueError(f"expected at most {most} lags for the steps of x, got {lags}")
    return lags


def vectors_for(chosen_N: Tensor, probes: int | None, seed: int) -> Tensor:
    """(V, N): the unit vectors of the chosen numbers, or random signs there."""
    if probes is None:
        return torch.eye(len(chosen_N), dtype=torch.float64, device=chosen_N.device)[chosen_N]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(probes, len(chosen_N)))
    return torch.from_numpy(signs).to(chosen_N.device) * chosen_N


@torch.no_grad()
def log_norms(rows_VBN: Tensor, log_scale_B: Tensor, exact: bool, spectral: bool) -> tuple[Tensor, ...]:
    """(ln ‖J‖_F, ln ‖J‖₂ or NaN, relative error of ‖J‖_F² or NaN), (B) each, of J e^{−scale}, (V, N), given the rows of
    it, or products of it with V random vectors."""
    rows_BVN = rows_VBN.transpose(0, 1)
    squares_BV = rows_BVN.square().sum(-1)
    total_B = squares_BV.sum(-1) if exact else squares_BV.mean(-1)
    largest_B, error_B = torch.full_like(total_B, math.nan), torch.full_like(total_B, math.nan)
    if exact and spectral:
        # σ₁² is the largest eigenvalue of JJᵀ and JᵀJ, and no less accurate for being squared.
        wide = rows_BVN.shape[-1] > rows_BVN.shape[-2]
        gram = rows_BVN @ rows_BVN.mT if wide else rows_BVN.mT @ rows_BVN
        largest_B = torch.linalg.eigvalsh(gram)[:, -1].clamp_min(0)
    elif not exact and rows_VBN.shape[0] > 1:
        error_B = squares_BV.std(-1) / math.sqrt(len(rows_VBN)) / torch.where(total_B > 0, total_B, 1.0)
    return 0.5 * total_B.log() + log_scale_B, 0.5 * largest_B.log() + log_scale_B, error_B


def joined(measured: Sequence[tuple[Array, Array, Array]], lags: int) -> list[Array]:
    """Sequences side by side, with NaN beyond the start of a shorter one."""

    def padded(values_KB: Array) -> Array:
        missing = np.full((lags - len(values_KB), values_KB.shape[1]), math.nan)
        return np.concatenate([values_KB, missing])

    return [np.concatenate([padded(values) for values in some], 1) for some in zip(*measured, strict=True)]
