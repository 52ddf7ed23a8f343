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

BLOCK_SIZE = 2**20  # most elements in a block of scores: those of a larger one leave the cache between operations


class Candidates(NamedTuple):
    """Distinct negative items, and what to add to the score of each: log(count / Q), Q the expected count of the
    item among the samples."""

    items_C: Tensor
    corrections_C: Tensor


class Sampler:
    """Samples items with replacement; all of them have a positive probability."""

    def __init__(self, probabilities_V: NDArray[np.float64], count: int) -> None:
        self.log_expected_V = torch.from_numpy(np.log(probabilities_V * count))
        self.cumulated_V = torch.from_numpy(np.cumsum(probabilities_V))
        self.count = count

    def draw(self) -> Candidates:
        """Uses torch's global random number generator."""
        points = torch.rand(self.count, dtype=torch.float64) * self.cumulated_V[-1]
        drawn = torch.searchsorted(self.cumulated_V, points, right=True).clamp_max(len(self.cumulated_V) - 1)
        items_C, times_C = drawn.unique(return_counts=True)
        return Candidates(items_C, times_C.double().log() - self.log_expected_V[items_C])


def unigram(counts_V: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability of an item in proportion to its frequency + 1."""
    smoothed: NDArray[np.float64] = (counts_V + 1.0) / (counts_V + 1.0).sum()
    return smoothed


def log_uniform(counts_V: NDArray[np.int64]) -> NDArray[np.float64]:
    """log((k + 2) / (k + 1)) / log(V + 1) for the item of frequency rank k = 0, 1, ...: Zipf's law."""
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

    which is unbiased. The target is always included, so its Q is 1, and drawing it as a negative does not count. Memory
    is bounded: scores are computed block by block."""
    positive_P = (rows_PE * matrix_VE[targets_P]).sum(-1) + bias_V[targets_P]
    if candidates is None:
        return _log_partition(rows_PE, positive_P, matrix_VE, bias_V, targets_P, weights_P)
    items_C = candidates.items_C.to(rows_PE.device)
    columns_V = torch.full_like(bias_V, -1, dtype=torch.long)
    columns_V[items_C] = torch.arange(len(items_C), device=items_C.device)
    bias_C = bias_V[items_C] + candidates.corrections_C.to(bias_V)
    return _log_partition(rows_PE, positive_P, matrix_VE[items_C], bias_C, columns_V[targets_P], weights_P)


def _log_partition(*arguments: Tensor) -> Tensor:
    total: Tensor = _LogPartition.apply(*arguments)  # type: ignore[no-untyped-call]
    return total


class _LogPartition(torch.autograd.Function):
    """Σ_p w_p (log(exp(positive_p) + Σ_{c ≠ place_p} exp(row_p · matrix_c + bias_c)) − positive_p); place −1: none.

    The gradients are computed in the forward pass, block by block, so scores are computed once."""

    @staticmethod
    def forward(
        ctx: Any,
        rows_PE: Tensor,
        positive_P: Tensor,
        matrix_CE: Tensor,
        bias_C: Tensor,
        places_P: Tensor,
        weights_P: Tensor,
    ) -> Tensor:
        d_rows, d_positive = torch.empty_like(rows_PE), torch.empty_like(positive_P)
        d_matrix, d_bias = torch.zeros_like(matrix_CE), torch.zeros_like(bias_C)
        total = rows_PE.new_zeros(())
        size = max(1, BLOCK_SIZE // max(1, len(bias_C)))
        for start in range(0, len(rows_PE), size):
            block = slice(start, start + size)
            rows, positive, places, weights = (
                rows_PE[block],
                positive_P[block],
                places_P[block],
                weights_P[block],
            )
            scores = torch.addmm(bias_C, rows, matrix_CE.t())
            hit = places >= 0
            scores[hit.nonzero()[:, 0], places[hit]] = -torch.inf
            highest = scores.amax(-1).clamp_min(torch.finfo(scores.dtype).min)  # −∞ where the target is all there is
            shares = scores.sub_(highest[:, None]).exp_()  # taken once, and in place: a block is most of the time
            log_z = torch.logaddexp(highest + shares.sum(-1).log(), positive)
            total += (weights * (log_z - positive)).sum()
            chances = shares.mul_((weights * (highest - log_z).exp())[:, None])
            torch.mm(chances, matrix_CE, out=d_rows[block])
            d_positive[block] = weights * ((positive - log_z).exp() - 1)
            d_matrix.addmm_(chances.t(), rows)
            d_bias += chances.sum(0)
        ctx.save_for_backward(d_rows, d_positive, d_matrix, d_bias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * d_total for gradient in ctx.saved_tensors), None, None)
