"""Softmax over many items, exact or estimated from some of them (Jean et al. 2015; factorized paper §3.3).

Shape suffixes: P positions, V items, C candidates, E width of the embeddings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

AT_A_TIME = 2**24  # numbers in a block of scores


class Candidates(NamedTuple):
    """Different items to hold the right ones against, and what to add to the score of each: −log Q, where Q is how
    often an item is expected to be drawn, plus the logarithm of how often it was."""

    items_C: Tensor
    corrections_C: Tensor


class Sampler:
    """Draws items with replacement from a distribution that gives all of them a chance."""

    def __init__(self, probabilities_V: NDArray[np.float64], count: int) -> None:
        self.log_expected_V = torch.from_numpy(np.log(probabilities_V * count))
        self.cumulated_V = torch.from_numpy(np.cumsum(probabilities_V))
        self.count = count

    def draw(self) -> Candidates:
        """From torch's global random numbers."""
        points = torch.rand(self.count, dtype=torch.float64) * self.cumulated_V[-1]
        drawn = torch.searchsorted(self.cumulated_V, points, right=True).clamp_max(len(self.cumulated_V) - 1)
        items_C, times_C = drawn.unique(return_counts=True)
        return Candidates(items_C, times_C.double().log() - self.log_expected_V[items_C])


def unigram(counts_V: NDArray[np.int64]) -> NDArray[np.float64]:
    """In proportion to how often an item occurs, and once more, so that those that do not have a chance."""
    smoothed: NDArray[np.float64] = (counts_V + 1.0) / (counts_V + 1.0).sum()
    return smoothed


def log_uniform(counts_V: NDArray[np.int64]) -> NDArray[np.float64]:
    """log((k + 2) / (k + 1)) / log(V + 1) for the item of rank k = 0, 1, ... by how often it occurs: Zipf's law."""
    ranks_V = np.empty(len(counts_V), dtype=np.int64)
    ranks_V[np.argsort(-counts_V, kind="stable")] = np.arange(len(counts_V))
    chances: NDArray[np.float64] = np.log((ranks_V + 2) / (ranks_V + 1)) / np.log(len(counts_V) + 1)
    return chances


def softmax_loss(
    rows_PE: Tensor,
    targets_P: Tensor,
    weights_P: Tensor,
    matrix_VE: Tensor,
    bias_V: Tensor,
    candidates: Candidates | None = None,
) -> Tensor:
    """Σ w (log Z − s_target) with scores s = matrix row + bias and Z = Σ exp(s) over all items; with candidates,

        Z ≈ exp(s_target) + Σ_{j drawn, j ≠ target} exp(s_j − log Q_j),

    whose mean over the draws is Z. The target is there for certain, so that its own Q is 1; where it is drawn as well,
    this does not count. Memory stays bounded: scores are made, used and forgotten block by block."""
    own_P = (rows_PE * matrix_VE[targets_P]).sum(-1) + bias_V[targets_P]
    if candidates is None:
        return _log_partition(rows_PE, own_P, matrix_VE, bias_V, targets_P, weights_P)
    items_C = candidates.items_C.to(rows_PE.device)
    columns_V = torch.full_like(bias_V, -1, dtype=torch.long)
    columns_V[items_C] = torch.arange(len(items_C), device=items_C.device)
    bias_C = bias_V[items_C] + candidates.corrections_C.to(bias_V)
    return _log_partition(rows_PE, own_P, matrix_VE[items_C], bias_C, columns_V[targets_P], weights_P)


def _log_partition(*arguments: Tensor) -> Tensor:
    total: Tensor = _LogPartition.apply(*arguments)  # type: ignore[no-untyped-call]
    return total


class _LogPartition(torch.autograd.Function):
    """Σ_p w_p (log(exp(own_p) + Σ_{c ≠ place_p} exp(row_p · matrix_c + bias_c)) − own_p); a place of −1 is none.

    The gradients of a block of positions are computed along with it: its scores are needed only once."""

    @staticmethod
    def forward(
        ctx: Any, rows_PE: Tensor, own_P: Tensor, matrix_CE: Tensor, bias_C: Tensor, places_P: Tensor, weights_P: Tensor
    ) -> Tensor:
        d_rows, d_own = torch.empty_like(rows_PE), torch.empty_like(own_P)
        d_matrix, d_bias = torch.zeros_like(matrix_CE), torch.zeros_like(bias_C)
        total = rows_PE.new_zeros(())
        size = max(1, AT_A_TIME // max(1, len(bias_C)))
        for start in range(0, len(rows_PE), size):
            block = slice(start, start + size)
            rows, own, places, weights = rows_PE[block], own_P[block], places_P[block], weights_P[block]
            scores = torch.addmm(bias_C, rows, matrix_CE.t())
            hit = places >= 0
            scores[hit.nonzero()[:, 0], places[hit]] = -torch.inf
            log_z = torch.logaddexp(scores.logsumexp(-1), own)
            total += (weights * (log_z - own)).sum()
            chances = scores.sub_(log_z[:, None]).exp_().mul_(weights[:, None])
            torch.mm(chances, matrix_CE, out=d_rows[block])
            d_own[block] = weights * ((own - log_z).exp() - 1)
            d_matrix.addmm_(chances.t(), rows)
            d_bias += chances.sum(0)
        ctx.save_for_backward(d_rows, d_own, d_matrix, d_bias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * d_total for gradient in ctx.saved_tensors), None, None)
