"""Weighted means of scores, kept as a sum and a weight.

Shape suffixes: T time, B sequences, O outputs.
"""

from __future__ import annotations

from torch import Tensor

from slimrnn.training.task import Score


def average(values: Tensor, weights: Tensor | None = None) -> Score:
    """The mean of values (T, B), (B), (T, B, O) or (B, O) with weights (T, B) or (B), the same for all O outputs."""
    if weights is None:
        return Score(values.sum(), float(values.numel()))
    weights = weights.to(values.dtype)
    if values.dim() > weights.dim():
        weights = weights.unsqueeze(-1).expand_as(values)
    return Score((values * weights).sum(), weights.sum())
