"""A linear layer and what is applied to its outputs, as a cell without memory: so the native core runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from slimrnn.cells.base import Cell, Matvec, State


class PointwiseCell(Cell):
    """y_t = f(U x_t + b)."""

    gates = ("y",)
    matrices = 0

    def __init__(self, hidden_size: int, bias: bool, activations: Sequence[nn.Module], **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.activations = nn.ModuleList(activations)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        y = wx_BGH.squeeze(-2)
        for activation in self.activations:
            y = activation(y)
        return (y,)
