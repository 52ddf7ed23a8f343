"""What a user writes: a cell, a class of layers, a structure, a function, a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import slimrnn
from slimrnn.cells.base import Matvec, State
from slimrnn.structures.dense import DenseMap


class SlowCell(slimrnn.Cell):
    """With an option, a buffer that the state_dict leaves out, and an initial bias."""

    gates = ("n",)
    rates: Tensor

    def __init__(self, hidden_size: int, bias: bool = True, *, rate: float = 0.1, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.register_buffer("rates", torch.full((hidden_size,), rate, **place), persistent=False)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        return (h + self.rates * (torch.tanh((wx + matvec(h)).squeeze(-2)) - h),)


SlowLayer = slimrnn.layer_of(SlowCell, "SlowLayer", zoneout=0.1)


@dataclass(frozen=True)
class Scaled(slimrnn.Structure):
    """A dense matrix by another name."""

    factor: float = 1.0

    map_type = DenseMap


def halved(o: Tensor) -> Tensor:
    return 0.5 * o


class Tagger(nn.Module):
    """A model of a class of the user's."""

    def __init__(self, hidden: int = 6, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.rnn = slimrnn.GRU(3, hidden, structure=slimrnn.LowRank(2), dtype=dtype, batch_first=True)
        self.out = slimrnn.ReadOut(self.rnn, 2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.rnn(x)[0])
        return y
