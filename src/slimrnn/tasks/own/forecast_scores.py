"""Scores of forecasts.

Shape suffixes: H steps ahead, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

TINY = 1e-12


def pinball(forecasts: Tensor, targets: Tensor, quantiles: Sequence[float]) -> Tensor:
    """max(q e, (q − 1) e) with e = target − forecast: (..., H, Q) and (..., H) to the mean over Q, (..., H)."""
    levels = forecasts.new_tensor(quantiles)
    errors = targets.unsqueeze(-1) - forecasts
    return torch.maximum(levels * errors, (levels - 1) * errors).mean(-1)


def symmetric(errors: Tensor, forecasts: Tensor, targets: Tensor) -> Tensor:
    """2 |e| / (|forecast| + |target|), of which sMAPE is the mean."""
    return 2 * errors.abs() / (forecasts.abs() + targets.abs()).clamp_min(TINY)


def quantile_scores(outputs: Tensor, targets: Tensor, quantiles: Sequence[float]) -> dict[str, Tensor]:
    """Each of shape (..., H), of outputs (..., H, Q). `targets` are, side by side, what the outputs should be (H), what
    they are added to (H), level and scale of their unit, and the unit of MASE; of missing values, zero is right."""
    ahead = outputs.shape[-2]
    residual, base = targets[..., :ahead].nan_to_num(), targets[..., ahead : 2 * ahead]
    level, scale, unit = (targets[..., 2 * ahead + k, None] for k in range(3))
    loss = pinball(outputs, residual, quantiles)
    outputs = outputs.detach().sort(-1).values
    errors = (residual - outputs[..., [*quantiles].index(0.5)]) * scale
    truth = (residual + base) * scale + level
    inside = (residual >= outputs[..., 0]) & (residual <= outputs[..., -1])
    return {
        "loss": loss,
        "mae": errors.abs(),
        "mase": errors.abs() / unit,
        "smape": symmetric(errors, truth - errors, truth),
        "coverage": inside.to(loss.dtype),
    }
