"""Undamped independent controlled oscillators: units that do not see each other within a layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.checks import check_not_negative, check_positive


class UnICORNNCell(Cell):
    """z_t = z_{t−1} − dt · σ(c) ⊙ (tanh(U x_t + w ⊙ y_{t−1} + b) + α y_{t−1});
    y_t = y_{t−1} + dt · σ(c) ⊙ z_t.

    Rusch & Mishra 2021, "UnICORNN: a recurrent model for learning very long time dependencies", section 2. The output
    is y. w is a diagonal matrix (`structure=Diagonal()`); units see each other through the input matrices of the next
    layer, so it wants several. c is learned for each unit and starts uniform in ±0.1; `alpha` and `dt` are constants.
    Biases start at zero, and w, in the layer `UnICORNN`, uniform in (0, 1): as the authors'."""

    gates = ("y",)
    states = 2  # y, z

    def __init__(
        self, hidden_size: int, bias: bool = True, *, alpha: float = 1.0, dt: float = 0.1, **place: Any
    ) -> None:
        check_not_negative("alpha", alpha)
        check_positive("dt", dt)
        super().__init__(hidden_size, bias, **place)
        self.alpha, self.dt = float(alpha), float(dt)
        self.c = nn.Parameter(torch.empty(hidden_size, **place).uniform_(-0.1, 0.1))

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        y, z = state
        share = self.dt * torch.sigmoid(self.c)
        z = z - share * (torch.tanh(wx_BGH.squeeze(-2) + matvec(y).squeeze(-2)) + self.alpha * y)
        return y + share * z, z
