"""Scores of classifications, from counts of what was taken for what.

Shape suffixes: N answers, C classes. counts_CC[i, j]: answers j where i is right.
"""

from __future__ import annotations

import torch
from torch import Tensor


def confusion(targets_N: Tensor, answers_N: Tensor, classes: int) -> Tensor:
    """counts_CC."""
    return torch.bincount(targets_N * classes + answers_N, minlength=classes * classes).view(classes, classes)


def accuracy(counts_CC: Tensor) -> float:
    return float(counts_CC.diagonal().sum() / counts_CC.sum().clamp_min(1))


def macro_f1(counts_CC: Tensor) -> float:
    """F1 = 2 · hits / (answers + cases), the mean over the classes that occur as a case or as an answer."""
    cases, answers = counts_CC.sum(1), counts_CC.sum(0)
    present = cases + answers > 0
    f1 = 2 * counts_CC.diagonal().double() / (cases + answers).clamp_min(1)
    return float(f1[present].mean()) if present.any() else 0.0
