"""Cells as a user writes them, in a module of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import slimrnn
from slimrnn.cells.base import Matvec, State


class Averaging(slimrnn.Cell):
    """h ← h + rate · (tanh(U x + W h + b) − h): no constructor, one gate, one state."""

    gates = ("n",)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        return (h + 0.5 * (torch.tanh((wx_BGH + matvec(h)).squeeze(-2)) - h),)


class TwoRatesCell(slimrnn.Cell):
    """Two states and an option of its own."""

    gates = ("f", "n")
    states = 2

    def __init__(self, hidden_size: int, bias: bool = True, *, rate: float = 0.1, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.rate = rate

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        h, slow = state
        f, n = (wx_BGH + matvec(h)).unbind(-2)
        h = h + torch.sigmoid(f) * (torch.tanh(n + slow) - h)
        return h, slow + self.rate * (h - slow)


class ThreeRatesCell(TwoRatesCell):
    """Extends the constructor of another cell."""

    def __init__(self, hidden_size: int, bias: bool = True, *, third: float = 0.5, **others: Any) -> None:
        super().__init__(hidden_size, bias, **others)
        self.third = third


TwoRates = slimrnn.layer_of(TwoRatesCell)
Alone = slimrnn.layer_of(Averaging, "Alone", structure=slimrnn.Diagonal())
