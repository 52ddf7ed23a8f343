"""Lipschitz recurrent unit: one Euler step of a linear flow with a Lipschitz nonlinearity."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.checks import check_not_negative, check_positive


class LipschitzRNNCell(Cell):
    """h_t = h_{t−1} + ε (A h_{t−1} − γ h_{t−1} + tanh(U x_t + W h_{t−1} − γ h_{t−1} + b)).

    Erichson, Azencot, Queiruga, Hodgkinson & Mahoney 2021, "Lipschitz recurrent neural networks", section 3, by the
    explicit Euler method. One input product, two recurrent matrices. The paper's A and W are
    (1 − β) (M + Mᵀ) + β (M − Mᵀ) − γ I: the share −γ I is here, and the rest is the structure's affair. That of the
    layer `LipschitzRNN` is `Antisymmetric(0.0)`, β = 1; `Dense()` has every β in it. `epsilon` and `gamma` start from
    the authors' 0.01. Biases start at zero."""

    gates = ("h",)
    matrices = 2  # A, W

    def __init__(
        self, hidden_size: int, bias: bool = True, *, epsilon: float = 0.01, gamma: float = 0.01, **place: Any
    ) -> None:
        check_positive("epsilon", epsilon)
        check_not_negative("gamma", gamma)
        super().__init__(hidden_size, bias, **place)
        self.epsilon, self.gamma = float(epsilon), float(gamma)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        a, w = matvec(h).unbind(-2)
        decay = self.gamma * h
        return (h + self.epsilon * (a - decay + torch.tanh(wx_BGH.squeeze(-2) + w - decay)),)
