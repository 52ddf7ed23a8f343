"""Long expressive memory: two states, each with a time step of its own for every unit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.checks import check_positive


class LEMCell(Cell):
    """a, b = dt · σ(U x_t + W y_{t−1} + b);
    z_t = (1 − a) ⊙ z_{t−1} + a ⊙ tanh(U_z x_t + W_z y_{t−1} + b_z);
    y_t = (1 − b) ⊙ y_{t−1} + b ⊙ tanh(U_y x_t + W_y z_t + b_y).

    Rusch, Mishra, Erichson & Mahoney 2022, "Long expressive memory for sequence modeling", eq. 3; a and b are its Δt_n
    and its second Δt_n. The output is y. `dt` is the largest time step, 1 unless given, as in the authors' code. Biases
    start at zero (theirs: uniform in ±1/√n)."""

    gates = ("a", "b", "z", "y")
    states = 2  # y, z

    def __init__(self, hidden_size: int, bias: bool = True, *, dt: float = 1.0, **place: Any) -> None:
        check_positive("dt", dt)
        super().__init__(hidden_size, bias, **place)
        self.dt = float(dt)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        y, z = state
        x_a, x_b, x_z, x_y = wx_BGH.unbind(-2)
        w_a, w_b, w_z = matvec(y, slice(0, 3)).unbind(-2)
        a, b = self.dt * torch.sigmoid(x_a + w_a), self.dt * torch.sigmoid(x_b + w_b)
        z = z + a * (torch.tanh(x_z + w_z) - z)
        y = y + b * (torch.tanh(x_y + matvec(z, slice(3, 4)).squeeze(-2)) - y)
        return y, z
