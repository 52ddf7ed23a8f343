"""A copy of the net and its optimizer, to restore after infinite or NaN gradients."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


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
        """Put them back; the update at hand, whose gradients are of no use, is left out.

        The optimizer gets a copy: it would take our tensors for its own and go on changing them."""
        model.load_state_dict(self.weights)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer))
        optimizer.zero_grad(set_to_none=True)


def is_finite(model: nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    """Whether all weights are numbers, and what the optimizer keeps too: a gradient of 1e20 has a square that float32
    cannot hold, and a mean of squares that is infinite would leave its weight where it is for ever."""
    kept = (value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor))
    return all(bool(tensor.isfinite().all()) for tensor in (*model.parameters(), *kept))
