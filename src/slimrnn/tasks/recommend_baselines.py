"""Baselines of recommendation, scored at the same positions as the nets: popularity and item-to-item transitions.

Shape suffixes: P positions, V items.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from slimrnn.data.interactions import Interactions
from slimrnn.tasks.recommend_splits import Windows, train_counts, without_seen
from slimrnn.tasks.recommendation_metrics import ranking_scores, ranks_of
from slimrnn.tasks.sampled_softmax import BLOCK_SIZE

Scorer = Callable[[NDArray[np.int32]], NDArray[np.float64]]  # last items (P) to scores (P, V)


def popularity(counts_V: NDArray[np.int64]) -> Scorer:
    """An item's score is its frequency in training, the same for all users."""
    return lambda last_P: np.broadcast_to(counts_V.astype(np.float64), (len(last_P), len(counts_V)))


def item_to_item(log: Interactions, windows: Windows, counts_V: NDArray[np.int64]) -> Scorer:
    """First-order Markov chain: the score of item j after item i is how often j followed i in training. Items that
    never did are ranked below, by popularity."""
    items = len(log.item_ids)
    followers = windows.targets()
    pairs, times = np.unique(
        log.items[followers - 1].astype(np.int64) * items + log.items[followers], return_counts=True
    )
    rows = np.searchsorted(pairs, np.arange(items + 1) * items)
    background_V = counts_V / (counts_V.sum() + 1.0)  # less than one occurrence

    def scores(last_P: NDArray[np.int32]) -> NDArray[np.float64]:
        scores_PV = np.tile(background_V, (len(last_P), 1))
        for p, item in enumerate(last_P):
            successors = slice(rows[item], rows[item + 1])
            scores_PV[p, pairs[successors] % items] += times[successors]
        return scores_PV

    return scores


@lru_cache(maxsize=8)
def baseline_scores(
    log: Interactions, training: Windows, windows: Windows, leave_out_seen: bool
) -> dict[str, dict[str, float]]:
    """Mean scores over all positions of a split, by method and by metric."""
    counts = train_counts(log, training)
    methods = {"popularity": popularity(counts), "item to item": item_to_item(log, training, counts)}
    return {name: _mean_scores(scorer, log, windows.targets(), leave_out_seen) for name, scorer in methods.items()}


def _mean_scores(scorer: Scorer, log: Interactions, targets: NDArray[np.int64], leave_out: bool) -> dict[str, float]:
    sums: dict[str, float] = {}
    size = max(1, BLOCK_SIZE // len(log.item_ids))
    for start in range(0, len(targets), size):
        events = targets[start : start + size]
        targets_P = torch.from_numpy(log.items[events].astype(np.int64))
        scores = torch.from_numpy(np.ascontiguousarray(scorer(log.items[events - 1])))
        if leave_out:
            scores = without_seen(scores, targets_P, torch.from_numpy(events - 1), log)
        for name, values in ranking_scores(ranks_of(scores, targets_P[:, None])).items():
            sums[name] = sums.get(name, 0.0) + float(values.double().sum())
    return {name: total / len(targets) for name, total in sums.items()}
