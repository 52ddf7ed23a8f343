"""Descent to the nearest member of a family that has no closed form for it."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.structures.base import StructuredMap


def descend_(map: StructuredMap, matrix: Tensor, rounds: int = 40) -> None:
    """L-BFGS on the squared distance to `matrix`, from the present parameters; the best found is kept."""
    parameters = [p for p in map.parameters() if p.requires_grad]
    if not parameters:
        return
    kept = [p.detach().clone() for p in parameters]
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=25, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
    )
    scale = matrix.abs().square().sum().clamp_min(torch.finfo(matrix.real.dtype).tiny)

    def error() -> Tensor:
        optimizer.zero_grad()
        with torch.enable_grad():
            loss: Tensor = (map.dense() - matrix).abs().square().sum() / scale
            loss.backward()
        return loss.detach()

    best = float(error())
    for _ in range(rounds):
        optimizer.step(error)
        found = float(error())
        if not found < best:
            break
        gain, best = best - found, found
        kept = [p.detach().clone() for p in parameters]
        if gain <= 1e-9 * best:
            break
    for p, value in zip(parameters, kept, strict=True):
        p.copy_(value)
        p.grad = None
