"""Coupled oscillators: each unit is a damped, driven oscillator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.checks import check_not_negative, check_positive


class CoRNNCell(Cell):
    """z_t = z_{t−1} + dt · (tanh(U x_t + W y_{t−1} + W' z_{t−1} + b) − γ y_{t−1} − ε z_{t−1});
    y_t = y_{t−1} + dt · z_t.

    Rusch & Mishra 2021, "Coupled oscillatory recurrent neural network (coRNN)", eq. 3 with the damping at the old z, as
    in the authors' code. One input product, two recurrent matrices. The output is y, the position; z is its velocity.
    γ (`gamma`) is the squared frequency, ε (`epsilon`) the damping, `dt` the time step; the defaults are what the
    authors use for sequential MNIST, and other tasks want others. Biases start at zero."""

    gates = ("y",)
    states = 2  # y, z
    matrices = 2  # of y and of z

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        gamma: float = 2.7,
        epsilon: float = 4.7,
        dt: float = 0.042,
        **place: Any,
    ) -> None:
        check_not_negative("gamma", gamma)
        check_not_negative("epsilon", epsilon)
        check_positive("dt", dt)
        super().__init__(hidden_size, bias, **place)
        self.gamma, self.epsilon, self.dt = float(gamma), float(epsilon), float(dt)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        y, z = state
        force = torch.tanh(wx_BGH.squeeze(-2) + matvec(y, slice(0, 1)).squeeze(-2) + matvec(z, slice(1, 2)).squeeze(-2))
        z = z + self.dt * (force - self.gamma * y - self.epsilon * z)
        return y + self.dt * z, z
