"""Metrics of multi-label rankings, as YouTube-8M defines them (Abu-El-Haija et al. 2016, and its evaluation code).

Shape suffixes: B videos, C classes, K places of a ranking, N predictions of all videos.
"""

from __future__ import annotations

import torch
from torch import Tensor

TOP = 20  # predictions per video that count


def ranking(output_BC: Tensor, places: int) -> Tensor:
    """The top K classes (B, K) by output; ties are broken by the smaller class index."""
    largest_BK, classes_BK = output_BC.topk(min(places, output_BC.shape[-1]))
    classes_BK = classes_BK.sort().values
    order_BK = output_BC.gather(-1, classes_BK).sort(descending=True, stable=True).indices
    ranked_BK = classes_BK.gather(-1, order_BK)
    # topk breaks ties at its last place arbitrarily; sorting everything is right, but thirty times slower
    least_B1 = largest_BK[:, -1:]
    tied_B = (output_BC == least_B1).sum(-1) > (largest_BK == least_B1).sum(-1)
    if tied_B.any():
        ranked_BK[tied_B] = output_BC[tied_B].sort(descending=True, stable=True).indices[:, : ranked_BK.shape[-1]]
    return ranked_BK


def precisions(output_BC: Tensor, targets_BC: Tensor) -> tuple[Tensor, Tensor]:
    """Per video: Hit@1, whether the top class is one of its labels; and PERR, the share of its R labels among the top
    R classes, 0 if it has none."""
    counts_B = targets_BC.sum(-1)
    most = max(1, int(counts_B.max())) if len(counts_B) else 1
    correct_BK = targets_BC.gather(-1, ranking(output_BC, most))
    within_BK = torch.arange(correct_BK.shape[-1], device=counts_B.device) < counts_B[:, None]
    return correct_BK[:, 0], (correct_BK * within_BK).sum(-1) / counts_B.clamp_min(1)


def average_precisions(confidence_N: Tensor, correct_N: Tensor, classes_N: Tensor, labels_C: Tensor) -> Tensor:
    """Average precision of each class (C): Σ precision · Δ recall over its predictions by falling confidence.

    `labels_C` is the number of positives; the result is 0 where there are none. Ties count together, with the precision
    after all of them."""
    order = confidence_N.argsort(descending=True, stable=True)
    order = order[classes_N[order].argsort(stable=True)]
    confidence, correct, classes = confidence_N[order], correct_N[order].double(), classes_N[order]
    first = torch.searchsorted(classes, classes)  # where the list of this prediction's class begins
    hits = correct.cumsum(0)
    place = torch.arange(len(order), device=order.device)
    before = (hits - correct)[first] if len(order) else hits
    changes = (confidence[1:] != confidence[:-1]) | (classes[1:] != classes[:-1])
    last = torch.cat([changes.nonzero()[:, 0], place[-1:]])  # of those of equal confidence
    end = last[torch.searchsorted(last, place)] if len(order) else place
    precision = (hits[end] - before) / (end - first + 1)
    sums_C = torch.zeros(len(labels_C), dtype=torch.float64, device=order.device)
    sums_C.index_add_(0, classes, precision * correct)
    return sums_C / labels_C.double().clamp_min(1)


def global_average_precision(confidence_N: Tensor, correct_N: Tensor, labels: float) -> float:
    """GAP: average precision over the predictions of all videos in one list; `labels` is the number of positives."""
    whole = torch.zeros(len(confidence_N), dtype=torch.int64, device=confidence_N.device)
    return float(average_precisions(confidence_N, correct_N, whole, torch.tensor([labels])))


def mean_average_precision(confidence_N: Tensor, correct_N: Tensor, classes_N: Tensor, labels_C: Tensor) -> float:
    """mAP: mean of the average precisions, over the classes with positives."""
    present = labels_C > 0
    if not present.any():
        return 0.0
    return float(average_precisions(confidence_N, correct_N, classes_N, labels_C)[present].mean())
