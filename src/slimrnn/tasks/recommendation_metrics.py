"""Ranking metrics: MAP, recall, NDCG, MRR.

They take ranks: (N, R), the places 1, 2, ... of the R relevant items in N rankings of all items, in ascending order; 0
where a ranking has fewer relevant items, after the others. The next item of a sequence is one relevant item: R = 1.
(MAP@k of torchmetrics divides by the hits among the top k, not by min(R, k).)
"""

from __future__ import annotations

import torch
from torch import Tensor


def ranks_of(scores: Tensor, relevant: Tensor) -> Tensor:
    """Ranks (N, R) of the relevant items (N, R), −1 for none, by scores (N, V), the highest first.

    Ties count against the net: an item ranks below all others of the same score, and NaN ranks last, so constant scores
    gain nothing. Items with a score of −inf are not ranked."""
    absent = relevant < 0
    values = scores.gather(-1, relevant.clamp_min(0))
    candidates = (scores != -torch.inf).sum(-1, keepdim=True)
    below = torch.stack([((scores < value) & (scores != -torch.inf)).sum(-1) for value in values.T[..., None]], -1)
    ranks = (candidates - below).masked_fill(absent, torch.iinfo(torch.long).max).sort(-1).values
    later = (ranks[:, :, None] == ranks[:, None, :]).triu(1).sum(-1)  # tied relevant items get different ranks
    return (ranks - later).masked_fill(absent.sort(-1).values, 0)


def average_precision(ranks: Tensor, k: int) -> Tensor:
    """AP@k (N) = Σ_{i: r_i ≤ k} i / r_i / min(R, k), with r_i the rank of the i-th relevant item; MAP@k is its mean.

    The denominator is what a perfect ranking reaches, so that it scores 1 for any R; some libraries divide by the
    relevant items among the first k instead. With one relevant item all agree: 1 / r, or 0 beyond k."""
    numbers = torch.arange(1, ranks.shape[-1] + 1, device=ranks.device)
    gains = torch.where(_within(ranks, k), numbers / ranks.clamp_min(1), 0.0)
    return gains.sum(-1) / _relevant(ranks).clamp(1, k)


def recall(ranks: Tensor, k: int) -> Tensor:
    """Recall@k (N): the share of the relevant items that are among the first k."""
    return _within(ranks, k).sum(-1) / _relevant(ranks).clamp_min(1)


def discounted_gain(ranks: Tensor, k: int) -> Tensor:
    """NDCG@k (N) = Σ_{i: r_i ≤ k} 1 / log₂(r_i + 1), divided by what a perfect ranking reaches."""
    discounts = 1 / torch.arange(2, k + 2, device=ranks.device).log2()
    ideal = discounts.cumsum(0)[_relevant(ranks).clamp(1, k) - 1]
    return torch.where(_within(ranks, k), discounts[ranks.clamp(1, k) - 1], 0.0).sum(-1) / ideal


def reciprocal_rank(ranks: Tensor) -> Tensor:
    """1 / r_1 (N), of the first relevant item; MRR is its mean."""
    first = ranks[:, 0]
    return torch.where(first > 0, 1 / first.clamp_min(1), 0.0)


def ranking_scores(ranks: Tensor) -> dict[str, Tensor]:
    """All metrics (N) of the task, by name."""
    return {
        "map_at_20": average_precision(ranks, 20),
        "recall_at_20": recall(ranks, 20),
        "ndcg_at_10": discounted_gain(ranks, 10),
        "mrr": reciprocal_rank(ranks),
    }


def _within(ranks: Tensor, k: int) -> Tensor:
    return (ranks > 0) & (ranks <= k)


def _relevant(ranks: Tensor) -> Tensor:
    return (ranks > 0).sum(-1)
