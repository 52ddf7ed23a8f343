"""What the measures of gradient reach have in common: the vectors that are carried back, and the norms.

Shape suffixes: B batch, V vectors, N numbers of what is differentiated by, K lags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn._fields import real_view
from slimrnn.analysis.gradients.reach import Reach
from slimrnn.cells.base import State

ROWS = 2048  # vectors that are carried back at once, at least those of one sequence
HISTORY = 2**23  # numbers that the backward pass through a segment may keep, more or less
LONGEST = 32  # steps of a segment, within which a gradient must not leave the range of numbers


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


def segment_length(time: int, rows: int, width: int) -> int:
    """Steps of a segment with so many rows of about this many numbers per step: √T, or fewer."""
    return max(1, min(math.isqrt(time), LONGEST, HISTORY // (4 * rows * width)))


@torch.no_grad()
def states_between(
    run: Callable[[Tensor, State], tuple[Tensor, State]], segments: Sequence[Tensor], state: State
) -> tuple[list[State], Tensor]:
    """The states before each segment, and the outputs of the last one.

    As with `NormTable`, they have their place from the start."""
    kept = [part.new_empty(len(segments), *part.shape) for part in state]
    for number, segment in enumerate(segments):
        for place, part in zip(kept, state, strict=True):
            place[number] = part
        output, state = run(segment, state)
    if not all(bool(part.isfinite().all()) for part in (output, *state)):
        steps = sum(len(segment) for segment in segments)
        raise ValueError(f"expected states that stay finite over {steps} steps, got NaN or infinity")
    return list(zip(*(place.unbind(0) for place in kept), strict=True)), output


def carried_back(vectors: Sequence[Tensor], after: Sequence[Tensor], before: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """vᵀ ∂after/∂before.

    As the gradient of a number, Re v̄ᵀ after: given the vectors themselves, torch.autograd.grad would first import
    sympy, which takes longer than many a measure."""
    with torch.enable_grad():
        number = sum((real_view(a) * real_view(v)).sum() for a, v in zip(after, vectors, strict=True))
    assert isinstance(number, Tensor)
    return torch.autograd.grad(number, [*before], materialize_grads=True)


def brought_back(rows_VBN: Tensor, log_scale_B: Tensor) -> tuple[Tensor, Tensor]:
    """Each sequence's rows divided by their largest number, whose logarithm is added to the scale."""
    size_B = rows_VBN.abs().amax((0, 2))
    if not bool(size_B.isfinite().all()):
        raise ValueError("expected finite gradients, got NaN or infinity")
    size_B = torch.where(size_B > 0, size_B, 1.0)
    return rows_VBN / size_B.unsqueeze(-1), log_scale_B + size_B.log()


def vectors_for(chosen_N: Tensor, probes: int | None, seed: int) -> Tensor:
    """(V, N): the unit vectors of the chosen numbers, or random signs there."""
    if probes is None:
        return torch.eye(len(chosen_N), dtype=torch.float64, device=chosen_N.device)[chosen_N]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(probes, len(chosen_N)))
    return torch.from_numpy(signs).to(chosen_N.device) * chosen_N


class NormTable:
    """ln ‖J‖_F, ln ‖J‖₂ and the relative error of ‖J‖_F², (K, B) each, filled from lag 0 on; NaN where nothing came.

    It is allocated at once: many small results between large intermediate ones would break up the memory."""

    def __init__(self, lags: int, batch: int, exact: bool, spectral: bool) -> None:
        self.exact, self.spectral, self.filled = exact, spectral, 0
        self.values = np.full((3, lags, batch), math.nan)

    @property
    def full(self) -> bool:
        return self.filled == self.values.shape[1]

    @torch.no_grad()
    def add(self, rows_TVBN: Tensor, log_scale_B: Tensor) -> None:
        """The next lags, of J e^{−scale}, (V, N): its rows, or the products of it with V random vectors."""
        room = self.values.shape[1] - self.filled
        rows_TBVN = rows_TVBN[:room].transpose(1, 2)
        size_TB = rows_TBVN.abs().amax((2, 3))
        if not bool(size_TB.isfinite().all()):
            raise ValueError("expected finite gradients, got NaN or infinity")
        size_TB = torch.where(size_TB > 0, size_TB, 1.0)  # before squaring, which halves the range of numbers
        rows_TBVN = rows_TBVN / size_TB[..., None, None]
        scale_TB = size_TB.log() + log_scale_B
        squares_TBV = rows_TBVN.square().sum(-1)
        count = squares_TBV.shape[-1]
        total_TB = squares_TBV.sum(-1) if self.exact else squares_TBV.mean(-1)
        found = self.values[:, self.filled : self.filled + len(total_TB)]
        found[0] = (0.5 * total_TB.log() + scale_TB).cpu().numpy()
        if self.exact and self.spectral:
            # σ₁² is the largest eigenvalue of JJᵀ and JᵀJ, and no less accurate for being squared.
            wide = rows_TBVN.shape[-1] > count
            gram = rows_TBVN @ rows_TBVN.mT if wide else rows_TBVN.mT @ rows_TBVN
            largest_TB = torch.linalg.eigvalsh(gram)[..., -1].clamp_min(0)
            found[1] = (0.5 * largest_TB.log() + scale_TB).cpu().numpy()
        elif not self.exact and count > 1:
            error_TB = squares_TBV.std(-1) / math.sqrt(count) / torch.where(total_TB > 0, total_TB, 1.0)
            found[2] = error_TB.cpu().numpy()
        self.filled += len(total_TB)


def reach_of(layer: str, of: str, tables: Sequence[NormTable], probes: int | None) -> Reach:
    """The sequences side by side."""
    frobenius, largest, error = np.concatenate([table.values for table in tables], -1)
    exact = tables[0].exact
    return Reach(
        layer=layer,
        of=of,
        lags=np.arange(len(frobenius)),
        log_frobenius=frobenius,
        log_spectral=largest if exact and tables[0].spectral else None,
        probes=None if exact else probes,
        relative_error=None if exact else error,
    )
