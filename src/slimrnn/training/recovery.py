"""A copy of the net and its optimizer to return to when numbers have become infinite or NaN."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class GoodState:
    """The weights and the optimizer's state after some update."""

    update: int
    weights: dict[str, Any]
    optimizer: dict[str, Any]

    @classmethod
    def of(cls, update: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> GoodState:
        """A copy of what they are now."""
        return cls(update, copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()))

    def restore_(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put them back; the update at hand, whose gradients are of no use, is left out."""
        model.load_state_dict(self.weights)
        optimizer.load_state_dict(self.optimizer)
        optimizer.zero_grad(set_to_none=True)


def is_finite(model: nn.Module) -> bool:
    """Whether all weights are numbers."""
    return all(bool(p.isfinite().all()) for p in model.parameters())
